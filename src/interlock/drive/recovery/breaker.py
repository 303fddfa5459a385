"""A circuit breaker as a value: what is allowed now, and what an outcome makes of it. It reads no clock."""

from typing import Literal

from interlock.kernel.frozen import frozen, replace

Outcome = Literal["succeeded", "failed"]


@frozen
class BreakerRule:
    """When a breaker opens, how long it stays open, and how many probes close it again."""

    failure_threshold: int
    open_seconds: float
    probes: int


@frozen
class Breaker:
    """Consecutive failures, since when it is open, and the probes that succeeded while it was half open."""

    failures: int = 0
    opened_at: float | None = None
    probes_passed: int = 0
    is_probing: bool = False


def begin_call(breaker: Breaker, rule: BreakerRule, now: float) -> Breaker | None:
    """Return the breaker with a call under way; None if the call must not be made.

    While it is half open, one probe goes through at a time (TOOL-6).
    """
    if breaker.opened_at is None:
        return breaker
    if now - breaker.opened_at < rule.open_seconds or breaker.is_probing:
        return None
    return replace(breaker, is_probing=True)


def end_call(breaker: Breaker, rule: BreakerRule, outcome: Outcome, now: float) -> Breaker:
    """Return the breaker after a call that `begin_call` allowed."""
    if outcome == "failed":
        failures = breaker.failures + 1
        is_open = breaker.opened_at is not None or failures >= rule.failure_threshold
        return Breaker(failures=failures, opened_at=now if is_open else None)
    if breaker.opened_at is None:
        return Breaker()
    passed = breaker.probes_passed + 1
    return Breaker() if passed >= rule.probes else replace(breaker, probes_passed=passed, is_probing=False)


class Breakers:
    """The breakers of one driver, by the name of a tool or model."""

    def __init__(self, rule: BreakerRule) -> None:
        self._rule = rule
        self._breakers: dict[str, Breaker] = {}

    def begin(self, name: str, now: float) -> bool:
        """Begin a call; False if its breaker is open."""
        begun = begin_call(self._breakers.get(name, Breaker()), self._rule, now)
        if begun is None:
            return False
        self._breakers[name] = begun
        return True

    def end(self, name: str, outcome: Outcome, now: float) -> None:
        """End a call that was begun."""
        self._breakers[name] = end_call(self._breakers[name], self._rule, outcome, now)
