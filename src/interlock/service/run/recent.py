"""A thread-safe cache of limited size that drops the least recently used value."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """The most recently used values, at most `kept_max` of them."""

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._mutex = threading.Lock()

    def find(self, key: _Key) -> _Value | None:
        """Return a kept value, or None."""
        with self._mutex:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get(self, key: _Key, load: Callable[[], _Value]) -> _Value:
        """Return a kept value, or load the value. Two threads may load the same value; one result is kept."""
        value = self.find(key)
        if value is None:
            value = load()
            self.put(key, value)
        return value

    def put(self, key: _Key, value: _Value) -> None:
        """Keep a value, and drop the one used longest ago."""
        with self._mutex:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._kept_max:
                self._values.popitem(last=False)

    def forget(self, key: _Key) -> None:
        """Drop a value, if it is kept."""
        with self._mutex:
            self._values.pop(key, None)
