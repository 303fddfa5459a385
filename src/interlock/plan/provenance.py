"""Where the texts of a compiled workflow come from, and what its hash covers: for people who compare two versions."""

from collections.abc import Iterator

from interlock.kernel.canonical import canonical_bytes, digest_of_bytes
from interlock.kernel.frozen import frozen
from interlock.kernel.ids import Digest
from interlock.plan.compiled import CompiledWorkflow
from interlock.plan.records import Injection


@frozen
class TextOrigin:
    """Where the prompt of a step comes from.

    `written_by` names the routine or the capability that the step was inserted for; None if the author wrote it.
    `built_in` are the texts of Interlock that the compiler put into the prompt.
    """

    step_id: str
    number: int
    title: str
    written_by: str | None
    built_in: tuple[Injection, ...]


@frozen
class HashPart:
    """A part of a compiled workflow that its hash covers: its name, its size in canonical JSON, and its own digest."""

    name: str
    bytes: int
    digest: Digest


def text_origins(workflow: CompiledWorkflow) -> Iterator[TextOrigin]:
    """Yield where the prompt of each step comes from, in plan order."""
    for step_id, node in workflow.steps.items():
        assert node.task is not None, "a step is a task"
        yield TextOrigin(
            step_id=step_id,
            number=workflow.numbers[step_id],
            title=node.title,
            written_by=node.provenance.origin_id,
            built_in=node.task.injections,
        )


def hash_parts(workflow: CompiledWorkflow) -> Iterator[HashPart]:
    """Yield the parts that the hash covers. The file's layout, tags, keywords and examples are no part of them."""
    for name, value in workflow.to_json().items():
        data = canonical_bytes(value)
        yield HashPart(name=name, bytes=len(data), digest=digest_of_bytes(data))
