"""What lists show of a workflow. The package publishes it for its own: they are parsed when one is used."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

from interlock.define.document import WorkflowDocument, count_steps
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.plan.compiled import CompiledWorkflow

_BUNDLED = Path(__file__).parent / "published" / "bundled.json"


@frozen
class Listing:
    """What a workflow is called, and what it is found by. What a plan does not hold, such as tags, is empty.

    Keywords are what people say who want it, and examples are requests that fit it. `step_count` counts the steps for
    agents; a routine of a document counts as one.
    """

    workflow_id: str
    name: str
    description: str
    step_count: int
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, content: WorkflowDocument | CompiledWorkflow) -> Self:
        """Return what lists show of a document or a plan."""
        if isinstance(content, CompiledWorkflow):
            return cls(
                workflow_id=content.workflow_id,
                name=content.name,
                description=content.description,
                step_count=len(content.steps),
            )
        return cls(
            workflow_id=content.id,
            name=content.name,
            description=content.description,
            step_count=count_steps(content),
            tags=content.tags,
            keywords=content.keywords,
            examples=content.examples,
        )


@cache
def bundled_listings() -> Mapping[Digest, Listing]:
    """Return the listings of the package's own workflows, by the digest of the file of each (SRC-10)."""
    published: dict[Digest, dict[str, Any]] = json.loads(_BUNDLED.read_bytes())
    return {digest: Listing(**_with_tuples(one)) for digest, one in published.items()}


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a listing: JSON has lists only."""
    return {name: tuple(cast("list[str]", one)) if isinstance(one, list) else one for name, one in fields.items()}
