"""Recognises a plain `interlock serve` before any parser of arguments, and starts it behind a front (FRONT-1).

Plain is what clients start: no other words than the command and its options, written in full. Everything else goes the
ordinary way. Imports next to nothing: a client waits for the first answer.
"""

import gc
import os
import sys

from interlock.config.places import CONFIG_FILE, LOG_LEVELS, nearest_existing, platform_data_dir
from interlock.kernel.budgets import FRONT_SWITCH_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.cli.top.serve import Loaded
    from interlock.server.transport.front import Front

OPTIONS = ("--data-dir", "--workspace", "--workflows-dir", "--core-source")
"""The options of the command; every one takes a directory."""


def serve_if_plain(words: "Sequence[str]") -> int | None:
    """Serve if the command line is a plain one, and return the exit code; else return None and do nothing."""
    options = parse_plain(words)
    if options is None or not _has_pipes():
        return None
    import threading  # noqa: PLC0415 — no other command needs it or the front

    from interlock.server.transport.front import Front  # noqa: PLC0415 — as above

    # Imported code never becomes garbage; the server resumes collection.
    gc.disable()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(FRONT_SWITCH_S)
    front = Front(may_answer=may_answer_at_once(options, os.environ))
    start = _Start(options, front)
    threading.Thread(target=start.run, name="start", daemon=True).start()
    front.serve()
    sys.setswitchinterval(interval)
    return start.serve(front)


def parse_plain(words: "Sequence[str]") -> "dict[str, str] | None":
    """Return the options of a plain command line by their names, or None."""
    options: dict[str, str] = {}
    rest = list(words)
    has_command = False
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "serve" and not has_command:
            has_command = True
        elif name in OPTIONS:
            if not equals:
                value = rest.pop(0) if rest else ""
            if not value or value.startswith("-"):
                return None
            options[name] = value
        else:
            return None
    return options


def may_answer_at_once(options: "Mapping[str, str]", environment: "Mapping[str, str]") -> bool:
    """Say whether the settings are certainly valid: there is no configuration file, and each directory can be used.

    If it is not certain, no client is answered before they have been checked.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 — pathlib is not imported yet
    except OSError:
        return False
    data = options.get("--data-dir") or environment.get("INTERLOCK_DATA_DIR") or platform_data_dir()
    data = os.path.join(here, data)  # noqa: PTH118 — as above
    level = environment.get("INTERLOCK_LOG_LEVEL") or LOG_LEVELS[0]
    named = (options[name] for name in ("--workspace", "--core-source") if name in options)
    return (
        level.upper() in LOG_LEVELS
        and os.path.isdir(nearest_existing(data))  # noqa: PTH112 — as above
        and not os.path.lexists(os.path.join(data, CONFIG_FILE))  # noqa: PTH118 — as above
        and all(map(os.path.isdir, named))
    )


def _has_pipes() -> bool:
    """Say whether all standard streams are open, and no person types. Windows cannot wait for a pipe and a thread."""
    if os.name != "posix":
        return False
    try:
        is_terminal = os.isatty(0)
        os.fstat(1)
        os.fstat(2)
        os.fstat(0)
    except OSError:
        return False
    return not is_terminal


class _Start:
    """Checks the settings and imports the server in a thread; then serves in the main thread."""

    def __init__(self, options: "Mapping[str, str]", front: "Front") -> None:
        self._options, self._front = options, front
        self._loaded: Loaded | int | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run in the thread: what it finds is reported by `serve`."""
        try:
            from interlock.cli.top.serve import check, load, places_of  # noqa: PLC0415 — meanwhile the front answers

            settings = check(places_of(self._options))
            if isinstance(settings, int):
                self._loaded = settings
                return
            self._front.allow()
            self._loaded = load(settings, self._front.source)
        except BaseException as error:  # noqa: BLE001 — it is raised again in the main thread
            self._error = error
        finally:
            self._front.finish()

    def serve(self, front: "Front") -> int:
        """Serve until the client leaves and return the exit code; 2 if a setting is invalid."""
        from types import SimpleNamespace  # noqa: PLC0415 — see the module

        from interlock.cli.frame.edge import run_at_edge  # noqa: PLC0415 — meanwhile the front answers

        return run_at_edge(lambda: self._served(front), SimpleNamespace(command="serve"))

    def _served(self, front: "Front") -> int:
        from interlock.cli.top.serve import serve  # noqa: PLC0415 — see `run`

        if self._error is not None:
            raise self._error
        assert self._loaded is not None, "the thread has ended"
        return self._loaded if isinstance(self._loaded, int) else serve(self._loaded, front)
