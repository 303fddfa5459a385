"""References `wr.refs.*`: short texts that prompts inline, so that every workflow says the same thing the same way."""

from collections.abc import Mapping
from types import MappingProxyType

from interlock.kernel.frozen import frozen


@frozen
class Snippet:
    """A built-in text, and the id by which workflows refer to it."""

    ref_id: str
    title: str
    text: str


_ALL = (
    Snippet(
        ref_id="wr.refs.adversarial_challenge_rules",
        title="How to challenge a result",
        text="Argue against the result as its strongest critic would. Look for the case it does not cover, the"
        " assumption nobody checked, the simpler explanation, the evidence that would overturn it. Name each objection"
        " with what would have to be true for it to hold, then check that. An objection that you could not refute"
        " stands in your notes as open; one that you refuted stands there with the reason. Do not soften the challenge"
        " because the work was yours, and do not invent faults to look thorough.",
    ),
    Snippet(
        ref_id="wr.refs.memory_query",
        title="How to look something up in memory",
        text="Ask for one thing at a time, in the words that whoever stored it would have used: names of files,"
        " components, error messages, decisions. Take what you find as a claim of its time: check it against the code"
        " or the document before you build on it, and say in your notes what you relied on.",
    ),
    Snippet(
        ref_id="wr.refs.memory_store",
        title="What to store in memory",
        text="Store what would have saved you time: decisions with their reasons, surprising facts with the place that"
        " shows them, names that are hard to guess. Store conclusions, not transcripts, and nothing secret. One fact an"
        " entry, with a title that somebody would search for.",
    ),
    Snippet(
        ref_id="wr.refs.memory_usage",
        title="How to use memory",
        text="If your client has a memory tool, look there before you search anew, and store there what a later session"
        " will need. Memory helps to find; it proves nothing: what matters is checked at its source. Without such a"
        " tool, write into your notes what you would have stored.",
    ),
    Snippet(
        ref_id="wr.refs.notes_first_durability",
        title="Notes are what lasts",
        text="Your notes are the durable record of this step: a later session, another agent or a person sees them and"
        " nothing else of this chat. Write down findings, decisions with their reasons, paths, names and numbers while"
        " you work, not from memory at the end. Files you made are named with their path. What is not in the notes did"
        " not happen.",
    ),
    Snippet(
        ref_id="wr.refs.parallelize_cognition_serialize_synthesis",
        title="Think in parallel, conclude alone",
        text="Independent questions can be worked on at the same time, by subagents of your client or one after the"
        " other; each gets the same facts and no hint of the others' answers. The conclusion is drawn once, by you,"
        " after all of them are in: compare, settle what contradicts, and decide. Nobody else edits the result.",
    ),
    Snippet(
        ref_id="wr.refs.synthesis_under_disagreement",
        title="What to do when findings disagree",
        text="Where sources or subagents disagree, do not average and do not count votes. State the disagreement in one"
        " sentence, find the fact that would settle it, and go and look. If it cannot be settled now, keep both"
        " readings with what speaks for each, say which you act on and why, and what would change your mind.",
    ),
)

SNIPPETS: Mapping[str, Snippet] = MappingProxyType({snippet.ref_id: snippet for snippet in _ALL})
"""Every reference by its id, in the order of the ids."""
