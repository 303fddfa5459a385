"""Random workflows: a strategy for valid native documents, and what a person asked by the agent would know to say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.packs import PACKS
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.compile.routines import builtin_routines

Document = dict[str, Any]
Draw = Callable[..., Any]

STEPS_MAX = 25
DEPTH_MAX = 4
LOOPS_MAX = 2
"""Loops inside each other: a run takes the product of their passes."""

KNOWN: Mapping[str, tuple[object, ...]] = {
    "mode": ("fast", "slow"),
    "level": (0, 1, 2, 3),
    "is_urgent": (True, False),
    "things": ([], ["a"], [{"name": "b"}, 1, None], "a,b"),
    "box": ({}, {"size": 3}, {"size": 1, "tags": ["x"]}, "no box"),
    "found": ("fast", 2, True, ["a"]),
    "verdict": ("ok", "not ok"),
    "seen": ("fast", "slow", "once"),
    "depth": (0, 1, 2),
}
"""What can be said for each context key; of the wrong kind now and then."""

INPUTS = {"mode": "string", "level": "number", "is_urgent": "boolean", "things": "list", "box": "object"}
PRODUCED = ("found", "verdict")
SET: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "seen": ("string", ("mode", "verdict")),
    "depth": ("number", ("level", "index", "box.size")),
}
"""Keys that steps set: the declared type, and what may be copied into them."""
LEVELS = ["low", "middle", "high"]
_CONTRACTS = sorted(ref for ref, pack in PACKS.items() if pack.kind is not None)
_LOOP_CONTROL = "wr.contracts.loop_control"


@dataclass(slots=True)
class _Author:
    """Writes one document; keeps count of what it wrote."""

    draw: Draw
    steps: int = 0
    names: int = 0
    loops: int = 0
    variables: list[str] = field(default_factory=list[str])
    """The default variables of the loops around, which exist only inside."""
    has_template: bool = False
    """Whether a routine was unfolded, or none may be: one is enough, and some readers of documents know none."""
    ratings: list[str] = field(default_factory=list[str])
    functions: list[str] = field(default_factory=list[str])

    def maybe(self, times_in_ten: int = 3) -> bool:
        # Shrinks to no.
        return bool(self.draw(st.integers(0, 9)) >= 10 - times_in_ten)

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def body(self, depth: int, most: int = 4) -> list[Document]:
        return [self.step(depth) for _ in range(self.draw(st.integers(1, most)))]

    def step(self, depth: int) -> Document:
        kinds = ["task", "task", "task"]
        if depth < DEPTH_MAX and self.steps < STEPS_MAX:
            kinds += ["choose", "parallel"] + ["loop"] * (self.loops < LOOPS_MAX)
            kinds += ["template"] * (not self.has_template)
        written = getattr(self, self.one_of(*kinds))(depth)
        if self.maybe(2):
            written["when"] = self.condition()
        return written

    # Conditions.

    def condition(self, depth: int = 0) -> Document:
        kinds = ["equals", "order", "exists", "text", "member"] + ["joined", "not", "named"] * (depth < 2)
        match self.one_of(*kinds):
            case "equals":
                key = self.one_of(*KNOWN)
                return {"var": key, self.one_of("equals", "notEquals"): self.one_of(*KNOWN[key])}
            case "order":
                passes = [one for one in ("iteration", "index") if one in self.variables]
                return {"var": self.one_of("level", *passes), self.one_of("gt", "gte", "lt", "lte"): 1}
            case "exists":
                key = self.one_of(*KNOWN, "box.size", "goal", *self.variables)
                return {"var": key, "exists": self.maybe(5)}
            case "text":
                return {"var": self.one_of("mode", "goal"), self.one_of("startsWith", "endsWith"): "f"}
            case "member":
                return self.one_of(
                    {"var": "things", "contains": "a"},
                    {"var": "mode", "in": ["fast", None]},
                    {"var": "box.size", "gte": 2},
                )
            case "joined":
                parts = [self.condition(depth + 1) for _ in range(self.draw(st.integers(1, 2)))]
                return {self.one_of("and", "or"): parts}
            case "not":
                return {"not": self.condition(depth + 1)}
            case _:
                return {"kind": "condition_ref", "conditionId": "in-a-hurry"}

    # Steps.

    def task(self, _: int) -> Document:
        self.steps += 1
        name = self.name("s")
        step: Document = {"id": name, "title": f"Step {name}"}
        step |= self.prompt(name)
        for part in (self.evidence, self.context_keys, self.extras):
            if self.maybe():
                step |= part()
        return step

    def prompt(self, name: str) -> Document:
        if not self.maybe():
            return {"prompt": f"Do {name} for {{{{mode}}}}, pass {{{{iteration}}}}."}
        blocks: Document = {"goal": [{"kind": "text", "text": f"Do {name}. "}]}
        if SNIPPETS and self.maybe():
            blocks["goal"].append({"kind": "ref", "refId": self.one_of(*sorted(SNIPPETS))})
        if self.maybe():
            blocks["procedure"] = ["First this.", "Then that."]
        if self.maybe():
            blocks["outputRequired"] = self.one_of(["A list"], {"report": "A file", "count": "A number"})
        return {"promptBlocks": blocks}

    def evidence(self) -> Document:
        match self.one_of("optional", "contract", "criteria", "rating"):
            case "optional":
                return {"notes": "optional"}
            case "contract":
                return {
                    "outputContract": {"contractRef": self.one_of(*_CONTRACTS), "required": self.maybe(7)},
                    "notes": self.one_of("required", "optional"),
                }
            case "criteria":
                return {"validationCriteria": [self.criterion() for _ in range(self.draw(st.integers(1, 3)))]}
            case _:
                return self.rating()

    def criterion(self) -> Document:
        return self.one_of(
            {"type": "contains", "value": 'it\'s "so" é'},
            {"type": "contains", "value": "done", "message": "Say that it is done."},
            {"type": "length", "min": 200},
            {"type": "length", "min": 10, "max": 900},
            {"type": "regex", "pattern": "Verdict", "flags": "i"},
            {"type": "contains", "value": "urgent", "when": {"var": "is_urgent", "equals": True}},
            {"or": [{"type": "contains", "value": "alpha"}, {"type": "contains", "value": "beta"}]},
            {"not": {"type": "contains", "value": "TODO"}},
        )

    def rating(self) -> Document:
        if not self.ratings:
            self.ratings.append("quality")
        step: Document = {"assessmentRefs": ["quality"]}
        if self.maybe(5):
            effect = {"kind": "require_followup", "guidance": "Look again."}
            step["assessmentConsequences"] = [{"when": {"anyEqualsLevel": "low"}, "effect": effect}]
        return step

    def context_keys(self) -> Document:
        match self.one_of("needs", "produces", "set", "copy", "both"):
            case "needs":
                return {"needs": [self.one_of(*INPUTS)]}
            case "produces":
                return {"produces": list(dict.fromkeys([self.one_of(*PRODUCED), self.one_of(*PRODUCED)]))}
            case "set":
                key = self.one_of(*SET)
                return {"set": [{"key": key, "value": self.one_of(*KNOWN[key])}]}
            case "both":
                return {"set": [{"key": "seen", "value": self.one_of(*KNOWN["seen"])}, {"key": "echo", "from": "seen"}]}
            case _:
                key = self.one_of(*SET)
                sources = [one for one in SET[key][1] if one != "index" or one in self.variables]
                return {"set": [{"key": key, "from": self.one_of(*sources)}]}

    def extras(self) -> Document:
        match self.one_of("fragments", "confirm", "user", "delegate", "function", "words"):
            case "fragments":
                text = "Mind {{box.size}}."
                return {"promptFragments": [{"id": "f1", "text": text, "when": self.condition()}]}
            case "confirm":
                return self.one_of({"requireConfirmation": True}, {"confirmWhen": self.condition()})
            case "user":
                return {
                    "needsUser": [{"reason": "needs_user_choice", "choiceKind": "scope_boundary", "ask": "Which one?"}]
                }
            case "delegate":
                return {"delegate": [{"title": "Look", "goal": "Find it", "when": self.condition()}]}
            case "function":
                self.functions.append("check")
                return {"functionReferences": ["check()"]}
            case _:
                return {"agentRole": "A reader", "guidance": ["Be brief."]}

    def choose(self, depth: int) -> Document:
        name = self.name("c")
        branches = [
            {"when": self.condition(), "steps": self.body(depth + 1, 2)} for _ in range(self.draw(st.integers(1, 3)))
        ]
        otherwise = self.body(depth + 1, 2) if self.maybe(5) else []
        return {"type": "choose", "id": name, "title": f"Choice {name}", "choose": branches, "otherwise": otherwise}

    def parallel(self, depth: int) -> Document:
        name = self.name("p")
        branches = [{"steps": self.body(depth + 1, 2)} for _ in range(self.draw(st.integers(2, 3)))]
        return {"type": "parallel", "id": name, "title": f"Parallel {name}", "branches": branches}

    def template(self, _: int) -> Document:
        self.has_template = True
        name, routines = self.name("t"), builtin_routines()
        routine = routines[self.one_of(*sorted(routines))]
        self.steps += len(routine.steps)
        args = {arg: f"the {arg}" for arg in sorted(routine.args)}
        return {"type": "template", "id": name, "templateCall": {"templateId": routine.template_id, "args": args}}

    def loop(self, depth: int) -> Document:
        name = self.name("l")
        kind, is_named = self.one_of("for", "from", "each", "while", "until", "control"), self.maybe(2)
        inside = [] if is_named else ["iteration", "index"]
        inside += ["item"] * (kind == "each")
        self.loops += 1
        self.variables += inside
        body = self.body(depth + 1, 2)
        del self.variables[len(self.variables) - len(inside) :]
        self.loops -= 1
        loop: Document = {"type": "loop", "loopId": name, "title": f"Loop {name}"}
        loop["maxIterations"] = self.draw(st.integers(1, 3))
        if is_named:
            loop |= {"iterationVar": f"{name}_pass", "indexVar": f"{name}_index"}
        match kind:
            case "for":
                loop["for"] = {"count": self.draw(st.integers(0, 4))}
            case "from":
                loop["for"] = {"countFrom": "level"}
            case "each":
                loop["forEach"] = {"items": "things"}
            case "while":
                loop["while"] = self.firm_condition(loop)
            case "until":
                loop["until"] = self.firm_condition(loop)
            case _:
                loop["while"] = {"kind": "loop_control"}
                body.append(self.deciding_step())
        return loop | {"body": body}

    def firm_condition(self, loop: Document) -> Document:
        """What a loop may read: inputs, what is set, and passes."""
        passes = {"var": loop.get("indexVar", "index"), "lt": 2}
        return self.one_of(passes, {"var": "level", "gte": 2}, {"var": "seen", "equals": "fast"})

    def deciding_step(self) -> Document:
        self.steps += 1
        name = self.name("d")
        contract = {"contractRef": _LOOP_CONTROL}
        return {"id": name, "title": f"Decide {name}", "prompt": "Go on?", "outputContract": contract}


@st.composite
def workflows(draw: Draw, *, templates: bool = True) -> Document:
    """Return a valid document of up to about 25 steps, and some beyond where blocks are finished."""
    author = _Author(draw, has_template=not templates)
    steps = author.body(0, 6)
    document: Document = {"id": "test.random", "name": "Random", "steps": steps}
    document["conditions"] = {"in-a-hurry": {"var": "is_urgent", "equals": True}}
    inputs: list[Document] = [
        {"key": key, "description": f"The {key}.", "type": kind, "required": author.maybe(3)}
        for key, kind in INPUTS.items()
    ]
    if author.maybe():
        inputs[0]["choices"] = ["fast", "slow"]
    kinds = {key: kind for key, (kind, _) in SET.items()} | {"echo": "string"}
    inputs += [{"key": key, "description": f"The {key}.", "type": kind} for key, kind in kinds.items()]
    # Declared even where no step of this document brings them: conditions may read them anywhere.
    last: Document = {"id": "last", "title": "Last", "prompt": "Sum up.", "produces": [*PRODUCED]}
    after: Document = {"id": "after", "title": "After", "prompt": "Part as friends.", "notes": "optional"}
    steps += [last | {"set": [{"key": "seen", "value": None}]}, after | {"needs": ["verdict"]}]
    loops: Document = {"type": "loop", "loopId": "never", "title": "Never", "maxIterations": 1}
    steps.append(loops | {"forEach": {"items": "things"}, "when": {"var": "level", "lt": 0}, "body": [dict(_NEVER)]})
    document |= {"inputs": inputs} | {name: part for name, part in _wholes(author).items() if part}
    return document


_NEVER: Document = {"id": "never-done", "title": "Never done", "prompt": "Do nothing."}


def _wholes(author: _Author) -> Document:
    """Return the parts that concern the whole document."""
    dimensions: list[Document] = [{"id": "clear", "purpose": "How clear", "levels": LEVELS}]
    dimensions.append({"id": "sound", "purpose": "How sound", "levels": LEVELS, "required": False})
    return {
        "features": [name for name in sorted(FEATURES) if author.maybe()],
        "capabilities": {"web_browsing": author.one_of("required", "preferred")} if author.maybe(2) else {},
        "assessments": [{"id": name, "purpose": "How good", "dimensions": dimensions} for name in author.ratings],
        "functionDefinitions": [{"name": name, "definition": "Check."} for name in dict.fromkeys(author.functions)],
        "guidance": ["Take {{mode}} for what it is."] if author.maybe() else [],
        "agentRole": "A careful worker" if author.maybe() else "",
        "description": "Random" if author.maybe() else "",
    }
