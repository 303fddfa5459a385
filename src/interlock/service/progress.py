"""How far a long reading is, for whoever waits for it."""

from contextvars import ContextVar

from interlock.store.retention import Progress, untold

READING: ContextVar[Progress] = ContextVar("READING", default=untold)
"""Takes how many sessions of how many a call has read; whoever makes the call sets it, and a thread inherits it."""
