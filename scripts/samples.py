"""Print messages and docstrings for a reader who has not seen the repository, to be restated one by one.

    python scripts/samples.py SEED [NUMBER]

A seed draws the same blocks every time. Messages come as people and agents read them: whole answers and refusals, the
help of commands, and the texts of errors, blockers and diagnostics with `<name>` for each value. Docstrings of public
functions and classes come with the signature.
"""

import argparse
import ast
import contextlib
import io
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.golden.conversation import scripted  # noqa: E402 — found only from the root

from interlock.cli.commands import COMMANDS, Group, command_line  # noqa: E402 — as above

_MESSAGE_CALL = re.compile(r"(Error|Refusal|Diagnostic|Finding|finding|fault|warning|warned|stop)$")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def answers() -> list[str]:
    """Return the text of each answer and refusal of the golden conversation."""
    texts = dict.fromkeys(answer.text for answer in scripted().values())
    return [re.sub(r"(.)\1{40,}", r"\1\1\1...", text) for text in texts]


@cache
def helps() -> list[str]:
    """Return the help of every command and group."""
    words: list[list[str]] = [[]]
    for row in COMMANDS:
        words.append([row.name])
        words.extend([row.name, command.name] for command in (row.commands if isinstance(row, Group) else ()))
    return [_help(line) for line in words]


@cache
def messages() -> list[str]:
    """Return the texts of each call in the source that makes an error, a refusal, a blocker or a diagnostic.

    One without a whole sentence is left out: it is part of another message.
    """
    found: dict[str, None] = {}
    for tree in _modules():
        constants = {
            target.id: text
            for node in tree.body
            if isinstance(node, ast.Assign) and (text := _text(node.value, {})) is not None
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call, known in _calls(tree, constants):
            if _MESSAGE_CALL.search(ast.unparse(call.func)):
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                texts = [text for one in given if (text := _text(one, known)) and " " in text]
                if any(text.endswith((".", "?")) for text in texts):
                    found["\n".join(texts)] = None
    return list(found)


def _calls(node: ast.AST, known: dict[str, str]) -> Iterator[tuple[ast.Call, dict[str, str]]]:
    """Yield each call below a node, with the texts that names have there: constants, and the last local assignments."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _calls(child, dict(known))
            continue
        if isinstance(child, ast.Call):
            yield child, dict(known)
        yield from _calls(child, known)
        if isinstance(child, ast.Assign) and len(child.targets) == 1 and isinstance(child.targets[0], ast.Name):
            text = _text(child.value, known)
            if text is not None and " " in text:
                known[child.targets[0].id] = text


@cache
def docstrings() -> list[str]:
    """Return each public docstring below its signature; one that only points to another is left out."""
    return [
        f"{_signature(node, name)}\n{text}"
        for tree in _modules()
        for name, node in _public(tree)
        if (text := ast.get_docstring(node)) and not text.startswith("See `")
    ]


def draw(seed: int, number: int) -> list[str]:
    """Return so many messages, of each kind in turn, and as many docstrings."""
    chance = random.Random(seed)  # noqa: S311 — a draw that can be repeated
    kinds = [chance.sample(kind, len(kind)) for kind in (answers(), helps(), messages())]
    drawn = [kinds[at % len(kinds)].pop() for at in range(number) if kinds[at % len(kinds)]]
    return [*drawn, *chance.sample(docstrings(), number)]


@cache
def _modules() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "src").rglob("*.py"))]


def _text(node: ast.expr, constants: Mapping[str, str]) -> str | None:
    """Return the text of an expression, with `<name>` for each value in it; None if it is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, constants) or f"<{_last_name(part)}>" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = {side: _text(side, constants) for side in (left, right)}
            known = any(text is not None for text in sides.values())
            return "".join(text or f"<{_last_name(side)}>" for side, text in sides.items()) if known else None
        case ast.FormattedValue(value=ast.Name(id=name)) | ast.Name(id=name):
            return constants.get(name)
        case _:
            return None


def _last_name(node: ast.AST) -> str:
    names = re.findall(r"[a-z_]\w*", ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node))
    return str(names[-1]).strip("_") if names else "value"


def _public(node: ast.Module | ast.ClassDef, owner: str = "") -> Iterator[tuple[str, _Definition]]:
    for one in node.body:
        if isinstance(one, _Definition) and not one.name.startswith("_"):
            yield owner + one.name, one
            if isinstance(one, ast.ClassDef):
                yield from _public(one, f"{owner}{one.name}.")


def _signature(node: _Definition, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(ast.unparse, node.bases))
        return f"class {name}({bases})" if bases else f"class {name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"def {name}({ast.unparse(node.args)}){returns}"


def _help(words: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        command_line(words).parse_args([*words, "--help"])
    return printed.getvalue().strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the blocks, numbered, and return the exit code."""
    options = argparse.ArgumentParser(description="Print messages and docstrings to restate.")
    options.add_argument("seed", type=int)
    options.add_argument("number", type=int, nargs="?", default=10)
    given = options.parse_args(arguments)
    print("\n\n".join(f"{at}.\n{block}" for at, block in enumerate(draw(given.seed, given.number), 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
