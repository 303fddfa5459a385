"""What agents send for a step, drawn: sound evidence, careless evidence, none, or what a refusal asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.support.model import AUTONOMIES, LOOP_CONTROL, Node, Report, example_of
from tests.support.model_language import Document, Owed
from tests.support.plans import KNOWN
from tests.support.words import fresh_notes, many_words

Draw = Callable[..., Any]

RISKS = ("conservative", "balanced", "aggressive")
GOOD_NOTES = f"""Verdict: done, it's "so" é, urgent, alpha. {many_words(32)}"""
WEAK_NOTES = "TODO"
PLACEHOLDER = "<your notes>"


class Reports:
    """Draws what is sent for a step."""

    def __init__(self, draw: Draw, node: Node) -> None:
        assert node.step is not None, "the end takes no reports"
        self.draw, self.node, self.step = draw, node, node.step

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def maybe(self, times_in_ten: int) -> bool:
        return bool(self.draw(st.integers(0, 9)) >= 10 - times_in_ten)

    def report(self) -> Report:
        kinds = ["honest"] * 6 + ["careless"] * 2 + ["nothing"]
        kinds += ["what is owed"] * 6 * (self.node.kind == "blocked_attempt")
        report: Report = {
            "honest": self.honest,
            "careless": self.careless,
            "nothing": Report,
            "what is owed": self.what_is_owed,
        }[self.one_of(*kinds)]()
        if self.maybe(1):
            report = replace(report, autonomy=self.one_of(*AUTONOMIES), risk=self.one_of(*RISKS, None))
        return replace(report, answer=self.one_of(None, None, "accept", "decline", "cancel", "nobody"))

    def earnest(self) -> Report:
        """Return what brings the step to its end: all that it asks for, and a person's yes or the claim of one."""
        report = self.what_is_owed() if self.node.owed and self.maybe(5) else self.honest()
        claim = example_of("wr.contracts.confirmation")
        if self.maybe(5):
            return replace(report, answer="accept")
        kinds = {artifact["kind"] for artifact in report.artifacts}
        return report if claim["kind"] in kinds else replace(report, artifacts=(*report.artifacts, claim))

    def honest(self) -> Report:
        keys = [key for key in KNOWN if key not in self.node.context or self.maybe(1)]
        return Report(notes=fresh_notes(GOOD_NOTES), artifacts=self.artifacts(sound=True), context=self.said(keys))

    def careless(self) -> Report:
        notes = self.one_of(None, "", "  ", PLACEHOLDER, WEAK_NOTES, fresh_notes(GOOD_NOTES))
        keys = [key for key in KNOWN if self.maybe(3)]
        context = {key: None if self.maybe(2) else self.one_of(*KNOWN[key]) for key in keys}
        return Report(notes=notes, artifacts=self.artifacts(sound=False), context=context)

    def what_is_owed(self) -> Report:
        subjects = {owed.subject for owed in self.node.owed}
        wants_notes = "wr.contracts.notes" in subjects
        artifacts = self.artifacts(sound=True) if any(map(is_about_artifacts, self.node.owed)) else ()
        keys = {subject.partition(".")[0] for subject in subjects} & {*KNOWN}
        return Report(
            notes=fresh_notes(GOOD_NOTES) if wants_notes else None, artifacts=artifacts, context=self.said(sorted(keys))
        )

    def said(self, keys: list[str]) -> Document:
        return {key: self.one_of(*KNOWN[key]) for key in keys}

    def artifacts(self, *, sound: bool) -> tuple[Document, ...]:
        found: list[Document] = []
        if "outputContract" in self.step:
            found += self.of_contract(self.step["outputContract"]["contractRef"], sound=sound)
        if "assessmentRefs" in self.step:
            found += self.rating(sound=sound)
        if self.maybe(3 if sound else 1) and "wr.confirmation" not in {one["kind"] for one in found}:
            found.append(example_of("wr.contracts.confirmation"))
        return tuple(found)

    def of_contract(self, ref: str, *, sound: bool) -> list[Document]:
        artifact = example_of(ref)
        if artifact["kind"] == LOOP_CONTROL:
            artifact["decision"] = self.one_of("stop", "continue")
            loop = self.node.loop
            artifact |= {"loopId": loop.loop["loopId"]} if loop is not None and self.maybe(3) else {}
        if artifact["kind"] == "wr.capability_observation":
            artifact["capability"] = "web_browsing" if self.step.get("is_probe") else artifact["capability"]
        if sound:
            return [artifact]
        spoiled: list[list[Document]] = [[], [{"kind": artifact["kind"]}], [artifact]]
        if artifact["kind"] == LOOP_CONTROL:
            spoiled += [[artifact | {"loopId": "another"}], [artifact | {"decision": "perhaps"}]]
        if artifact["kind"] == "wr.capability_observation":
            return self.one_of(*spoiled, *([artifact | {"status": status}] for status in ("unknown", "unavailable")))
        spoiled.append(
            [
                {
                    name: f"<{name}>" if isinstance(value, str) and name != "kind" else value
                    for name, value in artifact.items()
                }
            ]
        )
        return self.one_of(*spoiled)

    def rating(self, *, sound: bool) -> list[Document]:
        levels = ("high", "middle", " HIGH ") if sound else ("low", "high", "none", " Low")
        rated = {"clear": self.one_of(*levels)} | ({"sound": self.one_of(*levels)} if self.maybe(3) else {})
        named = {"assessmentId": "quality"} if self.maybe(5) else {}
        rating: Document = {"kind": "wr.assessment", **named, "dimensions": rated, "summary": "Why."}
        return [rating] if sound else self.one_of([], [{"kind": "wr.assessment"}], [rating], [rating])


def is_about_artifacts(owed: Owed) -> bool:
    return owed.subject.startswith("wr.contracts.") and owed.subject != "wr.contracts.notes"
