"""The evidence of a report: what a model sent, without what it may not say."""

from collections.abc import Mapping, Sequence

from interlock.drive.client import Evidence
from interlock.drive.record import TURN_KIND
from interlock.kernel.canonical import Json

_KINDS_OF_OTHERS = frozenset({"wr.confirmation", "wr.approval", "wr.work_record", TURN_KIND})
"""Artifacts that only a person may send, or only the driver itself (DRIVE-12)."""


def evidence_of(arguments: Mapping[str, Json], earlier: Sequence[str] = ()) -> tuple[Evidence, list[str]]:
    """Return the evidence of the arguments of `report_step`, and the kinds of artifacts that were left out of it.

    Args:
        arguments: What the model sent.
        earlier: Notes of the same turn, which precede those of the report.
    """
    artifacts, notes, context = arguments.get("artifacts"), arguments.get("notes"), arguments.get("context")
    sent = [one for one in (artifacts if isinstance(artifacts, list) else []) if isinstance(one, dict)]
    kept = [one for one in sent if one.get("kind") not in _KINDS_OF_OTHERS]
    texts = [*earlier, *([notes] if isinstance(notes, str) else [])]
    evidence = Evidence(
        notes="\n\n".join(texts) or None,
        artifacts=tuple(kept),
        context=context if isinstance(context, dict) else {},
    )
    return evidence, sorted({str(one.get("kind")) for one in sent if one not in kept})
