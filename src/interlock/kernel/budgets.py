"""Every limit, wait and size that was chosen, each with its reason and its unit. No other module states one.

A number that something else fixes, such as a format, is part of that thing. The form of a document states itself how
many members each of its lists may have, and publishes that as its schema.
"""

KIB = 1024
"""Unit: bytes."""
DAY_S = 24 * 3600
"""Unit: a day, in seconds."""

# Context (CTX-4).
CONTEXT_BYTES_MAX = 256 * KIB
"""Canonical bytes of a run's merged context: context carries references, never documents."""
CONTEXT_DEPTH_MAX = 64
"""Nesting of a context value: deeper is an accident or an attack, and would overflow recursive readers."""
CONTEXT_KEY_BYTES_MAX = 128
"""A context key enters answers and blockers."""
GOAL_BYTES_MAX = 4 * KIB
"""A goal is a sentence or a paragraph, shown in every answer's header in short."""

# Notes and artifacts (EVT-7).
NOTES_BYTES_MAX = 4096
"""Stored notes of one step; longer ones are cut with the marker (EVT-7)."""
NOTES_INPUT_BYTES_MAX = 256 * KIB
"""Notes as sent: beyond this a caller pastes files."""
ARTIFACT_BYTES_MAX = 1_000_000
"""Canonical bytes of one artifact: larger evidence is passed by reference."""
ARTIFACT_BYTES_SETTABLE_MIN = 10_000
"""The least that a configuration may set for it: every built-in contract must still be met."""
ARTIFACT_BYTES_SETTABLE_MAX = 8_000_000
"""The most that a configuration may set for it: half of a line, which carries it in a wordier spelling."""
ARTIFACTS_MAX = 32
"""Artifacts of one call: they are stored in one plan."""
ARTIFACT_DEPTH_MAX = 64
"""Nesting of an artifact, for the reason of `CONTEXT_DEPTH_MAX`."""
ARGUMENT_VALUES_MAX = 100_000
"""Values of an argument that is sent as JSON text: several such texts fit into one line."""

# JSON before it is parsed.
NUMBER_DIGITS_MAX = 500
"""Digits of a number in a row: no number that is exact or finite needs as many, and reading thousands takes long."""
TOKEN_CHARS_MAX = 4 * KIB
"""No token comes near this; longer text is refused before any work is done on it."""
SIGNING_KEYS_KEPT_MAX = 8
"""Keys whose derived key one process keeps: a ring has two, and a process opens few rings."""

# Blockers (BLK-6).
BLOCKERS_MAX = 10
"""Blockers of one report: more cannot be acted on in one go."""
BLOCKER_MESSAGE_BYTES_MAX = 512
"""What was found."""
BLOCKER_FIX_BYTES_MAX = 1024
"""What to send instead."""
AUTHORED_SHARE_BYTES_MAX = 200
"""Authored or submitted text within a blocker's message: what is ours must still fit."""
AUTHORED_BYTES_MAX = 380
"""Several such texts together."""
GAP_SUMMARY_BYTES_MAX = 512
"""What one gap discloses."""
DIVERGENCE_SUMMARY_BYTES_MAX = 1024
"""Why an agent left the script: the artifact that says so is kept whole."""
GAPS_MAX = 50
"""Gaps one advance discloses one by one: they are events of its plan."""
RESOLVED_GAPS_MAX = 100
"""Gaps one advance resolves: they are events of its plan; redoing the step again resolves the rest."""
WARNED_GAPS_MAX = 10
"""Gaps that one answer names; the rest is counted."""
ATTEMPTS_PER_STEP_MAX = 10
"""Refused attempts in a row on one step; the tenth says that guessing does not help (BLK-4)."""
FORKS_PER_NODE_MAX = 255
"""Forks of one node: the short token counts them in one byte (ADV-11)."""
FIRST_BLOCKER_BYTES_MAX = 300
"""Of the first blocker that a report has no room for, within the blocker that counts the rest."""
WANTED_BYTES_MAX = 300
"""What a required value may be: it can be a long list of choices."""
ARTIFACT_FAULTS_MAX = 3
"""Faults of one artifact in one report: more are not read."""
REPEATED_WORDS_MIN = 5
"""Notes of fewer words are not compared with the prompt: they may agree with it by chance."""
WARNED_GAP_BYTES_MAX = 200
"""One gap in an answer that names several: the beginning of its summary."""
UNREPORTED_EVIDENCE_MAX = 6
"""Pieces of evidence that may come from an earlier attempt: a replay tries every selection of them, so 64 at most."""

# Log (APP-4).
PLAN_EVENTS_MAX = 256
"""Events of one append plan: one plan is one segment."""
PLAN_BYTES_MAX = 4_000_000
"""Bytes of one segment: what a reader must take in at once."""
DEDUPE_KEY_CHARS_MAX = 256
"""Locked length of a dedupe key."""
LOCK_WAIT_MS_MAX = 2_000
"""How long an append waits for another process before it says that the session is locked (LOCK-3)."""
LOCK_WAIT_MS_MIN = 50
"""How long it waits at least: a call that spent its time in a queue still gets past a writer that is at work."""
LOCK_RETRY_AFTER_MS = 1_000
"""What a caller that met the lock is told to wait."""
SESSIONS_KEPT_MAX = 32
"""Folded sessions one process keeps in memory (FOLLOW-4)."""
SNAPSHOTS_KEPT_MAX = 256
"""Parsed snapshots one process keeps: the tips that agents work on."""
WORKFLOWS_KEPT_MAX = 32
"""Compiled workflows one process keeps."""
UNANSWERED_STARTS_MAX = 64
"""Starts that one process may have recorded without an answer, and finds when they are repeated."""
SYNCED_KEPT_MAX = 8_192
"""Content-addressed files a process remembers to have synced itself."""
RENEW_AFTER_S = DAY_S // 2
"""Age from which a reused content-addressed file is renewed, so that no sweep takes it (APP-5)."""
RETENTION_DAYS = 90
"""Days after its last event from which a session may be collected, where the configuration says nothing (GC-1)."""
RETENTION_DAYS_MAX = 36_500
"""A century: who means for ever says so with 0."""
KEEP_MARKS_MAX = 10_000
"""Sessions that are kept whatever their age: more than that is no exception, and the file of marks is read whole."""
SWEEP_AFTER_S = DAY_S
"""Age from which a sweep takes what nothing refers to: what a writer reuses it has renewed by half of that (GC-4)."""
SWEEP_LOCK_WAIT_MS_MAX = 50
"""How long a sweep waits for a session's lock before it leaves the session to the next one: writers go first."""
FREE_BYTES_MIN = 100_000_000
"""Free space below which `doctor` warns: a day of work fits, and whoever reads it still has time to act."""
WORKER_THREADS_MAX = 8
"""Calls that touch the disk at once in one server."""
LOCK_POLL_S_MIN = 0.001
"""The shortest pause between two tries of a lock: long enough to let the holder work."""
LOCK_POLL_S_MAX = 0.005
"""The longest one; each is drawn from this range, so that waiting processes do not try in step."""
MARK_READS_MAX = 2
"""Readings of a settled mark: while it is overwritten a reader may meet a part of it, and reads once more."""

# Bundles (BND-10).
BUNDLE_BYTES_MAX = 64_000_000
"""A bundle is checked whole, in memory, before anything of it is stored; that takes several times its size."""
BUNDLE_VALUES_MAX = 2_000_000
"""Values of a bundle: those of ten thousand advances. Each takes a hundred bytes and more in memory, however short
it is in the file."""
BUNDLE_DEPTH_MAX = 128
"""Nesting of a bundle: a context of the deepest kind, inside an event."""

# Answers (ANS-6).
FUNCTIONS_BYTES_MAX = 8 * KIB
"""Definitions of the functions that one step refers to, within its prompt (PLAN-9)."""
RECAP_BYTES_MAX = 6_000
"""Recap on rehydrate: enough to go on, small enough for every client."""
RECAP_SINCE_BYTES_MAX = 2_000
"""Of the recap, what was done after the step that is looked at."""
RECAP_CHECKPOINT_BYTES_MAX = 2_000
"""Of the recap, the notes of the last checkpoint."""
RECAP_NAMES_BYTES_MAX = 800
"""Of the recap, each list of names: branches, artifacts, context keys, functions."""
ARTIFACTS_NAMED_MAX = 10
"""Artifacts that a recap names, the newest: each is read for its kind."""
HEADER_GOAL_BYTES_MAX = 120
"""The goal as shown in an answer's first line."""
HEADER_TITLE_BYTES_MAX = 200
"""A name or title as shown in an answer's first line: a template may fill it with anything."""
SHOWN_VALUE_CHARS_MAX = 200
"""A context value that the next call shows as it stands, as JSON."""
LIST_ENTRIES_MAX = 30
"""Workflows of one list answer; the rest is a count and a hint."""
INSPECT_BYTES_MAX = 10_000
"""A plan in an answer of `inspect_workflow`; a longer one is read as a resource."""
RESOURCES_MAX = 200
"""Resources of one listing: clients show them to people in a menu."""
RECORD_BYTES_MAX = 40_000
"""One session's record as a resource: clients cut what is longer, or put it into a file."""
RECORD_STEPS_MAX = 20
"""Steps of each run in a record that is told in short."""
COMPLETIONS_MAX = 100
"""Values of one completion: the protocol allows no more."""
PROGRESS_SECONDS = 1.0
"""How long a call takes before its progress is told, and how long until the next word of it."""
PATH_BYTES_MAX = 120
"""The place of a fault, which may be made of a caller's own keys."""
WORDS_BYTES_MAX = 300
"""What is said of one fault of a document."""
LIST_DESCRIPTION_BYTES_MAX = 200
"""A workflow's description in a list: thirty of them keep an answer small."""
CORRECTED_ARGUMENTS_MAX = 12
"""Arguments that a corrected call repeats: no tool has more."""
ECHO_BYTES_MAX = 80
"""How much of a caller's own value an error quotes."""
NEAR_TOKEN_CHARS_MAX = 12
"""Characters in a row that a text may differ in from the token that it is told to be nearly: most of the signature, of
22 characters, is always left."""
NEAR_TOKEN_NODES_MAX = 64
"""Nodes of a run, the latest first, whose tokens a damaged one is held against."""
SECRETS_NAMED_MAX = 5
"""Context keys that one warning says look like secrets: the rest are found by looking where these were."""
RECAP_NODES_MAX = 200
"""Nodes that a recap walks back from its own: a run without notes must not cost its whole length."""
RECAP_PART_BYTES_MIN = 200
"""The least room in a recap that a part is cut for: a shorter beginning says nothing."""
ARTIFACT_KIND_BYTES_MAX = 100
"""The kind of an artifact that a recap names."""
SHOWN_DIGEST_CHARS = 12
"""Hexadecimal digits of a digest that a recap shows: 48 bits, enough to distinguish the artifacts of a run."""
NAMED_GOAL_CHARS_MAX = 60
"""A goal that only tells one run from another, in a refusal."""
TITLES_KEPT_MAX = 1_024
"""Titles of steps that one process keeps as answers show them."""
RECORD_NOTES_BYTES_MAX = 600
"""Notes of one step in a short record; `session report` has them whole."""
RECORD_NODES_MAX = 40
"""Nodes of a run up to which a short record draws its graph."""
TIMELINE_NOTES_BYTES_MAX = 160
"""Of notes their beginning in a timeline: `session show` has them whole."""
FOUND_BYTES_MAX = 300
"""What was found, in a report of an import, a repair or a comparison."""
SECRET_KEY_CHARS_MAX = 200
"""A context key that is examined as the name of a secret: longer than any name."""
SECRET_REFERENCE_CHARS_MAX = 500
"""A value that is examined as a reference to a secret: longer than any reference."""
SECRET_NAMES_KEPT_MAX = 4_096
"""Verdicts on context keys that one process keeps: the keys of its calls repeat."""

# Configuration.
CONFIG_BYTES_MAX = 64 * KIB
"""A configuration file: a handful of keys and what people note beside them."""
CONFIG_KEY_PARTS_MAX = 16
"""Parts of a dotted key: every key has two, and reading takes time with the square of them."""
CONFIG_DEPTH_MAX = 16
"""Brackets inside each other: no key takes a nested value, and reading recurses."""
CONFIG_WORD_CHARS_MAX = 128
"""Characters of a key or a number: the longest key has fewer than thirty."""

# Workflow documents.
DOCUMENT_BYTES_MAX = 1_000_000
"""A workflow file: larger ones are not written by people."""
STATED_ID_BYTES_MAX = 64_000
"""Of a workflow file that cannot be parsed, the beginning in which its id is searched."""
STATED_ID_CHARS_MAX = 128
"""The longest id that is found there."""
YAML_BYTES_MAX = 500_000
"""A workflow file in YAML: a megabyte of brackets is a million events, longer than the second a file may take."""
DOCUMENT_DEPTH_MAX = 64
"""Nesting of a workflow file."""
DOCUMENT_VALUES_MAX = 100_000
"""Values of a workflow file: a megabyte that people write has a quarter of them. In YAML each key is one."""
STEPS_MAX = 2_000
"""Steps of a workflow: the plan is pinned and read whole."""
PROMPT_BYTES_MAX = 32 * KIB
"""A rendered step prompt: clients cut answers beyond about 40 kB."""
TITLE_CHARS_MAX = 200
"""Titles and names stand on one line."""
DESCRIPTION_CHARS_MAX = 2_000
"""A workflow's description stands in a list."""
PATTERN_MEMORY_BYTES_MAX = 8 * KIB * KIB
"""What one compiled pattern of a criterion may take: its text is short, what it unfolds to need not be."""
REQUIREMENT_LINES_MAX = 5
"""Lines that tell an agent what evidence a step wants: more are not read (PLAN-13)."""
LOOP_PASSES_MAX = 1_000
"""Passes of one loop: more is a program, not a workflow."""
LOOP_DEPTH_MAX = 8
"""Loops inside each other: every one stands in each key of a step below it."""
CHOICE_DEPTH_MAX = 16
"""Branches and blocks inside each other: deeper cannot be read, and walks over them recurse."""
WALK_NODES_MAX = 20_000
"""Nodes one advance may resolve without asking anybody: loops whose steps are all skipped must end in one call."""
TRACE_ENTRIES_MAX = 25
"""Reasons of one trace event (TRACE-1)."""
TRACE_BYTES_MAX = 8192
"""Bytes of one trace event's reasons (TRACE-1)."""
TRACE_EVENTS_MAX = 8
"""Trace events of one advance: a walk with more reasons counts the rest."""
CAPTURE_BYTES_MAX = 64 * KIB
"""The captured record of one advance's decisions."""
CAPTURED_VALUE_BYTES_MAX = 2 * KIB
"""A value in such a record; of a longer one the digest stands there."""
TRACE_SUMMARY_BYTES_MAX = 200
"""One recorded reason; all of them keep within 8192 bytes (TRACE-1)."""
CONDITION_TERMS_MAX = 5_000
"""Terms of all conditions of a document, references followed: a few that refer to each other unfold to millions."""
PATTERN_CHARS_MAX = 1_000
"""Characters of a criterion's pattern."""
PATTERN_SIZE_MAX = 100_000
"""Instructions that one pattern unfolds to at most: the engine takes up to a microsecond for each."""
PATTERNS_SIZE_MAX = 200_000
"""The same of all patterns of a workflow file: a fifth of the second that a file may take."""
PATTERNS_LISTED_SIZE_MAX = 600_000
"""The same of all files that one call reads anew: what is beyond is checked by the next call."""
PATTERNS_KEPT_MAX = 4_096
"""Verdicts on patterns that one process keeps."""
PLAN_NODES_MAX = 5_000
"""Nodes of a compiled plan: what templates unfold to is bounded too."""
PROMPTS_BYTES_MAX = 4_000_000
"""All prompts of a compiled plan: it is pinned and read whole."""
SNIPPET_BYTES_MAX = 4 * KIB
"""One reference snippet inlined into a prompt (PLAN-10)."""
INJECTED_BYTES_MAX = 16 * KIB
"""All that is inlined into one step's prompt (PLAN-10)."""
DIAGNOSTICS_FOUND_MAX = 200
"""Diagnostics that are looked for in one document: a file with more is no workflow, and each costs time."""
DIAGNOSTICS_MAX = 50
"""Diagnostics of one document that an answer carries; the count of the rest is said."""
SOURCE_FILES_MAX = 2_000
"""Files one source directory may hold: a mounted home directory is a mistake."""
WORKFLOW_ID_CHARS_MAX = 128
"""A workflow's id is part of answers and of file names."""
STEP_ID_CHARS_MAX = 100
"""The id of a step and of other parts of a workflow."""
YAML_DIRECTIVES_MAX = 64
"""`%TAG` lines of one text: each is compared with all before it, so that a file of them would take many seconds."""
PATH_CHARS_MATCHED_MAX = 8 * PATH_BYTES_MAX
"""How much of a path is searched for in a file: diagnostics cut theirs long before."""
GUESSED_NAME_CHARS_MAX = 200
"""An unknown name that is compared with the known ones: no name is longer, and comparing takes long."""
GUESS_CANDIDATES_MAX = 100
"""Names that an unknown one is compared with: those of its first letter and its length first."""
GUESS_PREFIX_CHARS_MIN = 3
"""Characters of an unknown name from which a single known one that begins with it is suggested."""
FOUND_CHARS_MAX = 60
"""A text that a diagnostic quotes: enough to find it again."""
SUGGESTED_STEP_BYTES_MAX = 60
"""A step's id within a declaration that a diagnostic suggests: the whole declaration must fit."""
CRITERIA_COMPARED_MAX = 100
"""Criteria of one step that are compared with each other: a step has few, and comparing takes time with their
square."""
TRACE_ENVELOPE_BYTES_MAX = 1_536
"""Of a trace event, all but its reasons: ids, keys, the digest of the captured record, who called."""
CAPTURE_FRAME_BYTES_MAX = 512
"""Of such a record, all but the decisions and effects: the members around them and the count of what was left out."""

# People.
QUESTION_BYTES_MAX = 4_000
"""What a person is asked in one go: clients show it in a dialog."""
REPLY_BYTES_MAX = 4 * KIB
"""One text that a person answers: it is recorded as notes are."""
QUESTION_VALID_MS = DAY_S * 1000
"""How long a question may be answered: until tomorrow, and not by whoever finds it next week."""
CLIENT_NAME_BYTES_MAX = 128
"""A client's name, by its own account, as it is recorded with a reply."""
CLOCK_SKEW_MS_MAX = 60_000
"""How far the clock may have been set back since a question was asked."""
CLIENT_VERSION_BYTES_MAX = 64
"""Its version, likewise."""

# Workspaces and finding sessions again (OBS-2, RES-1, RES-6).
GIT_SECONDS_MAX = 0.3
"""How long git may take to say where a workspace stands: a start does not wait for a slow disk."""
SHORT_STRING_CHARS_MAX = 80
"""A short string of an observation (OBS-2)."""
BRANCH_DIGEST_CHARS = 16
"""The hexadecimal digits that end a shortened branch name: 64 bits, so that two long names are not confused."""
PATH_CHARS_MAX = 512
"""A path of an observation (OBS-2)."""
CANDIDATES_MAX = 5
"""Candidates of one `resume_session` (RES-1)."""
CANDIDATE_SNIPPET_BYTES_MAX = 600
"""What one candidate shows of its notes (RES-6)."""
QUERY_BYTES_MAX = 1 * KIB
"""A query of `resume_session`: a few words."""
SUMMARY_RUNS_MAX = 32
"""Runs of a session whose summary is cached beside it: the cache is written with each append."""
CHECKPOINTS_PER_NODE_MAX = 255
"""Checkpoints of one node: the short token counts them in one byte (CHK-4)."""

# The wire.
SUBSCRIPTIONS_MAX = 1_000
"""Addresses that one client is told the changes of; more are taken and not told."""
LINE_BYTES_MAX = 16 * KIB * KIB
"""Bytes of one line: more than all budgets of one call together, and little enough to hold in memory."""
LINE_DEPTH_MAX = 100
"""Nesting of one message: above every budget for a value inside it, far below what a recursive reader bears."""
LINE_VALUES_MAX = 500_000
"""Values of one message: ten full artifacts of findings have as many, or one of nothing but digits; more take longer
than the second that a call may take, and more memory than a server should need."""
UNANSWERED_MAX = 1024
"""Requests taken and not answered before the reader pauses: each is a task that holds memory."""
UNREAD_LINES_MAX = 1024
"""Lines waiting for a client to read them before nothing more is taken from it."""
DRAIN_SECONDS_MAX = 0.5
"""How long a closed intake waits for the next answer: calls that compute or queue give one by then, and a call
that waits for the client would wait for ever. Clients kill after about two seconds."""
FLUSH_SECONDS_MAX = 1.0
"""How long the last answers wait for a client to read them: one that is alive reads at once."""
LINE_EDGE_BYTES_MAX = 4 * KIB
"""How much is read of either end of a line beyond its bounds: the members of an envelope are short."""
READ_BYTES_MAX = 64 * KIB
"""Bytes of one read of the input: what a pipe holds."""
CACHE_HINT_MS = 3_600_000
"""How long a client may keep what does not change while a server runs."""

# Commands and what they show.
NAMED_MAX = 10
"""Sessions or runs that one message of a command names; the rest is counted."""
CELL_BYTES_MAX = 60
"""A goal or a title in a table or a list of candidates."""
CELL_DESCRIPTION_BYTES_MAX = 80
"""A workflow's name and description in a table; `workflow inspect` shows them whole."""
CELL_FOUND_BYTES_MAX = 100
"""What is wrong with a session, in a table; `session verify` shows it whole."""
GRAPH_LABEL_BYTES_MAX = 160
"""A title or a condition in a drawn graph: of a longer one, the beginning is what helps."""
UNFOLDED_CHARS_MAX = 100_000
"""The width of output that no terminal shows: no line is folded."""
FOLDED_CHARS_MAX = 100
"""Characters of a line that is folded for people: of code in a report, of a workflow file that is written."""
CELL_CHARS_MIN = 8
"""The least width of a table's column without ids; a narrower terminal shows each row as a block of lines."""
TERMINAL_CHARS_MIN = 20
"""The least width of folded text: in a narrower terminal, lines run over."""
SHORT_ID_CHARS_MIN = 6
"""The last characters of a session's id that name it in a table; more if others end in the same."""
RUNS_LISTED = 30
"""Runs on one page of `session list`, without `--limit`."""
TIMELINE_ENTRIES = 50
"""Entries of `session timeline`, without `--limit`."""
STEPS_SHOWN = 5
"""Steps of a run that `session show` shows, the latest, without `--all`."""
AGE_DAYS_MAX = 30
"""Days up to which an age is a number of days; a date says more than a larger number."""
TERMINAL_PROGRESS_S_MIN = 0.3
"""How long a command takes before a terminal shows its progress: a shorter one needs none."""
TERMINAL_PROGRESS_STEP_S = 0.1
"""How long until the progress is shown again."""
COLLECTION_VALUES_MIN = 100_000
"""New values of a command before Python looks for unreachable ones: it makes many and keeps few."""
DEMO_SECONDS_MAX = 60
"""How long the demo waits for its own server to answer all calls of one stage."""
DEMO_LINE_BYTES_MAX = 300
"""A text of an answer as the demo shows it."""
