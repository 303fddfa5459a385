"""The place at which a command is run: which runs are of its project, and whether their workflows changed there."""

import argparse
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.options import place_arguments
from interlock.cli.screen import StopError
from interlock.kernel.frozen import replace
from interlock.kernel.ids import Digest
from interlock.service.report.run_list import is_source_visible, project_of
from interlock.views.summary import Drift, RunSummary, path_digest

if TYPE_CHECKING:
    from interlock.service.workflows.catalog import CatalogView


class Place:
    """The directory at which a command is run, and the arguments that name the sources of workflows.

    Git is asked for the repository when it is first needed: it takes longer than reading a session.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    @cached_property
    def root(self) -> str | None:
        """The root of the repository around the named workspace, or around the current directory; None outside."""
        from interlock.store.git import git_anchors  # noqa: PLC0415 — see above

        arguments = place_arguments(self._options)
        here = arguments.workspace or os.environ.get("INTERLOCK_WORKSPACE") or "."
        return git_anchors(Path(here)).repo_root

    @cached_property
    def repo(self) -> Digest | None:
        """The digest that identifies the repository; None outside of one."""
        return path_digest(self.root) if self.root is not None else None

    def holds(self, run: RunSummary, *, is_strict: bool) -> bool:
        """Say whether a run began in this repository. Unless `is_strict`, so may one whose place is not known."""
        if run.repo is None:
            return not is_strict
        return run.repo == self.repo or (self.repo is None and not is_strict)

    def project_of(self, run: RunSummary) -> str:
        """Return the name of a run's project: of this one, or as recorded, else a few digits; empty if unknown."""
        return project_of(replace(run, repo_root=self.root) if run.repo == self.repo else run)

    def drift_of(self, run: RunSummary) -> Drift | None:
        """Return whether the workflow of an open run changed since it began.

        None for a run of another project, whose files are not visible from here.
        """
        if not is_source_visible(run, lambda: self.repo) or self._catalog is None:
            return None
        return self._catalog.drift_of(run)

    @cached_property
    def _catalog(self) -> "CatalogView | None":
        """The sources as a server here would read them; None if the configuration does not allow it."""
        from interlock.cli.workflow.places import chosen_places  # noqa: PLC0415 — only an open run needs it

        try:
            places = chosen_places(self._options)
        except StopError:
            return None
        return places.catalog.view(places.workspace)
