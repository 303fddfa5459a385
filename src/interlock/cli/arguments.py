"""From a parsed command line to the places it names."""

import argparse

from interlock.config.settings import PlaceArguments


def place_arguments(chosen: argparse.Namespace) -> PlaceArguments:
    """Return the places that a command line names; a command need not know all of them."""
    return PlaceArguments(
        data_dir=getattr(chosen, "data_dir", None),
        workspace=getattr(chosen, "workspace", None),
        workflows_dir=getattr(chosen, "workflows_dir", None),
        core_source=getattr(chosen, "core_source", None),
    )
