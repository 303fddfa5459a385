"""Every number that somebody chose as a limit, a wait or a size has one home, with its reason and in its unit."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from interlock.kernel import budgets
from interlock.kernel.budgets import console, drive, files, operations, pictures, threads, workflow

TESTS = Path(__file__).parent.parent
SRC = TESTS.parent / "src" / "interlock"
BUDGETS = {
    Path(str(module.__file__)): module
    for module in (budgets, console, drive, files, operations, pictures, threads, workflow)
}
FORMAT = "part of a format: another number is another format"
MEASURED = "measured on the engine, which fixes it"
CODE = "a code or a mode that the operating system fixes"
UNIT = "a unit of time or of size"
RULE = "part of a rule that says what something is, not how much of it is taken"
SIMULATED = "a property of what a test simulates"

# Grows only with a reason beside it; a stale entry fails.
NO_LIMIT = {
    "channels/check.py": {"_NOT_STARTED": CODE},
    "config/checks.py": {"TAKEN": CODE},
    "channels/http.py": dict.fromkeys(["_SUCCESS", "_REFUSED", "_SERVER_FAULT"], FORMAT),
    "cli/frame/edge.py": {"FAILED": CODE, "INTERRUPTED": CODE},
    "cli/render/phrases.py": {"_MINUTE": UNIT, "_HOUR": UNIT, "_DAY": UNIT},
    "cli/frame/running.py": {"NOT_PRINTED": CODE},
    "cli/outside/pass_through.py": {"_OUT": CODE, "_ERR": CODE, "_FLAGS": FORMAT},
    "cli/outside/witness.py": dict.fromkeys(["_NOT_FOUND", "_NOT_STARTED", "_BY_SIGNAL", "_WRONG_USE"], CODE),
    "cli/screen.py": {"_UNIT_STEP": UNIT},
    "cli/session/list.py": {"_MINUTE": UNIT},
    "cli/upkeep/keys.py": {"PRIVATE_FILE": CODE, "PRIVATE_DIRECTORY": CODE},
    "cli/workflow/validate.py": {"_BAR_WIDTH": "a drawing: it holds any number of files"},
    "console/log_cache.py": {"_LOOK_SHARE": RULE},
    "decide/pattern_size.py": dict.fromkeys(
        ["_FRAME", "_CATEGORY", "_SET", "_CHAR", "_CHAR_FOLDED", "_WIDE", "_WIDE_FOLDED"], MEASURED
    ),
    "drive/conversation/messages.py": {"_PART_DEPTH_MAX": "half of the depth of an artifact, which holds such a value"},
    "drive/record.py": {"RECORD_VERSION": FORMAT},
    "drive/telemetry/cloud_events.py": {"_FILE_MODE": CODE},
    "drive/telemetry/metrics.py": {"_MS": UNIT},
    "drive/telemetry/spans.py": {"_NANOSECONDS": UNIT},
    "cli/render/out_file.py": {"PRIVATE": CODE, "SHARED": CODE},
    "drive/tools/workspace.py": {"_NEW_FILE_MODE": CODE},
    "engine/answer/secret_scanning.py": {"_FORM_CHARS_MIN": RULE, "_OPAQUE_CHARS_MIN": RULE, "_OPAQUE_BITS_MIN": RULE},
    "engine/outside.py": {"KEY_BYTES": FORMAT},
    "engine/walk/capture.py": {"CAPTURE_VERSIONS": FORMAT},
    "kernel/canonical.py": {"SAFE_INTEGER_MAX": FORMAT, "_WRITTEN_IN_DIGITS_MAX": FORMAT},
    "kernel/ids.py": {
        "_BODY_CHARS": FORMAT,
        "_BODY_BITS": FORMAT,
        "NODE_TAG_CHARS": FORMAT,
        "LABEL_CHARS": FORMAT,
        "LABEL_CHARS_ON_CLASH": FORMAT,
    },
    "plan/check/set_checks.py": {"_ASSESSMENT_PARTS": FORMAT},
    "record/base.py": {"SHORT": FORMAT},
    "record/world.py": {"EXIT_UNKNOWN": CODE},
    "record/bundle.py": {"_VERSION": FORMAT},
    "record/short_tokens.py": dict.fromkeys(["_VERSION", "_BODY_CHARS", "_MAC_BYTES", "_SESSION_BYTES"], FORMAT),
    "service/report/notes.py": {"_INDENT": FORMAT},
    "service/report/markdown.py": {"_FENCE_MIN": FORMAT},
    "service/run/observations.py": {"_SHA1_CHARS": FORMAT},
    "store/git.py": {"_SHA_CHARS": FORMAT, "_ENDS": FORMAT},
    "store/local/files.py": {"_FILE_MODE": CODE, "_DIR_MODE": CODE, "_F_FULLFSYNC": CODE},
    "store/local/keyring.py": {"_KEY_BYTES": FORMAT},
    "store/local/live.py": {"_PARENT": FORMAT, "_START": FORMAT},
    "store/local/session/reading.py": {"_NULS_MIN": RULE},
    "store/local/session/summary_file.py": {"VERSION": FORMAT},
    "testing/harness.py": {"FIXED_UNIX_MS": SIMULATED},
    "testing/store_contract.py": {"_WAIT_S_MAX": SIMULATED},
    "testing/upkeep_contract.py": {"_DAY_S": UNIT, "_TTL_S": SIMULATED, "_SWEEPS_MAX": SIMULATED},
    "testing/power_cut.py": {"_SECTOR_BYTES": SIMULATED, "_ROOT": SIMULATED, "COMBINATIONS_MAX": SIMULATED},
    "views/session.py": {"NO_STEPS": FORMAT},
    "views/picture/layout.py": dict.fromkeys(
        ["BOX_WIDTH", "LINE_HEIGHT", "_CHARS", "_PADDING", "_GAP", "_FRAME", "_HEAD", "_TEXT_GAP"], FORMAT
    ),
    "views/picture/svg.py": {"_TIP": FORMAT},
    "views/picture/time_picture.py": dict.fromkeys(
        [
            *("_LABELS", "_TRACK", "_WORDS", "_HEAD", "_ROW", "_BAR", "_MARGIN", "_PAUSE", "_OPEN", "_LEAST"),
            *("_TITLE_CHARS", "_TEXT_TRACK"),
        ],
        FORMAT,
    ),
    "views/summary.py": {"SUMMARY_VERSION": FORMAT},
}


def is_number(value: ast.expr) -> bool:
    """Say whether an expression is a number, written out or computed of numbers."""
    match value:
        case ast.Constant():
            return type(value.value) in (int, float)
        case ast.UnaryOp():
            return is_number(value.operand)
        case ast.BinOp():
            is_text = any(
                isinstance(one, ast.Constant) and isinstance(one.value, str | bytes) for one in ast.walk(value)
            )
            return not is_text and (is_number(value.left) or is_number(value.right))
        case _:
            return False


def pairs(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement assigns, each with its value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    for target in targets:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from ((ast.unparse(name), one) for name, one in zip(target.elts, value.elts, strict=True))
        elif isinstance(value, ast.Tuple):
            yield from ((ast.unparse(target), one) for one in value.elts)
        elif value is not None:
            yield ast.unparse(target), value


def numbers(text: str) -> set[str]:
    return {name for statement in ast.parse(text).body for name, value in pairs(statement) if is_number(value)}


@pytest.mark.inv("LIM-6")
def test_no_module_but_the_budgets_states_a_limit_and_no_exception_is_stale() -> None:
    found = {
        path.relative_to(SRC).as_posix(): names
        for path in SRC.rglob("*.py")
        if path not in BUDGETS and (names := numbers(path.read_text(encoding="utf-8")))
    }
    assert found == {where: set(names) for where, names in NO_LIMIT.items()}


@pytest.mark.parametrize(
    "text", ["A = 5", "_B_MAX: int = 5", "C = -1", "D = 4 * KIB", "E, F = 1, 2", "G = (0.1, 0.2)"], ids=ascii
)
def test_a_number_is_found_however_it_is_written(text: str) -> None:
    assert numbers(text)


def imported(path: Path) -> set[str]:
    """Return the names that a module imports."""
    froms = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in froms for alias in node.names}


@pytest.mark.inv("LIM-6")
@pytest.mark.parametrize("path", BUDGETS, ids=lambda path: path.stem)
def test_every_budget_gives_its_reason_and_is_used(path: Path) -> None:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    after = dict(pairwise(body))
    named = {name: after.get(statement) for statement in body for name, _ in pairs(statement)}
    assert set(named) == {name for name in vars(BUDGETS[path]) if name.isupper()} - imported(path)
    reasons = [name for name, reason in named.items() if isinstance(reason, ast.Expr)]
    assert reasons == list(named), "a text follows each"
    # The snippets of the built-ins are the project's own, so a test checks their size and no code does.
    used = {
        node.id
        for one in [*SRC.rglob("*.py"), *TESTS.rglob("test_registry.py")]
        for node in ast.walk(ast.parse(one.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert set(named) - used == set()
