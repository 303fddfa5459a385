"""`interlock session …`: look at what was recorded. Nothing is written."""

# ruff: noqa: PLC0415 — a server that starts does not pay for what these need
import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from interlock.kernel.ids import NodeId
    from interlock.store.local.store import LocalStore

AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]
"""`add_parser` of what `add_subparsers` returns."""

_DESCRIPTION = """Look at recorded sessions. Nothing is written.
Exit codes: 0 fine, 1 something does not verify or is not there, 2 the command line is wrong."""


def add_session_commands(add_parser: AddParser) -> None:
    """Add the command group to a parser's commands."""
    group = add_parser("session", help="verify and explain what was recorded", description=_DESCRIPTION)
    actions = group.add_subparsers(dest="action", metavar="action", required=True).add_parser
    verify = _action(actions, "verify", "make every recorded decision again and compare")
    verify.add_argument("sessions", metavar="SESSION", nargs="*", help="session ids; without, all of them")
    verify.add_argument(
        "--force", dest="is_forced", action="store_true", help="compare what another build of Interlock decided, too"
    )
    explain = _action(actions, "explain", "show why a run stands where it stands: conditions, inputs, the way taken")
    explain.add_argument("node", metavar="NODE|TOKEN", help="a node's id, or a stateToken or ackToken of it")


def _action(actions: AddParser, name: str, words: str) -> argparse.ArgumentParser:
    parser = actions(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    # A default here would undo a value that was given before the command.
    parser.add_argument("--data-dir", default=argparse.SUPPRESS, help="where sessions are kept (INTERLOCK_DATA_DIR)")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON value instead")
    return parser


def run_session(chosen: argparse.Namespace) -> int:
    """Run one command of the group and return its exit code."""
    from interlock.server.settings import settings_from
    from interlock.service.failures import EXPECTED_ERRORS, refusal_of
    from interlock.store.local.store import LocalStore

    settings = settings_from(os.environ, data_dir=getattr(chosen, "data_dir", None))
    store = LocalStore(settings.data_dir)
    try:
        if chosen.action == "verify":
            return _verify(store, chosen.sessions, as_json=chosen.as_json, is_forced=chosen.is_forced)
        return _explain(store, chosen.node, as_json=chosen.as_json)
    except EXPECTED_ERRORS as error:
        refusal = refusal_of(error)
        print(f"interlock session: {refusal.message}\n{refusal.suggestion}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _verify(store: "LocalStore", wanted: Sequence[str], *, as_json: bool, is_forced: bool) -> int:
    from interlock.cli.workflow.screen import say
    from interlock.kernel.ids import SessionId
    from interlock.service.plans import Plans
    from interlock.service.verify import Mismatch, verify_session

    known = store.sessions()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"interlock session: there is no session {unknown[0]!r} in this data directory.", file=sys.stderr)
        return 1
    plans, found = Plans(store), list[Mismatch]()
    names = [SessionId(name) for name in wanted] or list(known)
    for name in names:
        mismatches = verify_session(store, plans, name, is_forced=is_forced)
        found += mismatches
        if not as_json:
            say(f"{name}: {'sound' if not mismatches else f'{len(mismatches)} mismatches'}")
            for one in mismatches:
                say(f"  {one.code} {one.node or 'session'} {one.where}: {one.found}\n    {one.fix}")
    if as_json:
        print(json.dumps({"sessions": names, "mismatches": [one.to_json() for one in found]}, indent=2))
    else:
        say(f"{len(names)} sessions, {len(found)} mismatches")
    return 1 if found else 0


def _explain(store: "LocalStore", wanted: str, *, as_json: bool) -> int:
    from interlock.cli.workflow.screen import say
    from interlock.service.explain import explain, session_of_node
    from interlock.service.plans import Plans

    node = _node_of(store, wanted)
    session = session_of_node(store, node) if node is not None else None
    if node is None or session is None:
        print(f"interlock session: no session here holds the node {wanted[:80]!r}.", file=sys.stderr)
        print("Give a node's id (node_…), or a token that this data directory issued.", file=sys.stderr)
        return 1
    told = explain(store, Plans(store), session, session.nodes[node])
    if as_json:
        print(json.dumps({"session": told.session, "node": told.node, "capture": dict(told.record)}, indent=2))
        return 0
    say(f"{told.node} of {told.session}: {told.title}")
    for head, lines in (
        ("Refused", told.refusal),
        ("Decided", told.decisions),
        ("Set", told.effects),
        ("Gaps", told.gaps),
        ("In short", told.reasons),
    ):
        if lines:
            say(f"{head}:\n" + "\n".join(f"  {line}" for line in lines))
    if not (told.decisions or told.effects or told.refusal):
        say("Nothing was decided on the way here: the plan leads here from the step before.")
    return 0


def _node_of(store: "LocalStore", wanted: str) -> "NodeId | None":
    """Return the node that an id or a token names."""
    from interlock.kernel.ids import NodeId
    from interlock.record.tokens import TokenFault, verify

    if wanted.startswith("node_"):
        return NodeId(wanted)
    ring = store.keys()
    found = verify(wanted, ring.keys() if ring is not None else ())
    return None if isinstance(found, TokenFault) else found.node
