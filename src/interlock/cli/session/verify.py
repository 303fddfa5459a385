"""`interlock session verify`: make every recorded decision again and compare."""

from collections.abc import Sequence

from interlock.cli.screen import StopError, say, say_json
from interlock.cli.session.store import answered_by_store
from interlock.kernel.ids import SessionId
from interlock.service.plans import Plans
from interlock.service.verify import Mismatch, verify_session
from interlock.store.ports import Store


def run_verify(store: Store, wanted: Sequence[str], *, as_json: bool, is_forced: bool) -> int:
    """Verify sessions, or all of them; return 1 where something does not follow."""
    with answered_by_store():
        known = store.sessions()
        unknown = [name for name in wanted if name not in known]
        if unknown:
            message = f"There is no session {unknown[0]!r} in this data directory."
            raise StopError(message, "Leave the id out to verify all that are there.", exit_code=1)
        names = [SessionId(name) for name in wanted] or list(known)
        plans = Plans(store)
        found = {name: verify_session(store, plans, name, is_forced=is_forced) for name in names}
    count = sum(map(len, found.values()))
    if as_json:
        mismatches = [one.to_json() for each in found.values() for one in each]
        say_json({"sessions": names, "mismatches": mismatches})
    else:
        for name, mismatches in found.items():
            say(f"{name}: {_counted(len(mismatches), 'mismatch') if mismatches else 'sound'}")
            for one in mismatches:
                say(_told(one))
        say(f"{_counted(len(names), 'session')}, {_counted(count, 'mismatch')}")
    return 1 if count else 0


def _told(one: Mismatch) -> str:
    return f"  {one.code} at {one.node or 'the session'}, {one.where}: {one.found}\n    {one.fix}"


def _counted(number: int, what: str) -> str:
    plural = "es" if what.endswith("h") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"
