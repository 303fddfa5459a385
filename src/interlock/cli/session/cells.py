"""How lists and pages say in a few words what every run has: its step."""

from interlock.service.words import Place
from interlock.views.summary import RunSummary


def step_words(run: RunSummary) -> str:
    """Return where a run stands among its workflow's steps."""
    return f"{run.number} of {run.total}" if run.number is not None else "-"


def place_words(place: Place) -> str:
    """Return how a step is called: by its number, its title, and the pass of the loop it is in."""
    within = f" (pass {place.loop.number})" if place.loop is not None else ""
    return f"step {place.number}, {place.title}{within}"
