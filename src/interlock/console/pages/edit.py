"""The page that edits the source of a workflow: diagnostics as one types, and no save while it cannot run (CON-13)."""

from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from interlock.console.pages.forms import read_form
from interlock.console.reading import RefusedPageError
from interlock.console.rendering.templates import Templates
from interlock.define.source.edits import TextEdit, text_edits
from interlock.define.workflow_ids import suggest_id
from interlock.kernel.budgets.console import CONSOLE_MATCHES_SHOWN
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import Digest
from interlock.plan.builtins.features import FEATURES
from interlock.plan.builtins.packs import PACKS
from interlock.plan.builtins.references import SNIPPETS
from interlock.plan.builtins.templates import TEMPLATES
from interlock.service.workflows.authoring import NotWritten, OpenedSource, WorkflowAuthor

_BYTE_ORDER_MARK = "\ufeff"
_BUILTINS = (
    ("Contracts: what an artifact must be", [(key, one.title) for key, one in PACKS.items()]),
    ("Routines: steps that are unfolded in place", [(key, one.title) for key, one in TEMPLATES.items()]),
    ("Features: lines that are added to every step", [(key, one.title) for key, one in FEATURES.items()]),
    ("Texts: inlined where they are named", [(key, one.title) for key, one in SNIPPETS.items()]),
)
"""What `interlock workflow builtins` lists: the id is inserted, and the compiler says what it needs besides."""


@dataclass(frozen=True, kw_only=True)
class EditPages:
    """The handlers. Only `save` and `copy` write."""

    authoring: WorkflowAuthor
    templates: Templates

    def edit(self, request: Request) -> Response:
        """Show the source of a workflow, to be edited or copied."""
        workflow, opened = self._opened(request)
        text = opened.data.decode("utf-8", "replace").replace("\r\n", "\n")
        values = {
            "title": f"Edit {workflow}",
            "workflow_id": workflow,
            "opened": opened,
            "text": text,
            "suggested": suggest_id(workflow, "project"),
            "builtins": _BUILTINS if opened.is_editable else (),
            **self._checked(opened, text),
        }
        return self.templates.page(request, "edit.html", values)

    async def check(self, request: Request) -> Response:
        """Show the diagnostics of a source that is not saved."""
        fields = await read_form(request, "source")

        def check() -> Response:
            _, opened = self._opened(request)
            text = fields["source"].replace("\r\n", "\n")
            return self.templates.page(
                request, "diagnostics.html", {"title": "Diagnostics", **self._checked(opened, text)}
            )

        return await run_in_threadpool(check)

    async def save(self, request: Request) -> Response:
        """Replace the file, if the source can run and the file is unchanged since it was opened."""
        fields = await read_form(request, "source", "opened")
        workflow: str = request.path_params["workflow"]
        refused = await run_in_threadpool(
            self.authoring.save, workflow, _bytes_of(fields["source"]), Digest(fields["opened"])
        )
        return self._done(request, refused, workflow, "Saved. Runs that exist keep the version that they pinned.")

    async def copy(self, request: Request) -> Response:
        """Copy a workflow to an id of the project."""
        fields = await read_form(request, "id")
        workflow: str = request.path_params["workflow"]
        refused = await run_in_threadpool(self.authoring.copy, workflow, fields["id"])
        return self._done(request, refused, fields["id"], "Copied into the project.")

    def _checked(self, opened: OpenedSource, text: str) -> dict[str, Any]:
        """Return what a page shows of a source: each diagnostic with its edit, and the steps as they are compiled."""
        found = self.authoring.check(opened, _bytes_of(text))
        is_plain = opened.is_editable and not text.startswith(_BYTE_ORDER_MARK)
        edits = text_edits(text, opened.form, found.diagnostics) if is_plain else [None] * len(found.diagnostics)
        placed = [_units(text, one) if one is not None else None for one in edits]
        return {
            "diagnostics": list(zip(found.diagnostics, placed, strict=True)),
            "steps": found.steps[:CONSOLE_MATCHES_SHOWN],
            "steps_left_out": max(0, len(found.steps) - CONSOLE_MATCHES_SHOWN),
        }

    def _opened(self, request: Request) -> tuple[str, OpenedSource]:
        workflow: str = request.path_params["workflow"]
        opened = self.authoring.open(workflow)
        if opened is None:
            message = "There is no workflow with this id."
            refusal = Refusal(code=ErrorCode.WORKFLOW_NOT_FOUND, message=message, suggestion="Choose one of the list.")
            raise RefusedPageError(refusal, 404)
        return workflow, opened

    def _done(self, request: Request, refused: NotWritten | None, workflow: str, said: str) -> Response:
        if refused is not None:
            raise RefusedPageError(refused.refusal, 409)
        return self.templates.page(request, "saved.html", {"title": "Written", "said": said, "workflow_id": workflow})


def _units(text: str, edit: TextEdit) -> TextEdit:
    """Return an edit with places as browsers count them: in units of UTF-16."""
    start, end = (len(text[:at].encode("utf-16-le", "surrogatepass")) // 2 for at in (edit.start, edit.end))
    return TextEdit(start=start, end=end, write=edit.write)


def _bytes_of(text: str) -> bytes:
    """Return the bytes of a text that a form sent: forms end lines with CR LF."""
    return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
