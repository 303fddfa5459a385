"""What lists show of a workflow. The package publishes it for its own: they are parsed when one is used."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Self

from interlock.define.document import WorkflowDocument, count_steps
from interlock.kernel.canonical import Json
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

    def to_json(self) -> dict[str, Json]:
        """Return the listing as it is published."""
        return {
            "workflowId": self.workflow_id,
            "name": self.name,
            "description": self.description,
            "stepCount": self.step_count,
            "tags": list(self.tags),
            "keywords": list(self.keywords),
            "examples": list(self.examples),
        }


@cache
def bundled_listings() -> Mapping[Digest, Listing]:
    """Return the listings of the package's own workflows, by the digest of the file of each (SRC-10)."""
    return {
        digest: Listing(
            workflow_id=one["workflowId"],
            name=one["name"],
            description=one["description"],
            step_count=one["stepCount"],
            tags=tuple(one["tags"]),
            keywords=tuple(one["keywords"]),
            examples=tuple(one["examples"]),
        )
        for digest, one in json.loads(_BUNDLED.read_bytes()).items()
    }
