"""A contract as a picture: its work as ways that meet at its state, and below them its required outcomes."""

from collections.abc import Iterator, Mapping

from interlock.kernel.canonical import Json
from interlock.kernel.frozen import frozen
from interlock.views.picture.chart import Box, BoxKind, Chart, ChartPart, Lane

_KINDS: Mapping[str, BoxKind] = {
    "in_progress": "current",
    "failed": "refused",
    "cancelled": "refused",
    "not_met": "refused",
    "not_assessed": "folded",
    "undetermined": "folded",
}
"""The box of a flow or a goal in one of these states; any other one is drawn as a step."""


@frozen
class ContractPart:
    """A flow or a goal of a contract, by its name. `state` is None if no execution of the contract is drawn."""

    name: str
    state: str | None = None

    @property
    def label(self) -> str:
        """The name, with the state if there is one."""
        return self.name if self.state is None else f"{self.name}: {self.state.replace('_', ' ')}"

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {"name": self.name, "state": self.state}


@frozen
class ContractShape:
    """What is drawn of a contract: its two sides, and the contracts inside it."""

    name: str
    version: int
    state: str | None
    flows: tuple[ContractPart, ...]
    parts: tuple["ContractShape", ...]
    goals: tuple[ContractPart, ...]

    @property
    def label(self) -> str:
        """The name, with the state of the work if an execution is drawn."""
        return ContractPart(name=self.name, state=self.state).label

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "state": self.state,
            "flows": [one.to_json() for one in self.flows],
            "parts": [one.to_json() for one in self.parts],
            "goals": [one.to_json() for one in self.goals],
        }


def contract_chart(shape: ContractShape) -> Chart:
    """Return a contract as a chart."""
    return Chart(title=shape.name, parts=tuple(_parts(shape)))


def _parts(shape: ContractShape) -> Iterator[ChartPart]:
    """Yield both sides of a contract. The number of contracts inside it is limited, so recursion is safe."""
    flows = [Lane(label="work", parts=(_part(one),)) for one in shape.flows]
    flows += [Lane(label="work", parts=tuple(_parts(one))) for one in shape.parts]
    yield ChartPart(box=_box("barrier", shape.name, f"version {shape.version}"), ways=tuple(flows))
    yield ChartPart(box=_box("end", ContractPart(name="work", state=shape.state).label))
    if shape.goals:
        goals = tuple(Lane(label="outcome", parts=(_part(one),)) for one in shape.goals)
        yield ChartPart(box=_box("barrier", "required outcomes"), ways=goals)
        met = sum(one.state == "met" for one in shape.goals)
        yield ChartPart(box=_box("end", "goals" if shape.state is None else f"goals: {met} of {len(goals)} met"))


def _part(part: ContractPart) -> ChartPart:
    return ChartPart(box=Box(kind=_KINDS.get(part.state or "", "step"), lines=(part.label,)))


def _box(kind: BoxKind, *lines: str) -> Box:
    """Return a box that stands for no step of work."""
    return Box(kind=kind, lines=lines, steps=0)
