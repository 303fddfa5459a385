"""Limits of workflow documents, of receipts and of proofs, each with its reason and its unit, as in `budgets`."""

from interlock.kernel.budgets import CONTEXT_BYTES_MAX, KIB, PATH_BYTES_MAX

DOCUMENT_BYTES_MAX = 1_000_000
"""A workflow file: people do not write larger ones."""
STATED_ID_BYTES_MAX = 64_000
"""Of a workflow file that cannot be parsed, the beginning in which its id is searched."""
STATED_ID_CHARS_MAX = 128
"""The longest id that is found there."""
YAML_BYTES_MAX = 500_000
"""A workflow file in YAML: a megabyte of brackets is a million events and takes longer than the limit of a second."""
DOCUMENT_DEPTH_MAX = 64
"""Nesting of a workflow file."""
DOCUMENT_VALUES_MAX = 100_000
"""Values of a workflow file: a megabyte that people write has a quarter of them. In YAML each key is one."""
STEPS_MAX = 2_000
"""Steps of a workflow: the plan is pinned and read as a whole."""
PROMPT_BYTES_MAX = 32 * KIB
"""A rendered step prompt: clients cut answers beyond about 40 kB."""
TITLE_CHARS_MAX = 200
"""Titles and names are shown on one line."""
DESCRIPTION_CHARS_MAX = 2_000
"""A workflow's description is shown in a list."""
PATTERN_MEMORY_BYTES_MAX = 8 * KIB * KIB
"""Memory of one compiled pattern of a criterion: a short pattern can compile to a large program."""
REQUIREMENT_LINES_MAX = 5
"""Lines that describe to an agent what evidence a step needs: agents do not read more (PLAN-13)."""
LOOP_PASSES_MAX = 1_000
"""Passes of one loop: more is a program, not a workflow."""
LOOP_DEPTH_MAX = 8
"""Nested loops: each adds to the key of every step inside it."""
CHOICE_DEPTH_MAX = 16
"""Nested branches and blocks: deeper nesting is unreadable, and functions over them recurse."""
PLAN_DEPTH_MAX = 32
"""Nested decisions and branches of a plan file: a step with a condition is a decision around the step, so each level of
steps is at most two levels of a plan."""
WALK_NODES_MAX = 20_000
"""Nodes that one advance may resolve without a step: loops whose steps are all skipped must end in one call."""
TRACE_ENTRIES_MAX = 25
"""Reasons of one trace event (TRACE-1)."""
TRACE_BYTES_MAX = 8192
"""Bytes of one trace event's reasons (TRACE-1)."""
TRACE_EVENTS_MAX = 8
"""Trace events of one advance: an advance with more reasons records the number of the others."""
CAPTURE_BYTES_MAX = 64 * KIB
"""The captured record of one advance's decisions."""
CAPTURED_VALUE_BYTES_MAX = 2 * KIB
"""A value in such a record; a longer one is replaced by its digest."""
TRACE_SUMMARY_BYTES_MAX = 200
"""One recorded reason; all together have at most 8192 bytes (TRACE-1)."""
CONDITION_TERMS_MAX = 5_000
"""Terms of a document's conditions and values, references expanded: a few such terms can expand to millions."""
STEPS_FOLLOWED_MAX = 100
"""Steps after one that removes a key in which it is searched: the time grows with the product of both numbers."""
VALUE_DEPTH_MAX = 16
"""Nested computed values: deeper nesting is unreadable, and functions over them recurse."""
PATTERN_CHARS_MAX = 1_000
"""Characters of a criterion's pattern."""
PATTERN_SIZE_MAX = 100_000
"""Instructions that one pattern may compile to: the engine takes up to a microsecond for each."""
PATTERNS_SIZE_MAX = 200_000
"""The same for all patterns of a workflow file: a fifth of the second that a file may take."""
PATTERNS_LISTED_SIZE_MAX = 600_000
"""The same for all files that one call reads for the first time: the next call checks the others."""
COMPILED_LISTED_BYTES_MAX = 500_000
"""Workflow files that one list compiles for the first time: a tenth of a second; the next list continues."""
PATTERNS_KEPT_MAX = 4_096
"""Results of pattern checks that one process keeps."""
COMPILED_PATTERNS_KEPT_MAX = 128
"""Compiled patterns that one process keeps: the words of a search, and the criteria of the steps at work."""
PLAN_NODES_MAX = 5_000
"""Nodes of a compiled plan: the expansion of templates is limited, too."""
PROMPTS_BYTES_MAX = 4_000_000
"""All prompts of a compiled plan: it is pinned and read as a whole."""
SNIPPET_BYTES_MAX = 4 * KIB
"""One reference snippet inlined into a prompt (PLAN-10)."""
INJECTED_BYTES_MAX = 16 * KIB
"""Everything that is inlined into one step's prompt (PLAN-10)."""
DIAGNOSTICS_FOUND_MAX = 200
"""Diagnostics at which the check of a document stops: a file with more is not a workflow, and each costs time."""
DIAGNOSTICS_MAX = 50
"""Diagnostics of one document that an answer lists; it gives the number of the others."""
SOURCE_FILES_MAX = 2_000
"""Files that one source directory may hold: a mounted home directory is a mistake."""
WORKFLOW_ID_CHARS_MAX = 128
"""A workflow's id is part of answers and of file names."""
STEP_ID_CHARS_MAX = 100
"""The id of a step and of other parts of a workflow."""
LONG_NAME_CHARS = 50
"""From here on, a name that is suggested instead is no longer: each kind of name may have some more characters."""
YAML_DIRECTIVES_MAX = 64
"""`%TAG` lines of one file: each is compared with all before it, so a file of them would take many seconds."""
PATH_CHARS_MATCHED_MAX = 8 * PATH_BYTES_MAX
"""Parts of a path that are located in a file: the paths of diagnostics are cut much earlier."""
GUESSED_NAME_CHARS_MAX = 200
"""An unknown name that is compared with the known ones: no known name is longer, and comparing takes long."""
GUESS_CANDIDATES_MAX = 100
"""Names that an unknown one is compared with: first those with its first letter and a similar length."""
GUESS_PREFIX_CHARS_MIN = 3
"""Characters that an unknown name needs, so that the only known name that begins with it is suggested."""
FOUND_CHARS_MAX = 60
"""A text that a diagnostic quotes: enough to find it again."""
SUGGESTED_STEP_BYTES_MAX = 60
"""A step's id within a declaration that a diagnostic suggests: the whole declaration must fit."""
CRITERIA_COMPARED_MAX = 100
"""Criteria of one step that are compared with each other: a step has few, and the time grows with the square of their
number."""
TRACE_ENVELOPE_BYTES_MAX = 1_536
"""A trace event without its reasons: ids, keys, the digest of the captured record, the client."""
CAPTURE_FRAME_BYTES_MAX = 512
"""A captured record without its decisions and effects: the other members and the number of those left out."""
EVENT_FIELDS_MAX = 20
"""Fields of one event or intent: each is declared by hand."""
EMITS_PER_STEP_MAX = 8
"""Intents of one step: each has a place in the plan and is sent by itself."""
TREE_SECONDS_MAX = 2
"""How long git may take to list the changes of a working tree: a report and a command wait for it."""
TREE_STATUS_BYTES_MAX = 4_000_000
"""What is read of that list: some ten thousand changed files."""
TREE_FILES_MAX = 2_000
"""Changed files whose content is read for the digest of a working tree: it is read with each report that needs it."""
TREE_BYTES_MAX = 64_000_000
"""Their bytes together, for the same reason."""
KEPT_OUTPUT_AS_JSON = 1.5
"""How much larger kept output may be as JSON: the most that is kept, times this, fits in the fields of an event."""
RECEIPT_OUTPUT_BYTES_MAX = 2 * KIB
"""What a receipt keeps of the end of the output: the summary of a test run."""
RECEIPT_PATH_BYTES_MAX = 512
"""What a receipt keeps of the path of a program, or of another path that it does not keep whole."""
RECEIPT_ROOT_BYTES_MAX = 4 * KIB
"""The path of the repository as JSON, which a receipt keeps whole: no path on Linux is longer."""
RECEIPT_DIRECTORY_BYTES_MAX = KIB
"""The path of the directory as JSON up to which a receipt keeps it whole."""
PROOF_COMMAND_CHARS_MAX = 300
"""The command of a proof: a refusal shows it whole."""
PROOFS_PER_STEP_MAX = 4
"""Proofs of one step: each is a command that is run before each report."""
RECEIPTS_COMPARED_MAX = 20
"""Receipts of other steps that a refused report is compared with, to say why none counts."""
RECEIPTS_PER_RUN_MAX = 1_000
"""Receipts of a run: each is looked through when a report is refused."""
CLAIMED_RECEIPTS_MAX = 500
"""How many of them may be claims: what is known better must always find a place."""
PROTECTED_FILES_MAX = 2_000
"""Files that the `protect` patterns of one check may match: each is read twice in a run."""
PROTECTED_BYTES_MAX = 64_000_000
"""Their bytes together, for the same reason."""
CHECK_BUSY_TRIES_MAX = 30
"""How often the result of a check is tried to be recorded while another process holds its session."""
SCRIPT_LINE_BYTES_MAX = 256
"""How much of a script the system reads to find its interpreter."""
TITLE_VALUES_BYTES_MAX = 1_000
"""Context values that the placeholders of one title insert. A title is one line, and lists show those of all steps."""
INSERTED_BYTES_MAX = CONTEXT_BYTES_MAX
"""Context values that the placeholders of one prompt insert: once all of a context. A prompt of 32 KiB has room for
thousands of placeholders, and each of them may insert a long value (PLAN-24)."""
