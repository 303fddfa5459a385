"""Limits of drivers, each with its reason and its unit, as in `budgets`: a server needs none of them."""

from interlock.kernel.budgets import KIB

# Turns of an agent (DRIVE-8, DRIVE-10, TOOL-6).
DRIVE_TURNS = 100
"""Turns of a run, if the profile does not set them: a workflow of twenty steps has five for each."""
DRIVE_TOOL_TURNS = 10
"""Turns in a row that call tools without reporting, if the profile does not set them; part of the specification."""
DRIVE_HISTORY_WINDOW = 20
"""Messages of a conversation in one request; part of the specification."""
DRIVE_HISTORY_TOKENS = 4_000
"""Tokens of these messages; part of the specification."""
DRIVE_MODEL_SECONDS = 120.0
"""One request to a model: long answers of large models take a minute."""
DRIVE_TOOL_MS = 60_000
"""One call of a tool: a test suite of a small project runs in a minute."""
DRIVE_WAIT_SECONDS = 60.0
"""How long a drive waits for an event from outside before it ends resumable: a job of a CI service costs money."""
WAIT_PAUSE_S_MIN = 0.5
"""The first pause between two questions whether something arrived."""
WAIT_PAUSE_S_MAX = 10.0
"""The longest such pause; each is twice the one before."""
RETRY_DELAY_MS = 500
"""The pause before the first retry, if the error names none."""
RETRY_DELAY_MS_MAX = 30_000
"""The longest pause before a retry."""
RETRY_AFTER_MS_MAX = 120_000
"""The longest pause that an error may ask for, if the profile states no `max_delay_ms`: quotas are for a minute."""
RETRY_MULTIPLIER = 2.0
"""By how much each pause is longer than the one before."""
BREAKER_FAILURES = 5
"""Failures in a row at which a circuit breaker opens; part of the specification."""
BREAKER_OPEN_SECONDS = 60.0
"""How long it stays open; part of the specification."""
BREAKER_PROBES = 3
"""Successful probes that close it; part of the specification."""
REPAIR_TURNS_MAX = 3
"""Turns in a row whose calls were all refused: a model that is wrong three times does not find out the fourth time."""
TELEMETRY_S_MAX = 2.0
"""One export of telemetry, unless the environment says otherwise: each drive waits for the last ones."""
CHECKPOINTS_RESERVED = 5
"""Checkpoints of a step that turns leave free, for a mark and a report at its end."""
TURN_RECORD_BYTES_MAX = 500_000
"""The record of one turn: half of what an artifact may have, because its canonical form can be longer."""
RECORDED_TEXT_CHARS_MAX = 16 * KIB
"""The beginning of a text in a record that is too large as a whole."""
MODEL_TEXT_CHARS_MAX = 64 * KIB
"""The text of one answer of a model: more is a pasted file, and would fill every later request."""
MODEL_ANSWER_BYTES_MAX = 4_000_000
"""The answer of a model that is a command."""
OUTPUT_GRACE_S = 1.0
"""How long the rest of a command's output is read after its end: it is in the pipe, unless another process writes."""
TOKENS_PER_ANSWER_MAX = 1_000_000_000_000
"""Tokens that an answer may say it used: no request has a millionth of them, and the sum of all turns stays exact."""
TOOL_CALLS_PER_ANSWER_MAX = 100
"""Calls of tools in one answer: a model that reads a project asks for some dozens of files at once."""
TOOL_ARGUMENTS_BYTES_MAX = 256 * KIB
"""The arguments of one call: a whole file is written with them."""
TOOL_OUTPUT_CHARS_MAX = 16 * KIB
"""The output of one call, as it is shown and kept: about as many tokens as a conversation may have."""
TOOL_ANSWER_BYTES_MAX = 4_000_000
"""The answer of a tool behind an address, as long as that of a model; what is shown of it is shorter."""
TOOL_FILE_BYTES_MAX = 1_000_000
"""A file that a built-in tool reads."""
TOOL_FILES_MAX = 2_000
"""Files that a built-in tool lists or searches."""
SEARCH_MATCHES_MAX = 200
"""Lines that a search returns."""
CHARS_PER_TOKEN = 4
"""Characters of a token, roughly, for every model: the conversation is bounded by an estimate."""
CUT_MESSAGE_TOKENS_MIN = 100
"""The least text that a summary is made of."""
TOKENS_PER_PRICE = 1_000_000
"""Prices of models are stated for a million tokens."""
PROFILE_BYTES_MAX = 256 * KIB
"""The file of an agent's profile, with its examples."""
DELEGATION_TRIES = 2
"""How often work is delegated whose rule says `retry`: an agent that failed twice fails again."""
