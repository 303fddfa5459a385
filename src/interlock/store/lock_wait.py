"""How long a call waits for a lock, the same for every kind of store."""

import time

from interlock.kernel.budgets import LOCK_WAIT_MS_MIN


def wait_window(wait_ms_max: int, since_s: float | None) -> tuple[float, float]:
    """Return when the wait began and when it ends, by `time.monotonic`.

    It counts from `since_s`, when the call arrived. A call that spent it in a queue still waits a moment (LOCK-6).
    """
    now = time.monotonic()
    began = now if since_s is None else since_s
    return began, max(began + wait_ms_max / 1000, now + min(wait_ms_max, LOCK_WAIT_MS_MIN) / 1000)
