"""Puts off the parts of the SDK that a server does not use (FRONT-3)."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType

_PACKAGES = ("mcp", "mcp.server")
"""Packages whose `__init__` imports clients and a second kind of server, to offer them under shorter names."""
_loading = RLock()


def defer_packages() -> None:
    """Import `mcp` and `mcp.server` without running their `__init__`, which saves a quarter of the SDK's time.

    Their modules can be imported as usual. Who asks one of the two for a name of its own, as a channel that is a
    client does, runs its `__init__` then. Does nothing if the SDK is imported already.
    """
    if sys.modules.keys() & {*_PACKAGES}:
        return
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None, "the SDK is a requirement"
        package = importlib.util.module_from_spec(spec)
        package.__dict__["__getattr__"] = _Deferred(package, spec)
        sys.modules[name] = package
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, package)


class _Deferred:
    """The `__getattr__` of a package that was not run: imports the module of this name, or runs the package."""

    def __init__(self, package: ModuleType, spec: ModuleSpec) -> None:
        self._package, self._spec = package, spec

    def __call__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        module = f"{self._spec.name}.{name}"
        if importlib.util.find_spec(module) is not None:
            return importlib.import_module(module)
        with _loading:
            if self._package.__dict__.pop("__getattr__", None) is not None:
                assert self._spec.loader is not None, "it is a package with an `__init__`"
                self._spec.loader.exec_module(self._package)
        return getattr(self._package, name)
