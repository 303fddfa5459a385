"""Every limit, wait and size that was chosen, each with its reason and its unit.

Those of one room are in the other modules of this package; no module outside it defines one. A number that something
else fixes, such as a format, is part of that thing. The model of a document defines how many members each of its lists
may have, and publishes that in its schema.
"""

KIB = 1024
"""Unit: bytes."""
DAY_S = 24 * 3600
"""Unit: a day, in seconds."""

# Context (CTX-4).
CONTEXT_BYTES_MAX = 256 * KIB
"""Canonical bytes of a run's merged context: context holds references, never documents."""
CONTEXT_DEPTH_MAX = 64
"""Nesting of a context value: deeper nesting is a mistake or an attack, and would overflow recursive readers."""
CONTEXT_KEY_BYTES_MAX = 128
"""A context key is shown in answers and blockers."""
GOAL_BYTES_MAX = 4 * KIB
"""A goal is a sentence or a paragraph; every answer's header shows its beginning."""

# Notes and artifacts (EVT-7).
NOTES_BYTES_MAX = 4096
"""Stored notes of one step; longer notes are cut and end with the marker (EVT-7)."""
NOTES_INPUT_BYTES_MAX = 256 * KIB
"""Notes as sent: longer notes are pasted files."""
ARTIFACT_BYTES_MAX = 1_000_000
"""Canonical bytes of one artifact: larger evidence is passed by reference."""
ARTIFACT_BYTES_SETTABLE_MIN = 10_000
"""The lowest value that a configuration may set for it: every built-in contract must still be satisfiable."""
ARTIFACT_BYTES_SETTABLE_MAX = 8_000_000
"""The highest value that a configuration may set for it: half of a line, whose encoding of it can be longer."""
ARTIFACTS_MAX = 32
"""Artifacts of one call: one plan stores them."""
ARTIFACT_DEPTH_MAX = 64
"""Nesting of an artifact, for the reason of `CONTEXT_DEPTH_MAX`."""
ARGUMENT_VALUES_MAX = 100_000
"""Values of an argument that is sent as a string of JSON: several such strings fit into one line."""

# Values.
VALUES_BEFORE_GENERATED = 20
"""Instances of a class of values before its `__init__` is generated, which takes as long as 40 to 100 instances."""

# JSON before it is parsed.
NUMBER_DIGITS_MAX = 500
"""Digits of a number in a row: no exact or finite number needs as many, and parsing thousands takes long."""
TOKEN_CHARS_MAX = 4 * KIB
"""Every token is much shorter; longer text is refused before it is parsed."""
SIGNING_KEYS_KEPT_MAX = 8
"""Keys whose derived key one process keeps: a ring has two, and a process opens few rings."""

# Blockers (BLK-6).
BLOCKERS_MAX = 10
"""Blockers of one report: a caller cannot act on more at once."""
BLOCKER_MESSAGE_BYTES_MAX = 512
"""What was found."""
BLOCKER_FIX_BYTES_MAX = 1024
"""What to send instead."""
AUTHORED_SHARE_BYTES_MAX = 200
"""Authored or submitted text within a blocker's message: Interlock's own text must still fit."""
AUTHORED_BYTES_MAX = 380
"""Several such texts together."""
GAP_SUMMARY_BYTES_MAX = 512
"""What one gap discloses."""
DIVERGENCE_SUMMARY_BYTES_MAX = 1024
"""The reason why an agent deviated from the step; the artifact that states it is stored in full."""
GAPS_MAX = 50
"""Gaps that one advance discloses one by one: they are events of its plan."""
RESOLVED_GAPS_MAX = 100
"""Gaps that one advance resolves: they are events of its plan; redoing the step again resolves the rest."""
WARNED_GAPS_MAX = 10
"""Gaps that one answer names; it gives the number of the others."""
ATTEMPTS_PER_STEP_MAX = 10
"""Refused attempts in a row on one step; the tenth says that guessing does not help (BLK-4)."""
FORKS_PER_NODE_MAX = 255
"""Forks of one node: the short token counts them in one byte (ADV-11)."""
FIRST_BLOCKER_BYTES_MAX = 300
"""The first blocker beyond the limit, as quoted within the blocker that counts the rest."""
WANTED_BYTES_MAX = 300
"""The permitted values of a required value: this can be a long list of choices."""
ARTIFACT_FAULTS_MAX = 3
"""Faults of one artifact in one report: nobody reads more."""
REPEATED_WORDS_MIN = 5
"""A text of fewer words is not compared with the prompt or with another field: they may agree by chance."""
COPIED_RUN_WORDS = 4
"""So many words in a row are in another text by copying, not by chance."""
COPIED_WORDS_SHARE_MAX = 0.7
"""A text may quote, but not only: more copied words than this share make it a copy."""
LONG_NOTES_WORDS_MIN = 12
"""Shorter notes may be the same for two steps, and repeat their few words."""
DISTINCT_WORDS_SHARE_MIN = 0.25
"""The different words of a text, as a share of its words; a report in prose has about half."""
DISTINCT_WORDS_ENOUGH = 25
"""With so many different words a text says something, however long its lists and logs are."""
WARNED_GAP_BYTES_MAX = 200
"""One gap in an answer that names several: the beginning of its summary."""
WORK_NOTE_BYTES_MAX = 1024
"""Why a run or the work on a step ended: a paragraph, which is shown to a person in a question."""
WORK_REFS_MAX = 16
"""References of such a record; part of the specification."""
WORK_REF_BYTES_MAX = 512
"""One such reference; part of the specification."""
UNREPORTED_EVIDENCE_MAX = 12
"""Pieces of evidence that may come from an earlier attempt: a replay tries every subset of them, at most 4,096."""

# Log (APP-4).
PLAN_EVENTS_MAX = 256
"""Events of one append plan: one plan is one segment."""
PLAN_BYTES_MAX = 4_000_000
"""Bytes of one segment: a reader loads a segment as a whole."""
DEDUPE_KEY_CHARS_MAX = 256
"""Characters of a dedupe key; part of the specification."""
LOCK_WAIT_MS_MAX = 2_000
"""How long an append waits for another process before it says that the session is locked (LOCK-3)."""
LOCK_WAIT_MS_MIN = 50
"""The shortest wait: a call that spent its time in a queue still waits until a writer at work has finished."""
LOCK_RETRY_AFTER_MS = 1_000
"""The delay that an answer recommends to a caller whose session was locked."""
SESSIONS_KEPT_BYTES_MAX = 32_000_000
"""The size of the logs whose folded sessions one process keeps in memory (FOLLOW-4). A folded session takes about 1.6
times as much memory as its log has bytes. The session in use is kept whatever its size is."""
SNAPSHOTS_KEPT_MAX = 256
"""Parsed snapshots that one process keeps: the tips that agents work on."""
APPROVAL_MARK_CHARS = 12
"""Characters of the digest by which a command names what was shown with a question: an agent cannot find another
question with the same ones in the time that a person takes to answer."""
PENDING_STEPS_KEPT_MAX = 32_768
"""Pending steps of snapshots that one process keeps: a view of a long run asks for those of its whole path."""
WORKFLOWS_KEPT_MAX = 32
"""Compiled workflows that one process keeps."""
UNANSWERED_STARTS_MAX = 64
"""Starts that one process may have recorded without an answer, and recognises if they are repeated."""
WRITTEN_KEPT_MAX = 8_192
"""Content-addressed files that a process remembers to have written."""
REWRITE_AFTER_S = DAY_S // 2
"""Age from which a reused content-addressed file is written again, so that no sweep removes it (APP-5)."""
RETENTION_DAYS = 90
"""Days after its last event from which a session may be collected, if the configuration does not set them (GC-1)."""
RETENTION_DAYS_MAX = 36_500
"""A century: 0 means for ever."""
RETENTION_PINS_MAX = 10_000
"""Pinned sessions: pins are exceptions, and their file is read as a whole."""
SWEEP_AFTER_S = DAY_S
"""Age from which a sweep removes unreferenced content: writers write what they reuse at half of this age (GC-4)."""
SWEEP_LOCK_WAIT_MS_MAX = 50
"""How long a sweep waits for a session's lock before it leaves the session to the next sweep: writers have priority."""
FREE_BYTES_MIN = 100_000_000
"""Free space below which `doctor` warns: a day of work still fits, so there is time to act."""
LOCK_POLL_S_MIN = 0.001
"""The shortest pause between two attempts to lock: long enough to let the holder work."""
LOCK_POLL_S_MAX = 0.005
"""The longest such pause; each is drawn at random from the range, so that waiting processes do not synchronise."""
MARK_READS_MAX = 2
"""Reads of a settled mark: while it is overwritten, a reader may see a part of it, and reads it again."""

# Bundles (BND-10).
BUNDLE_BYTES_MAX = 64_000_000
"""A bundle: it is checked as a whole, in memory, before anything is stored, which takes several times its size."""
BUNDLE_VALUES_MAX = BUNDLE_BYTES_MAX // 16
"""Values of a bundle. Each takes at least a hundred bytes in memory, however short it is in the file. A log has 29
bytes for each value, so a session reaches the limit of bytes first; only a file that is made for it reaches this one.
"""
BUNDLE_DEPTH_MAX = 128
"""Nesting of a bundle: a context value of the largest depth, inside an event."""

# Answers (ANS-6).
FUNCTIONS_BYTES_MAX = 8 * KIB
"""The definitions, in a step's prompt, of the functions that the step refers to (PLAN-9)."""
PARALLEL_PROMPTS_BYTES_MAX = 8 * KIB
"""The prompts, in that of the first of several parallel steps, of the others: enough for three long ones (PLAN-21)."""
RECAP_BYTES_MAX = 6_000
"""The recap on rehydrate: enough to continue, small enough for every client."""
RECAP_SINCE_BYTES_MAX = 2_000
"""The part of the recap about later steps than the requested one."""
RECAP_CHECKPOINT_BYTES_MAX = 2_000
"""The part of the recap with the notes of the last checkpoint."""
RECAP_NAMES_BYTES_MAX = 800
"""Each list of names in the recap: branches, artifacts, context keys, functions."""
ARTIFACTS_NAMED_MAX = 10
"""Artifacts that a recap names, the newest: each is read for its kind."""
HEADER_GOAL_BYTES_MAX = 120
"""The goal as shown in an answer's first line."""
HEADER_TITLE_BYTES_MAX = 200
"""A name or title as shown in an answer's first line: a template may expand to any length."""
LIST_ENTRIES_MAX = 30
"""Workflows of one list answer; it gives the number of the others and how to find them."""
INSPECT_BYTES_MAX = 10_000
"""A plan in an answer of `inspect_workflow`; a longer one is read as a resource."""
RESOURCES_MAX = 200
"""Resources of one listing: clients show them to people in a menu."""
RECORD_BYTES_MAX = 40_000
"""One session's record as a resource: clients cut a longer one, or store it in a file."""
RECORD_STEPS_MAX = 20
"""Steps of each run in a short record."""
COMPLETIONS_MAX = 100
"""Values of one completion: the protocol allows no more."""
PROGRESS_SECONDS = 1.0
"""How long a call runs before its progress is reported, and the interval between reports."""
PATH_BYTES_MAX = 120
"""The path of a fault, which may contain a caller's own keys."""
WORDS_BYTES_MAX = 300
"""The message of one fault of a document."""
LIST_DESCRIPTION_BYTES_MAX = 200
"""A workflow's description in a list: an answer with thirty of them is still small."""
CORRECTED_ARGUMENTS_MAX = 12
"""Arguments that a corrected call repeats: no tool has more."""
MOVED_ARGUMENTS_MAX = 64
"""Unknown arguments that a corrected call moves to their place: more than an artifact has members."""
LEFT_OUT_NAMED_MAX = 5
"""Values that a refusal names because they are not in its corrected call; it counts the others."""
FILLS_NAMED_MAX = 3
"""Values to add that the sentence of a call names; `fill` lists all of them."""
ECHO_BYTES_MAX = 80
"""How much of a caller's own value an error quotes."""
EVIDENCE_ECHO_BYTES_MAX = 1_000
"""How much of the caller's own notes and artifacts a corrected call repeats, so that it can be sent as it is shown."""
NEAR_TOKEN_CHARS_MAX = 12
"""Adjacent characters in which a damaged token may differ from the token that is suggested: most of the 22 characters
of the signature always remain."""
SPLICED_TOKEN_CHARS_MIN = 12
"""Characters of the signature with which a text must begin to count as a token with the end of another one."""
NEAR_TOKEN_NODES_MAX = 64
"""Nodes of a run, the latest first, whose tokens are compared with a damaged one."""
SECRETS_NAMED_MAX = 5
"""Context keys that one warning names as likely secrets: the others are usually in the same place."""
RECAP_NODES_MAX = 200
"""Nodes that a recap reads back from its own: a run without notes must not cost its whole length."""
VERDICTS_KEPT_MAX = 4_096
"""Artifacts whose verdicts one process keeps: those of twenty runs as long as a recap reads back."""
RECAP_PART_BYTES_MIN = 200
"""The least space in a recap for which a part is cut: a shorter beginning is useless."""
RECAPS_KEPT_MAX = 64
"""Recaps of which one process keeps the parts, for the next call of their runs: two for each session that it keeps."""
ARTIFACT_KIND_BYTES_MAX = 100
"""The kind of an artifact that a recap names."""
SHOWN_DIGEST_CHARS = 12
"""Hexadecimal digits of a digest that a recap shows: 48 bits, enough to distinguish the artifacts of a run."""
NAMED_GOAL_CHARS_MAX = 60
"""A goal that only distinguishes runs in a refusal."""
TITLES_KEPT_MAX = 1_024
"""Rendered step titles that one process keeps."""
RECORD_NOTES_BYTES_MAX = 600
"""Notes of one step in a short record; `session report` has them in full."""
RECORD_NODES_MAX = 40
"""Nodes of a run up to which a short record draws its graph."""
TIMELINE_NOTES_BYTES_MAX = 160
"""The beginning of notes in a timeline: `session show` has them in full."""
FOUND_BYTES_MAX = 300
"""One finding in a report of an import, a repair or a comparison."""
SECRET_KEY_CHARS_MAX = 200
"""Characters of a context key that are checked for the name of a secret: longer than any name."""
SECRET_REFERENCE_CHARS_MAX = 500
"""Characters of a value that are checked for a reference to a secret: longer than any reference."""
SECRET_NAMES_KEPT_MAX = 4_096
"""Results of context key checks that one process keeps: the keys of its calls repeat."""

# Configuration.
CONFIG_BYTES_MAX = 64 * KIB
"""A configuration file: a few keys and the comments on them."""
CONFIG_KEY_PARTS_MAX = 16
"""Parts of a dotted key: every key has two, and parsing time grows with the square of their number."""
CONFIG_DEPTH_MAX = 16
"""Nested brackets: no key has a nested value, and the parser recurses."""
CONFIG_WORD_CHARS_MAX = 128
"""Characters of a key or a number: the longest key has fewer than thirty."""

# People.
QUESTION_BYTES_MAX = 4_000
"""The text of one question to a person: clients show it in a dialog."""
REPLY_BYTES_MAX = 4 * KIB
"""One text that a person replies: it is recorded like notes."""
QUESTION_VALID_MS = DAY_S * 1000
"""How long a question may be answered: a day, so that nobody answers it by accident a week later."""
CLIENT_NAME_BYTES_MAX = 128
"""A client's name, as the client states it, recorded with a reply."""
CLOCK_SKEW_MS_MAX = 60_000
"""How far the clock may have been set back since a question was asked."""
CLIENT_VERSION_BYTES_MAX = 64
"""Its version, likewise."""

# Workspaces and finding sessions again (OBS-2, RES-1, RES-6).
GIT_SECONDS_MAX = 0.3
"""How long git may take to find the git position of a workspace: a start does not wait for a slow disk."""
GIT_POSITION_BYTES_MAX = 4_096
"""Bytes read of each file that names the branch or the commit of a work tree (OBS-6)."""
WORKSPACES_KEPT_MAX = 64
"""Workspaces of which one server remembers the last git position and the workflow files (OBS-6)."""
SHORT_STRING_CHARS_MAX = 80
"""A short string of an observation (OBS-2)."""
BRANCH_DIGEST_CHARS = 16
"""The hexadecimal digits that end a shortened branch name: 64 bits, so that two long names are not confused."""
PATH_CHARS_MAX = 512
"""A path of an observation (OBS-2)."""
CANDIDATES_MAX = 5
"""Candidates of one `resume_session` (RES-1)."""
CANDIDATE_SNIPPET_BYTES_MAX = 600
"""The beginning of a candidate's notes (RES-6)."""
OPEN_RUN_SESSIONS_MAX = 50
"""The newest sessions in which a start looks for an open run of the same workflow and goal (ADV-14)."""
QUERY_BYTES_MAX = 1 * KIB
"""A query of `resume_session`: a few words."""
DERIVED_IDS_KEPT_MAX = 512
"""Derived ids that are remembered: one call derives the ids of its node several times."""
CREATED_OPEN_MAX = 64
"""New files of one append that are open at once: each is open from when it is created until it is synced."""
SUMMARY_DELAY_S = 0.5
"""Seconds after an append until its summary is cached: several appends of a second cost one summary."""
SUMMARY_FLUSH_S = 2.0
"""Seconds for which a process that ends waits for summaries: they are optional."""
SUMMARY_RUNS_MAX = 32
"""Runs of a session whose summary is cached with it: each append writes the cache."""
EVENT_FIELDS_BYTES_MAX = 8 * KIB
"""Canonical bytes of the fields of one event or intent: larger data is passed by reference."""
EVENT_TEXT_CHARS_MAX = 128
"""Characters of a kind, of the id that a sender gives an event, and of the name of a source or a channel."""
EVENTS_WAITING_MAX = 64
"""Events of a run that no step has taken yet: a sender that is wrong must not fill the log."""
CLAIMS_WAITING_MAX = 32
"""How many of them may be claims: what is known better must always find a place."""
EVENTS_PER_RUN_MAX = 2_000
"""Events of a run: one for each pass of the longest loop."""
AWAIT_S_MAX = 90 * DAY_S
"""The longest time that a step waits for an event: longer than any session is kept by default."""
CHANNEL_TIMEOUT_S = 10
"""How long a channel may take for one intent if the configuration does not say it: a request to a service nearby."""
CHANNEL_TIMEOUT_S_MAX = 300
"""The most that a configuration may set for it: a try occupies one of few senders."""
CHANNEL_CONNECT_SHARE = 0.9
"""The part of that time in which a receiver must accept the connection: later it is unknown what arrived."""
CHANNEL_REPLY_BYTES_MAX = 64 * KIB
"""What is read of the answer of a channel: more than an event needs."""
CHANNEL_NOTE_BYTES_MAX = 400
"""What is kept of why a try failed: it is shown in lists."""
CHECK_TIMEOUT_S = 600
"""How long a check may take if the configuration does not say it: the test suite of an ordinary project."""
CHECK_TIMEOUT_S_MAX = 6 * 3600
"""The most that a configuration may set for it."""
CHECK_OUTPUT_KIB = 2
"""What is kept of the end of a check's output if the configuration does not say it: the summary of a test run."""
CHECK_OUTPUT_KIB_MAX = 4
"""The most that a configuration may set for it: the output is one field of an event (`EVENT_FIELDS_BYTES_MAX`)."""
CHECK_COMMAND_BYTES_MAX = 400
"""The command line of a check as its result shows it."""
CHECK_GRACE_S = 2
"""How long a check that is ended, or an MCP server without input, may clean up before it is killed with its group."""
CHECK_OPEN_S = 25
"""How long the call of a step that waits for a check stays open: clients end a call after 30 seconds or more."""
CHECK_POLL_S = 0.5
"""How often such a call looks for the result."""
CHECK_RUN_BYTES_MAX = 20
"""What is read of the lock file of a check: the number of its run."""
CHECK_ENDED_PROCESSES_MAX = 64
"""The processes of checks that have ended and of which a server knows how: the calls that ask come within seconds."""
APPROVAL_NOTE_BYTES_MAX = 4 * KIB
"""The note of a person who decides a question: one field of an event."""
CHECKS_FILE_BYTES_MAX = 64 * KIB
"""The file with a project's own checks."""
CHILD_READ_BYTES = 64 * KIB
"""What is read at once from a child process or a receiver."""
CHILD_POLL_S = 0.05
"""How often the end of a child process is looked for while it writes nothing."""
CHILD_DRAIN_BYTES_MAX = 1024 * KIB
"""What is read of each output after the end of a child process: the most that a pipe holds."""
MCP_OUTPUT_BYTES_MAX = 1024 * KIB
"""What is read from the MCP server of a channel in one try: a list of many tools, and an answer."""
MCP_OUTPUT_LINES_MAX = 2_000
"""Lines of it: each one is parsed."""
CHANNELS_MAX = 50
"""Channels, and sources, of one configuration."""
DISPATCHES_AT_ONCE = 4
"""Intents that one server sends at the same time: a channel that hangs must not hold the others."""
DISPATCH_QUEUE_MAX = 1_000
"""Intents that wait in one server; more stay undelivered, and `interlock intent deliver` sends them."""
DISPATCH_TRIES_MAX = 3
"""Tries of one process to send an intent, if the channel recognises the id of what it got before."""
PROCESS_ENVIRONMENT_BYTES_MAX = 4 * KIB * KIB
"""Of the environment of a client: far more than programs start with. Of a longer one it is unknown what it holds."""
PROCESS_STATUS_BYTES_MAX = 4 * KIB
"""What the operating system says of one process is a line."""
SETTLE_WAIT_S = 60
"""How long a sender tries to record a result while its session is locked; after that the result stays unknown."""
CLOSE_WAIT_S = 2
"""How long the end of a server waits for what is being sent; clients wait a little longer for a server."""
RESUME_SENDING_S = 1
"""How long after its start a server looks for intents that nobody has tried to send: its client's first calls come
before."""
DISPATCH_PAUSE_S = 2
"""The pause before the next try, and before the lock of a busy session is asked for again."""
CHECKPOINTS_PER_NODE_MAX = 255
"""Checkpoints of one node: the short token counts them in one byte (CHK-4)."""

# The wire.
SUBSCRIPTIONS_MAX = 1_000
"""Resources whose changes are reported to one client; further subscriptions are refused."""
LINE_BYTES_MAX = 16 * KIB * KIB
"""Bytes of one line: more than all budgets of one call together, and few enough to hold in memory."""
LINE_DEPTH_MAX = 100
"""Nesting of one message: more than every budget for a value inside it, far less than recursive readers can handle."""
LINE_VALUES_MAX = 500_000
"""Values of one message: ten full artifacts of findings have as many, or one artifact of digits; more take longer than
the second that a call may take, and more memory than a server should need."""
UNANSWERED_MAX = 1024
"""Unanswered requests at which the reader pauses: each is a task that needs memory."""
UNTAKEN_MESSAGES_MAX = 1024
"""Messages that the SDK has not taken, at which no more are read: a client may send notifications without end."""
UNREAD_LINES_MAX = 1024
"""Lines that wait for a client to read them, at which no more requests are read from it."""
DRAIN_SECONDS_MAX = 0.5
"""How long the server waits for the next answer after its input was closed: a call that computes or is queued answers
by then, and a call that waits for the client would wait for ever. Clients kill a server after about two seconds."""
DRAIN_TOTAL_SECONDS_MAX = 5
"""How long answers extend that wait. Then calls that are queued are not begun any more. The call that runs may wait for
a lock (`LOCK_WAIT_MS_MAX`), and channels and the last answers have their own limits: together at most 10 seconds."""
FLUSH_SECONDS_MAX = 1.0
"""How long the last answers wait for a client to read them: a live client reads at once."""
LINE_EDGE_BYTES_MAX = 4 * KIB
"""Bytes that are parsed at both ends of a line beyond its limits: the members of an envelope are short."""
READ_BYTES_MAX = 64 * KIB
"""Bytes of one read of the input: the capacity of a pipe."""
FRONT_LINE_BYTES_MAX = 8 * KIB
"""Bytes of a message that the front answers: a handshake has a few hundred. Longer ones wait for the server."""
FRONT_ID_CHARACTERS_MAX = 128
"""Characters of an id that the front answers: clients count, or send a UUID."""
FRONT_ID_MAX = 2**53
"""Numbers beyond this are not exact in every JSON implementation."""
FRONT_SWITCH_S = 0.001
"""How long a thread may run while another one waits, during a start: a client must not wait for the imports."""
FRONT_ANSWER_BYTES_MAX = 48 * KIB
"""Bytes that the front sends at most: a pipe holds more, so a client that does not read does not stop the front."""
CACHE_HINT_MS = 3_600_000
"""How long a client may cache what does not change while a server runs."""

# Commands and what they show.
NAMED_MAX = 10
"""Sessions or runs that one message of a command names; it gives the number of the others."""
CELL_BYTES_MAX = 60
"""A goal or a title in a table or a list of candidates."""
CELL_DESCRIPTION_BYTES_MAX = 80
"""A workflow's name and description in a table; `workflow inspect` shows them in full."""
CELL_FOUND_BYTES_MAX = 100
"""The fault of a session in a table; `session verify` shows it in full."""
GRAPH_LABEL_BYTES_MAX = 160
"""The beginning of a title or a condition in a drawn graph."""
UNFOLDED_CHARS_MAX = 100_000
"""The width of output that does not go to a terminal: no line is wrapped."""
FOLDED_CHARS_MAX = 100
"""Characters at which lines are wrapped for people: code in a report, a workflow file that is written."""
CELL_CHARS_MIN = 8
"""The least width of a table's column without ids; a narrower terminal shows each row as a block of lines."""
WHOLE_WORD_CHARS_MAX = 40
"""Characters up to which a word is never broken in a terminal: every id is shorter."""
TERMINAL_CHARS_MIN = 20
"""The least width of wrapped text: in a narrower terminal, lines are too long."""
SHORT_ID_CHARS_MIN = 6
"""The last characters of a session's id that name it in a table; more if another id ends in the same characters."""
SLIP_CHARS_MIN = 4
"""Letters of a word from which one wrong letter is a slip: shorter words differ in one letter by chance."""
PROJECT_DIGEST_CHARS = 6
"""Digits that tell apart projects whose names are not recorded."""
REDACTED_CHARS_MIN = 4
"""Characters of a value that can be redacted: a shorter one occurs in words that are no secret."""
REDACTED_BYTES_MAX = 65_536
"""Characters that `session redact --value -` reads."""
OTHERS_NAMED = 3
"""Other runs that a command names if it selected the latest one."""
WATCH_STEP_S = 0.5
"""Seconds between two looks of `interlock watch`."""
WATCHED_ENTRIES = 5
"""Earlier entries that `interlock watch` begins with."""
UTF8_CHAR_BYTES_MAX = 4
"""Bytes of one character in UTF-8: a text that was cut can be so much shorter than its budget."""
READ_CHUNK_BYTES = 65_536
"""Read at once from one of many small files: a regular file gives fewer bytes only at its end."""
WORKER_PROCESSES_MAX = 4
"""Processes that share the work of one command: more gain little while all of them read the same disk."""
ITEMS_BEFORE_PROCESSES = 64
"""Items that a command works on before it starts other processes, which takes 0.04 seconds."""
ITEMS_PER_BATCH = 32
"""Items that a worker process takes and returns at once."""
PASSAGES_LISTED = 20
"""Passages that `session search` prints, without `--limit`."""
PASSAGE_BYTES_MAX = 300
"""The beginning of a passage in a search; `session show --evidence` has it in full."""
BEGINNING_CHARS_MIN = 3
"""Letters from which the beginning of a word matches it: two letters begin too many words."""
RUNS_LISTED = 30
"""Runs on one page of `session list`, without `--limit`."""
TIMELINE_ENTRIES = 50
"""Entries of `session timeline`, without `--limit`."""
STEPS_SHOWN = 5
"""Steps of a run that `session show` shows, the latest, without `--all`."""
AGE_DAYS_MAX = 30
"""Days up to which an age is a number of days; a date says more than a larger number."""
TERMINAL_PROGRESS_S_MIN = 0.3
"""How long a command runs before a terminal shows its progress: a shorter one needs none."""
TERMINAL_PROGRESS_STEP_S = 0.1
"""The interval between updates of the progress."""
COLLECTION_VALUES_MIN = 100_000
"""New objects of a command at which Python's garbage collector runs: a command creates many and keeps few."""
SERVER_COLLECTION_VALUES_MIN = 5_000
"""The same for a server, which lives long: collections at the default took a seventieth of an advance."""
DEMO_SECONDS_MAX = 60
"""How long the demo waits for its own server to answer all calls of one stage."""
DEMO_LINE_BYTES_MAX = 300
"""The beginning of a text of an answer, as the demo shows it."""
PROMPT_REPEATED_BYTES_MAX = 1_024
"""Bytes of a prompt that a refusal repeats although it is unchanged; a longer one is only referred to (ANS-27)."""
