"""Workflow ids: their form `namespace.name`, the reserved namespace, and suggested new ids (SRC-1, SRC-2)."""

import hashlib
import re
from typing import Literal

from interlock.kernel.budgets.workflow import (
    WORKFLOW_ID_CHARS_MAX,
)
from interlock.kernel.ids import SourceKind

NAMESPACED = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*")
LEGACY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
RESERVED_NAMESPACE = "wr"

IdStatus = Literal["namespaced", "legacy"]

_NAMESPACE_OF: dict[SourceKind, str] = {"bundled": "wr", "user": "user", "project": "project"}


def classify_id(workflow_id: str) -> IdStatus | None:
    """Return the form of an id: one dot (namespaced) or no dot (legacy, in old files). None: not a valid id."""
    if len(workflow_id) > WORKFLOW_ID_CHARS_MAX:
        return None
    if NAMESPACED.fullmatch(workflow_id):
        return "namespaced"
    return "legacy" if LEGACY.fullmatch(workflow_id) else None


def is_reserved(workflow_id: str) -> bool:
    """Return whether an id is in the namespace of the workflows that ship with Interlock."""
    return workflow_id.startswith(f"{RESERVED_NAMESPACE}.")


def suggest_id(workflow_id: str, source_kind: SourceKind, taken: frozenset[str] = frozenset()) -> str:
    """Suggest a valid id for a workflow of a source. Equal inputs give the same suggestion.

    The id is in lower case, with underscores for hyphens. If it is already taken, four characters of the old id's
    digest are appended.
    """
    stem = workflow_id.rpartition(".")[2].lower().replace("-", "_")
    stem = re.sub(r"[^a-z0-9_]", "_", stem)
    if not stem[:1].isalpha():
        stem = f"w_{stem}"
    suggestion = f"{_NAMESPACE_OF.get(source_kind, 'repo')}.{stem}"[:WORKFLOW_ID_CHARS_MAX]
    if suggestion not in taken:
        return suggestion
    suffix = f"_{hashlib.sha256(workflow_id.encode()).hexdigest()[:4]}"
    return suggestion[: WORKFLOW_ID_CHARS_MAX - len(suffix)] + suffix
