"""The evidence that an agent sends, parsed and within its budgets: the only form in which it is checked."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import TypeAlias

from interlock.engine.gates import NO_APPROVAL, ApprovalContext
from interlock.engine.template import title_in_code
from interlock.kernel.blanks import Blank, Outline
from interlock.kernel.budgets import NOTES_BYTES_MAX
from interlock.kernel.canonical import Json, canonical_bytes, digest_of, digest_of_bytes
from interlock.kernel.frozen import frozen, replace
from interlock.kernel.ids import Digest
from interlock.kernel.text import says_something, truncated
from interlock.record.base import Autonomy, PreferenceKey, Preferences, RiskPolicy
from interlock.record.content import WHOLE_NOTES_CONTENT_TYPE

NOTES_BLANK = Blank()
"""The notes that an answer asks for. The sentence of its call says that the agent writes them (ANS-22)."""
OPTIONAL_NOTES_BLANK = Blank(what="optional")
"""The notes of a step that needs none. The word is short, and sent back, it is no evidence."""
IN_TEXT = ("this step", "`continue_workflow`")
IN_STRUCTURE = ("the step in pending.prompt", "this tool")
"""How an answer names its step and the tool to call: in its text, and in its data."""


def notes_words(title: str | None = None) -> str:
    """Return what the text of an answer says of the notes of a step with this title. Sent back, it is no evidence."""
    step = "the step" if title is None else f"the step {title_in_code(title)}"
    return f"your answer to {step}, in your own words"


NOTES_WORDS = notes_words()
"""The same where the answer is not about one step."""


def repeat_blank(name: str) -> Blank:
    """Return the blank of a value that was sent and is too long to be shown in a corrected call."""
    return Blank(what=f"your {name}, as you sent it")


_NOTES_SAMPLES = (Blank(what=NOTES_WORDS), OPTIONAL_NOTES_BLANK, repeat_blank("notesMarkdown"))
"""Everything that answers show in the place of notes. The words with a title are judged with the step (EVID-11)."""


def report_instruction(step: str, tool: str) -> str:
    """Return what an answer says before the call that reports a step; sent back as notes, it is no evidence."""
    return f"Do {step} now: write your answer to it. Then call {tool} with"


ARTIFACT_CONTENT_TYPE = "application/json"
REPLY_CONTENT_TYPE = "application/vnd.interlock.confirmation+json"
"""A person's answer. An agent's own statement is an artifact like any other."""
CONFIRMATION_KIND = "wr.confirmation"
TURN_KIND = "wr.turn"
"""The record of one turn of a driver. It says how evidence came about and is no evidence, so no attempt inherits it."""
TURN_CONTENT_TYPE = "application/vnd.interlock.turn+json"
"""Such a record is stored under a type of its own, so views of evidence leave it out (TURN-7)."""


Completed: TypeAlias = Callable[[Mapping[str, Json], Mapping[str, Json]], Mapping[str, Json]]
"""Returns an artifact with what it lacks taken from the refused artifact that it replaces."""


@frozen
class PreferenceDelta:
    """Preferences that a caller changes; None leaves a preference unchanged."""

    autonomy: Autonomy | None = None
    risk_policy: RiskPolicy | None = None

    def changes(self) -> dict[PreferenceKey, str]:
        """Return the changed keys as they are recorded."""
        named: dict[PreferenceKey, str | None] = {"autonomy": self.autonomy, "riskPolicy": self.risk_policy}
        return {key: value for key, value in named.items() if value is not None}

    def over(self, base: Preferences) -> Preferences:
        """Return `base` with this change applied."""
        return Preferences(autonomy=self.autonomy or base.autonomy, risk_policy=self.risk_policy or base.risk_policy)


@frozen
class StoredArtifact:
    """Bytes that are stored under their digest."""

    digest: Digest
    content_type: str
    data: bytes = field(repr=False)


@frozen
class Request:
    """One attempt's evidence, context delta and preference change, and how people can be asked about it."""

    notes: str | None = None
    artifacts: tuple[Mapping[str, Json], ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict[str, Json])
    preferences: PreferenceDelta = field(default_factory=PreferenceDelta)
    asking: ApprovalContext = NO_APPROVAL

    def digest(self) -> Digest:
        """Return the digest of what was sent, by which a replay with other content is detected (ADV-7).

        Confirmations and empty notes do not count: the log does not keep them.
        """
        sent = {digest_of(dict(one)): dict(one) for one in self.artifacts if one.get("kind") != CONFIRMATION_KIND}
        output: dict[str, Json] = {"artifacts": [sent[digest] for digest in sorted(sent)]}
        if self.notes is not None and self.has_notes():
            output["notesMarkdown"] = self.notes
        preferences: dict[str, Json] = {**self.preferences.changes()}
        return digest_of({"output": output, "context": dict(self.context), "preferences": preferences})

    def over(self, earlier: "Request", completed: Completed, *, unnamed: str | None = None) -> "Request":
        """Return this request completed by an earlier, refused one, so that an agent sends only what was missing.

        New notes replace the earlier ones. A new artifact replaces those of its kind or, if it is a rating, of its
        assessment, and `completed` adds what it lacks, unless several were sent. `unnamed` is the assessment of a
        rating that names none.
        """
        refused = {_subject(artifact, unnamed): artifact for artifact in earlier.artifacts}
        sent = [(_subject(artifact, unnamed), artifact) for artifact in self.artifacts]
        count = Counter(subject for subject, _ in sent)
        new = [
            completed(one, refused[subject]) if subject in refused and count[subject] == 1 else one
            for subject, one in sent
        ]
        replaced = {*count, _subject({"kind": TURN_KIND}, unnamed)}
        kept = [one for one in earlier.artifacts if _subject(one, unnamed) not in replaced]
        notes = self.notes if self.has_notes() else earlier.notes
        return replace(self, notes=notes, artifacts=(*new, *kept))

    @property
    def evidence(self) -> tuple[Mapping[str, Json], ...]:
        """The artifacts that are evidence: a driver's record of its turn is none."""
        return tuple(one for one in self.artifacts if one.get("kind") != TURN_KIND)

    def in_stored_order(self) -> "Request":
        """Return the request as the log stores it: each artifact once, and so that their order never matters."""
        stored = {digest_of(dict(one)): one for one in self.artifacts}
        return replace(self, artifacts=tuple(stored[digest] for digest in sorted(stored)))

    def without(self, kind: str) -> "Request":
        """Return the request without the artifacts of a kind."""
        return replace(self, artifacts=tuple(one for one in self.artifacts if one.get("kind") != kind))

    def has_notes(self) -> bool:
        """Say whether there are notes, other than the sample text of an answer."""
        return self.notes is not None and _is_evidence(self.notes)

    def stored_notes(self) -> str:
        """Return the notes as they are recorded: within the budget, cut with the marker (EVT-7)."""
        return truncated(self.notes or "", NOTES_BYTES_MAX)

    def stored_artifacts(self) -> tuple[StoredArtifact, ...]:
        """Return the artifacts to store, and notes that had to be cut: each once, ordered by digest."""
        found = [(_content_type(item), canonical_bytes(dict(item))) for item in self.artifacts]
        if self.has_notes() and self.stored_notes() != self.notes:
            found.append((WHOLE_NOTES_CONTENT_TYPE, (self.notes or "").encode("utf-8")))
        stored = {
            digest_of_bytes(data): StoredArtifact(digest=digest_of_bytes(data), content_type=content_type, data=data)
            for content_type, data in found
        }
        return tuple(stored[digest] for digest in sorted(stored))


@frozen
class MemberFault:
    """Why an artifact of a kind of Interlock's own cannot be taken: the member, what was found, and what to send.

    `blank` is what the member has to hold; without one, it is to be left out.
    """

    member: str
    found: str
    fix: str
    blank: Blank | None = None


def _content_type(artifact: Mapping[str, Json]) -> str:
    return TURN_CONTENT_TYPE if artifact.get("kind") == TURN_KIND else ARTIFACT_CONTENT_TYPE


@lru_cache(maxsize=64)
def _is_evidence(notes: str) -> bool:
    """Say whether notes are more than a sample text: asked several times in a call, of the same text."""
    return says_something(notes) and not any(is_sample(notes, one) for one in _NOTES_SAMPLES)


_AROUND = "`*_\"'.: \n"
"""What may be around a text without making it another one."""


def is_sample(value: Json, blank: Blank | None = None) -> bool:
    """Say whether a text is one that answers show in place of a value: `<…>`, or the words of its blank."""
    if not isinstance(value, str):
        return False
    said = value.strip(_AROUND)
    if said.startswith("<") and said.endswith(">"):
        return True
    words = (blank.what, blank.shape) if blank is not None else ()
    return any(said.strip("<>").casefold() == one.casefold() for one in words if one)


def sample_left(value: Json, outline: Outline = None) -> str | None:
    """Return the path of a sample text in a value whose outline an answer showed; None if there is none.

    The words of a blank are no value in any part of what takes its place.
    """
    if isinstance(value, dict):
        shown = outline if isinstance(outline, Mapping) else dict.fromkeys(value, _blank_of(outline))
        inner = ((key, sample_left(member, shown.get(key))) for key, member in value.items())
    elif isinstance(value, list):
        inner = ((str(at), sample_left(member, _blank_of(outline))) for at, member in enumerate(value))
    else:
        return "" if is_sample(value, _blank_of(outline)) else None
    return next((f"{key}.{found}".rstrip(".") for key, found in inner if found is not None), None)


def _blank_of(outline: Outline) -> Blank | None:
    return outline if isinstance(outline, Blank) else None


def _subject(artifact: Mapping[str, Json], unnamed: str | None) -> tuple[str, str]:
    named = artifact.get("assessmentId")
    return str(artifact.get("kind")), str(unnamed if named is None else named)
