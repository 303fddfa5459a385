"""The reference page of the diagnostics: every code, whether it keeps a file from running, and its usual fix."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from interlock.define.diagnostics import DiagnosticCode


class Entry(NamedTuple):
    """What the page says of a code. `either`: an error, and a warning where the meaning says so."""

    meaning: str
    fix: str
    severity: Literal["error", "warning", "either"] = "error"


_FORM: Mapping[DiagnosticCode, Entry] = {
    "too_large": Entry(
        "The file has more bytes or more values than a workflow file may have.", "Refer to long texts by path instead."
    ),
    "not_utf8": Entry(
        "The file is not UTF-8, cannot be read, or a string contains half of a surrogate pair.",
        "Save it as UTF-8; check its permissions.",
    ),
    "not_json": Entry("The text is not JSON.", "Correct it at the line and column."),
    "not_yaml": Entry(
        "The text is not YAML, or uses an anchor, an alias, a tag or a second document.", "Write the value out."
    ),
    "duplicate_key": Entry("A key occurs twice in one object.", "Keep one of them."),
    "too_deep": Entry("Values are nested too deeply.", "Flatten the document."),
    "not_an_object": Entry("The file contains a list or a single value.", "Begin with `id`, `name` and `steps`."),
    "number_not_exact": Entry("A number cannot be kept exactly.", "Write it as text."),
    "unknown_version": Entry(
        "A plan file has a version that this Interlock does not know.",
        "Open it with a newer Interlock, or export it again with this one.",
    ),
    "unknown_key": Entry(
        "A key is not allowed at this place. A warning for an argument that a routine does not have.",
        "Correct its spelling, or remove it.",
        "either",
    ),
    "missing_key": Entry("A required key is missing.", "Add it."),
    "wrong_type": Entry(
        "A value has the wrong type. A warning for a placeholder in a text that reads a member of what is no object.",
        "Write the type that the message names.",
        "either",
    ),
    "wrong_value": Entry(
        "A value is not one of those allowed, or keys contradict each other.", "Write what the fix names."
    ),
    "empty": Entry(
        "A text or a list that needs content is empty. In the WorkRail dialect, a text of only spaces is a warning.",
        "Write something, or remove the key.",
        "either",
    ),
    "too_long": Entry("A text is too long, or inlined text makes a prompt too long.", "Shorten it; use `references`."),
    "too_many": Entry(
        "Too many entries, steps, terms or levels, or more faults than are listed (of warnings only: a warning).",
        "Use fewer; split the workflow. Correct the listed faults first.",
        "either",
    ),
    "bad_id": Entry("An id is malformed.", "Use a-z, 0-9, `_` and `-`; a workflow's id has one dot."),
    "duplicate_id": Entry(
        "Two steps, features, inputs, assessments, dimensions, levels, functions or other parts have the same name. In"
        " the WorkRail dialect some of these are warnings.",
        "Rename one of them.",
        "either",
    ),
    "reserved_namespace": Entry(
        "The id begins with `wr.`, which is reserved for files that ship with Interlock.", "Rename it."
    ),
    "id_taken": Entry("Another file with higher priority has the same id.", "Give one of the two another id."),
    "prompt_missing": Entry("A step has no prompt.", "Add `prompt` or `promptBlocks`."),
    "prompt_twice": Entry("A step has both `prompt` and `promptBlocks`.", "Keep one of them."),
    "legacy_id": Entry("The id has no namespace.", "Rename it as suggested. The file still runs.", "warning"),
    "bad_pattern": Entry(
        "A pattern is not RE2, or is too large, alone or with the others of its file.",
        "Use no look-around and no back-reference; repeat less.",
    ),
    "duplicate_consequence": Entry("One level of an assessment has two consequences.", "Join the two."),
    "loop_condition_missing": Entry("A loop has no end condition, or several.", "Write exactly one."),
    "loop_decision_missing": Entry(
        "A loop depends on loop control, but no step decides at the end of every iteration.",
        "Give its last step, without `when`, the contract `wr.contracts.loop_control`.",
    ),
}
_NAMES: Mapping[DiagnosticCode, Entry] = {
    "unknown_step": Entry("A loop's body names a step that does not exist (WorkRail dialect).", "Correct the name."),
    "unknown_condition": Entry("No condition has this name.", "Correct it, or define it in `conditions`."),
    "unknown_template": Entry("There is no such routine.", "Use one of the built-in ones."),
    "unknown_feature": Entry("There is no such feature.", "Use one of the built-in ones."),
    "unknown_reference": Entry("There is no such `wr.refs.*`.", "Use one of the built-in ones."),
    "unknown_slot": Entry("There is no such slot.", "Correct it, or define it in `extensionPoints`."),
    "unknown_assessment": Entry(
        "There is no such assessment, or the step does not ask for it.", "Define it, and name it in `assessmentRefs`."
    ),
    "unknown_level": Entry("No dimension has this level.", "Use one that is declared."),
    "unknown_function": Entry(
        "There is no such function. A warning in the WorkRail dialect.",
        "Correct it, or define it in `functionDefinitions`.",
        "either",
    ),
    "unknown_contract_ref": Entry("There is no such contract for artifacts.", "Use one of the built-in packs."),
    "unknown_capability": Entry("There is no such capability.", "Use `delegation` or `web_browsing`."),
    "undeclared_key": Entry(
        "A condition, a loop or `needs` reads an undeclared context key; or a loop's condition reads one that only"
        " steps produce; or a step sets a key that `inputs` does not declare. A warning for a placeholder in a text.",
        "Declare it in `inputs`, or in `produces` of the step that provides it.",
        "either",
    ),
    "constant_comparison": Entry(
        "A condition compares a declared key only with values that its type or its `choices` exclude, so the comparison"
        " always has the same result.",
        "Write a value that the key can have.",
        "warning",
    ),
    "duplicate_write": Entry("One step sets a context key twice.", "Keep one of the two."),
    "same_pass_read_after_write": Entry(
        "An action of `set` reads a key that another action of the same step sets: it reads the old value.",
        "For the new value, read the source that the other action uses.",
        "warning",
    ),
    "missing_argument": Entry("A call of a routine lacks a required argument.", "Add it to `args`."),
    "template_recursion": Entry("A routine calls another routine.", "Write its steps out."),
}
_PLAN: Mapping[DiagnosticCode, Entry] = {
    "duplicate_node_id": Entry(
        "Two parts of the plan have the same id: a step has the id of a part that Interlock adds.", "Rename the step."
    ),
    "duplicate_edge_id": Entry("Two edges of a plan have the same id.", "Keep one of them."),
    "dangling_edge": Entry(
        "An edge or a loop names a node that does not exist or that is in another graph.", "Correct it."
    ),
    "unreachable_terminal": Entry(
        "A terminal node cannot be reached or has outgoing edges, or a node leads to no terminal node.", "Connect it."
    ),
    "no_terminal_node": Entry("A graph has no terminal node.", "Add a terminal node."),
    "missing_evidence_schema": Entry("A node has no evidence schema.", "Name a contract."),
    "missing_input_schema": Entry("A node has no input schema.", "Name a contract."),
    "missing_condition": Entry("A conditional edge or a loop has no condition.", "Give it one."),
    "self_loop": Entry("An edge leads back to its own node.", "Use a loop."),
    "invalid_identifier": Entry("An id contains characters that step keys use.", "Use a-z, 0-9, `_` and `-`."),
    "no_default_branch": Entry(
        "A choice has no branch for the case that all conditions are false.", "Add `otherwise`; `[]` for nothing."
    ),
    "unreachable_node": Entry("No path leads from the entry to a node.", "Add an edge to it."),
    "missing_entry": Entry("Every node of a graph has an incoming edge.", "Make one node the first."),
    "unbounded_loop": Entry(
        "A path leads back to an earlier node, or a loop has no bound.", "Use a loop with `maxIterations`."
    ),
    "automatic_cycle": Entry("A loop can run without reaching any step.", "Put a step into its body."),
    "unfit_node": Entry(
        "A node, a loop or an edge lacks a field that its kind needs, or has a field of another kind.",
        "Add or remove it.",
    ),
    "isolated_node": Entry("A node has no edges.", "Connect it, or remove it.", "warning"),
    "unassessed_outcome": Entry(
        "No step asks for an assessment, or nothing assesses an outcome of a contract.",
        "Name it in `assessmentRefs`, or add an assessment binding.",
        "warning",
    ),
    "gameable_validation": Entry(
        "Notes can meet the criterion without the work: one word, or a phrase such as `done: yes`.",
        "Use `outputContract`, or criteria that only the work can meet.",
        "warning",
    ),
}
_OPERATIONS: Mapping[DiagnosticCode, Entry] = {
    "unknown_definition": Entry(
        "No definition has this id and version, or it is of another kind.", "Correct the reference, or add the file."
    ),
    "unknown_outcome": Entry("A binding assesses an outcome that the contract does not require.", "Correct the id."),
    "assessment_terminal": Entry(
        "A flow that assesses an outcome has no terminal slot or several.", "Let one slot come last."
    ),
    "invalid_port_mapping": Entry("A mapping names a port that the block does not have.", "Correct the name."),
    "circular_contract": Entry("A contract includes itself, directly or through others.", "Remove one of them."),
    "version_taken": Entry(
        "A version of a definition exists with other content.", "Give the changed definition the next version."
    ),
    "predicate_not_read": Entry(
        "A predicate has a form that Interlock does not evaluate. An agent decides by the description.",
        "Write a condition of workflow files, or JSONLogic with the stated operators.",
        "warning",
    ),
}
_PARTS = (
    ("The form of a file", _FORM),
    ("Names and references", _NAMES),
    ("The compiled plan", _PLAN),
    ("Blocks, flows and contracts", _OPERATIONS),
)
_INTRO = """# Diagnostics

Each diagnostic has a path (`steps[2].when`), a message and a fix; in files also line and column. All diagnostics of a
file are reported at once. A file with an *error* cannot run; a file with *warnings* can."""


def described_codes() -> dict[DiagnosticCode, Entry]:
    """Return what the page says of each code."""
    return {code: entry for _, codes in _PARTS for code, entry in codes.items()}


def diagnostics_page() -> str:
    """Return the reference page of the diagnostic codes."""
    return "\n\n".join([_INTRO, *(f"## {title}\n\n{_table(codes)}" for title, codes in _PARTS)]) + "\n"


def _table(codes: Mapping[DiagnosticCode, Entry]) -> str:
    rows = [f"| `{code}` | {entry.severity} | {entry.meaning} | {entry.fix} |" for code, entry in codes.items()]
    return "\n".join(["| code | severity | meaning | usual fix |", "|---|---|---|---|", *rows])
