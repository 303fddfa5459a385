"""Contracts of the project, and the work and the goals of the sessions that execute one (CON-12)."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from interlock.console.decisions import Decisions
from interlock.console.reading import RefusedPageError, Sources, missing
from interlock.console.rendering.templates import Templates
from interlock.define.operations.contracts import Contract
from interlock.kernel.budgets.console import CONSOLE_CONTRACTS_READ_MAX
from interlock.kernel.ids import SessionId
from interlock.service.contracts.start import refuse_no_contract
from interlock.service.contracts.status import read_status
from interlock.store.ports.errors import SessionUnhealthyError


@dataclass(frozen=True, kw_only=True)
class ContractPages:
    """The handlers. Each runs in a worker thread."""

    sources: Sources
    decisions: Decisions
    templates: Templates

    def listed(self, request: Request) -> Response:
        """Show the contracts of the project, and the newest sessions that execute a contract."""
        definitions = [one for one in self.sources.view().definitions if isinstance(one, Contract)]
        newest = self.sources.listing().newest_first()
        read = newest[:CONSOLE_CONTRACTS_READ_MAX]
        found: list[tuple[str, str, str]] = []
        for summary in read:
            try:
                session = self.sources.store.load(summary.session)
            except SessionUnhealthyError:
                continue
            bounds = session.contracts[:1] if session is not None else ()
            found += [(summary.session, one.contract_id, str(one.contract_version)) for one in bounds]
        values = {
            "title": "Contracts",
            "definitions": definitions,
            "sessions": found,
            "names": {one.id: one.name for one in definitions},
            "unread": len(newest) - len(read),
            "live": "*",
        }
        return self.templates.page(request, "contracts.html", values)

    def contract(self, request: Request) -> Response:
        """Show the contract that a session executes: its work and its goals, apart from each other."""
        session: str = request.path_params["session"]
        if session not in self.sources.store.names():
            raise RefusedPageError(missing("record here", session), 404)
        status = read_status(self.decisions.ports.read, SessionId(session))
        if status is None:
            raise RefusedPageError(refuse_no_contract(SessionId(session)), 404)
        values = {"title": status.contract.name, "session": session, "status": status, "live": session}
        return self.templates.page(request, "contract.html", values)
