"""`packaging/Dockerfile`, as far as it can be judged without a container engine: what it copies, installs and starts.

No image is built here. The instructions are read, the copies are made among plain files, and the package is installed
from those files by the very words of the Dockerfile, so that a file that is missing in the image is missed here.
"""

import fnmatch
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / "packaging" / "Dockerfile.dockerignore").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions in their order: each with its keyword and the rest."""
    whole = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in whole.splitlines() if line]


def stages() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage, without its `FROM`."""
    found: list[list[tuple[str, str]]] = []
    for keyword, rest in instructions():
        if keyword == "FROM":
            found.append([])
        elif found:
            found[-1].append((keyword, rest))
    return found


BUILD, FINAL = stages()


def said(keyword: str) -> str:
    (rest,) = (rest for name, rest in FINAL if name == keyword)
    return rest


def copies() -> list[tuple[list[str], str]]:
    """Return what is copied from the checkout, and where to below the working directory."""
    words = [rest.split() for keyword, rest in BUILD if keyword == "COPY"]
    return [(sources, target) for *sources, target in words]


def is_ignored(path: str) -> bool:
    """Return whether the last pattern that speaks of a path, or of a directory above it, leaves it out."""
    places = [path, *(parent.as_posix() for parent in Path(path).parents if parent.name)]
    verdict = False
    for line in IGNORED.splitlines():
        pattern = line.removeprefix("!")
        names = [pattern, pattern.removeprefix("**/")]
        if line and not line.startswith("#") and any(fnmatch.fnmatch(p, n) for p in places for n in names):
            verdict = not line.startswith("!")
    return verdict


def test_both_stages_begin_with_the_same_base_which_is_pinned_by_the_digest_that_the_builder_names() -> None:
    bases = [rest.split()[0] for keyword, rest in instructions() if keyword == "FROM"]
    assert len(set(bases)) == 1
    tag, _, digest = bases[0].partition("@")
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", tag), "a tag that says version and distribution, not `latest`"
    assert digest == "${BASE_DIGEST}"
    assert instructions()[0] == ("ARG", "BASE_DIGEST"), "without a default: a build that names no digest stops"


def test_what_changes_seldom_is_copied_first() -> None:
    steps = [f"{keyword} {rest}" for keyword, rest in BUILD if keyword != "WORKDIR"]
    pinned, requirements, project, source, package = (
        next(at for at, step in enumerate(steps) if word in step)
        for word in ("COPY requirements/run.txt", "--require-hashes", "COPY pyproject.toml", "COPY src", "--no-deps")
    )
    assert pinned < requirements < project < source < package


def test_every_path_that_is_copied_exists_and_is_sent_to_the_builder_and_nothing_else_is() -> None:
    sources = {source for found, _ in copies() for source in found}
    assert [source for source in sources if not (ROOT / source).exists() or is_ignored(source)] == []
    assert is_ignored("src/interlock/__pycache__/version.cpython-311.pyc")
    others = {path.name for path in ROOT.iterdir()} - sources - {"requirements"}
    assert [name for name in others if not is_ignored(name)] == []
    assert is_ignored("requirements/dev.txt")


def test_the_image_runs_as_a_user_of_its_own_who_alone_can_read_the_state() -> None:
    made = said("RUN")
    user = said("USER")
    assert user not in {"root", "0"}
    assert f"useradd --uid 10001 --no-create-home {user}" in made
    assert f"install --directory --owner {user} --group {user} --mode 0700 {said('VOLUME')}" in made
    order = [keyword for keyword, _ in FINAL]
    assert order.index("RUN") < order.index("USER") < order.index("ENTRYPOINT")
    assert order.index("RUN") < order.index("VOLUME"), (
        "a volume takes the modes of what stands there when it is declared"
    )


def test_the_package_is_installed_compiled_from_what_is_copied_and_its_entry_point_serves(tmp_path: Path) -> None:
    place, installed = tmp_path / "build", tmp_path / "installed"
    for sources, target in copies():
        for source in sources:
            copy(ROOT / source, place / target / ("" if (ROOT / source).is_dir() else source.rsplit("/", 1)[-1]))
    (line,) = (rest for keyword, rest in BUILD if keyword == "RUN" and "--no-deps" in rest)
    program, *words = shlex.split(line)
    assert Path(program).parts[:3] == ("/", "opt", "interlock")
    offline = ["--no-index", "--disable-pip-version-check", "--quiet", "--target", str(installed)]
    subprocess.run([sys.executable, *words, *offline], cwd=place, check=True, capture_output=True)
    compiled = list((installed / "interlock").rglob("*.pyc"))
    assert len(compiled) == len(list((ROOT / "src" / "interlock").rglob("*.py")))
    name, *arguments = json.loads(said("ENTRYPOINT"))
    assert arguments == ["serve", "--data-dir", said("VOLUME")]
    arguments[-1] = str(tmp_path / "data")
    served = subprocess.run(
        [sys.executable, str(installed / "bin" / name), *arguments],
        env={"PYTHONPATH": str(installed), "HOME": "/nonexistent"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (served.returncode, served.stderr) == (0, b"")


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def test_the_final_stage_finds_what_the_first_one_installed() -> None:
    (copied,) = (rest for keyword, rest in FINAL if keyword == "COPY")
    stage, source, target = copied.split()
    assert (stage, source) == ("--from=build", target), "a virtual environment works only where it was made"
    assert said("ENV").startswith(f"PATH={target}/bin:")
    assert any(f"-m venv {target}" in rest for keyword, rest in BUILD if keyword == "RUN")


@pytest.mark.parametrize("name", ["requirements/run.txt", "pyproject.toml", "src/interlock/cli/main.py"])
def test_the_ignored_patterns_are_read_as_they_are_meant(name: str) -> None:
    assert not is_ignored(name)
    assert is_ignored(f"tests/{name}")
