"""Routine templates: a few steps that a workflow unfolds in place. `{name}` stands for an argument of the call."""

from collections.abc import Mapping
from types import MappingProxyType

from interlock.kernel.frozen import frozen


@frozen
class TemplateStep:
    """One step of a routine."""

    step_id: str
    title: str
    prompt: str
    agent_role: str | None = None
    guidance: tuple[str, ...] = ()


@frozen
class RoutineTemplate:
    """A routine; `args` are the names that its texts hold."""

    template_id: str
    title: str
    purpose: str
    steps: tuple[TemplateStep, ...]
    args: tuple[str, ...] = ()


_ALL = (
    RoutineTemplate(
        template_id="wr.templates.routine.context-gathering",
        title="Gather context",
        purpose="Find out what is there before anything is decided.",
        steps=(
            TemplateStep(
                step_id="map",
                title="Map what the work touches",
                prompt="Find the code, documents and people that the goal touches: entry points, the data that flows"
                " through, the tests that cover it, the configuration. Read before you judge. Write down each with its"
                " path and one sentence on why it matters; mark what you have not read yet.",
            ),
            TemplateStep(
                step_id="facts",
                title="Tell facts from assumptions",
                prompt="List what you know, each with the place that shows it, and what you only assume, each with how"
                " it could be checked cheaply. Check those that the result depends on, now. End with the questions that"
                " only the user can answer.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.design-review",
        title="Review a design",
        purpose="Find out what is wrong with a design while changing it is cheap.",
        steps=(
            TemplateStep(
                step_id="restate",
                title="Say what the design promises",
                prompt="Read the design as it stands. Restate in your own words what it promises, to whom, and what it"
                " leaves out on purpose. Where two readings are possible, note both: that is the first finding.",
                agent_role="You review a design that somebody else has to live with.",
            ),
            TemplateStep(
                step_id="attack",
                title="Look for where it breaks",
                prompt="Walk through it under load, under failure in the middle, with hostile input, at the second"
                " version, and in the hands of somebody new. For each weakness: what happens, how likely, how bad, and"
                " the smallest change that removes it.",
                agent_role="You review a design that somebody else has to live with.",
            ),
            TemplateStep(
                step_id="verdict",
                title="Say what has to change",
                prompt="Sort the findings: what must change before anything is built, what should, what can wait. Say"
                " plainly whether the design is fit to build, and what you did not look at.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.execution-simulation",
        title="Walk through it by hand",
        purpose="Execute a piece of code or a plan on paper and find where it behaves differently than intended.",
        steps=(
            TemplateStep(
                step_id="inputs",
                title="Choose the inputs that matter",
                prompt="Choose three to five concrete inputs or situations: the ordinary one, the edges, the one that"
                " is said to fail. Write down for each what should come out, before you trace anything.",
            ),
            TemplateStep(
                step_id="trace",
                title="Trace each by hand",
                prompt="Trace each input line by line or step by step, with the values as they change. Do not skip what"
                " looks obvious. Note the first place where what happens differs from what you wrote down, and where"
                " you had to guess.",
            ),
            TemplateStep(
                step_id="findings",
                title="Say what the traces show",
                prompt="For each difference: is the code wrong, the plan, or your expectation? Name the line, the"
                " cause and the check that would have caught it.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.feedback-resolution",
        title="Work through feedback",
        purpose="Turn each review comment into a change or a reason.",
        steps=(
            TemplateStep(
                step_id="sort",
                title="Sort the feedback",
                prompt="List every comment once, in your own words, with who made it and where. Sort: a fault, a"
                " question, a preference, out of scope. Where one cannot be understood, say what you would ask.",
            ),
            TemplateStep(
                step_id="resolve",
                title="Answer each",
                prompt="For each comment: make the change, or give the reason why not. A preference is followed unless"
                " it costs something; say what. Keep the list with what was done beside each entry.",
            ),
            TemplateStep(
                step_id="close",
                title="Check that nothing is left",
                prompt="Go through the list again beside the result. Run what the changes may have broken. Report what"
                " was changed, what was declined and why, and what is still open.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.final-verification",
        title="Verify the result",
        purpose="Check the finished work against what was asked, with evidence.",
        steps=(
            TemplateStep(
                step_id="criteria",
                title="Say what done means",
                prompt="From the goal and the plan, list what must be true of the result, each so that it can be"
                " checked: a command, a file, a behaviour. Include what must not have changed.",
                agent_role="You verify work as somebody who did not do it.",
            ),
            TemplateStep(
                step_id="check",
                title="Check each point",
                prompt="Check each point yourself, now: run the command, open the file, use the thing. Write down what"
                " you ran and what it printed, shortened to what matters. A point that was not checked is not passed.",
                agent_role="You verify work as somebody who did not do it.",
            ),
            TemplateStep(
                step_id="report",
                title="Report what holds",
                prompt="Report point by point: holds, does not hold, could not be checked. For what does not hold say"
                " how far off it is and what it would take.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.hypothesis-challenge",
        title="Challenge a hypothesis",
        purpose="Try to prove an explanation wrong before anybody acts on it.",
        steps=(
            TemplateStep(
                step_id="rivals",
                title="Find rival explanations",
                prompt="State the current explanation in one sentence. Then write down at least two others that would"
                " produce the same evidence, including the boring ones: stale data, wrong environment, coincidence.",
            ),
            TemplateStep(
                step_id="test",
                title="Find what tells them apart",
                prompt="For each pair, find an observation that one predicts and the other excludes, and make it. Look"
                " for what would refute the favourite, not for more of what fits. Say which explanations are still"
                " standing, and how sure you are.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.plan-generation",
        title="Make a plan",
        purpose="Turn a goal into small pieces of work, each with its proof.",
        steps=(
            TemplateStep(
                step_id="slices",
                title="Cut the work into slices",
                prompt="Cut the work into slices that each leave everything working. For each: what changes, where,"
                " what proves it, what it depends on. The riskiest comes first; what cannot be proved is cut anew.",
            ),
            TemplateStep(
                step_id="risks",
                title="Say what could go wrong",
                prompt="For each slice name what could go wrong and the sign by which you would notice early. Say what"
                " you would do then. Remove slices that the goal does not need, and say so.",
            ),
        ),
    ),
    RoutineTemplate(
        template_id="wr.templates.routine.tension-driven-design",
        title="Design along the tensions",
        purpose="Find designs that settle what pulls in different directions, compare them, and write them down.",
        args=("deliverableName",),
        steps=(
            TemplateStep(
                step_id="tensions",
                title="Name what pulls in different directions",
                prompt="Name the three to five tensions of the problem: pairs of things that are both wanted and cost"
                " each other, such as simple against flexible or fast against safe. For each say who wants which side,"
                " and what would happen if it were given up entirely.",
                agent_role="You design by making trade-offs visible, not by defending a favourite.",
            ),
            TemplateStep(
                step_id="candidates",
                title="Find designs that differ",
                prompt="Sketch at least three designs that settle the tensions differently, one of them as simple as it"
                " can be. For each: how it works in a few sentences, which tensions it settles and which it gives up,"
                " what it makes hard later. Two that differ in detail only count as one.",
                agent_role="You design by making trade-offs visible, not by defending a favourite.",
            ),
            TemplateStep(
                step_id="compare",
                title="Compare them honestly",
                prompt="Compare the designs against the goal, against what exists, and against failure. Say for each"
                " what would have to be true for it to be the best. Recommend one, name the runner-up, and say what"
                " would change your mind.",
            ),
            TemplateStep(
                step_id="deliver",
                title="Write {deliverableName}",
                prompt="Write `{deliverableName}`: the problem and its tensions, the designs with their trade-offs, the"
                " comparison, the recommendation with its reasons, open questions. Somebody who was not here must be"
                " able to disagree with it. Name the path in your notes.",
            ),
        ),
    ),
)

TEMPLATES: Mapping[str, RoutineTemplate] = MappingProxyType({template.template_id: template for template in _ALL})
"""Every routine by its id, in the order of the ids."""
