"""The pages: each reads a view that some command prints too, and renders it. Nothing here writes (CON-1, CON-6)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from interlock.console.maintenance import Maintenance
from interlock.console.reading import RefusedPageError, Sources, missing
from interlock.console.rendering.step_blocks import step_details, step_summary
from interlock.console.rendering.templates import Templates, safe
from interlock.engine.judge.recommended import beyond_recommendation
from interlock.kernel.budgets.console import (
    CONSOLE_MATCHES_SHOWN,
    CONSOLE_NODES_SHOWN,
    CONSOLE_RUNS_SHOWN,
    CONSOLE_STEPS_SHOWN,
)
from interlock.kernel.errors import ErrorCode, Refusal
from interlock.kernel.ids import NodeId, RunId, SessionId
from interlock.plan.outline import outline_lines
from interlock.plan.provenance import hash_parts, text_origins
from interlock.record.payloads import CapabilityObserved
from interlock.service.audit.damage import Damage
from interlock.service.audit.explain import explain
from interlock.service.report.difference import compare_branches
from interlock.service.report.lines import blocker_line, branch_line, fact_line, gap_line, verdict_line
from interlock.service.report.run_list import ListFilter, Row, best_matches, newest_first, project_of, rows_of, texts_of
from interlock.service.report.session_report import FactReport, RunReport, SessionReporter, draw_chart
from interlock.service.report.step_report import StepReport, time_bars
from interlock.service.retention.lifetime import lifetime_of
from interlock.service.run.advice import advise_by_health
from interlock.service.run.context import RunContext
from interlock.service.run.summarize import PERSON_AWAITED
from interlock.service.workflows.catalog import Entry, Pinnable, RefusedFile
from interlock.store.ports.errors import ContentDamagedError
from interlock.views.node_position import chain_head
from interlock.views.picture.plan_picture import plan_chart
from interlock.views.picture.svg import render_svg
from interlock.views.picture.time_picture import shown_bars, time_svg
from interlock.views.run_graph import GraphNode, newest_part, preferred_branch, split_children
from interlock.views.session import Node, Session
from interlock.views.summary import RunStatus

_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The handlers of all pages. Each runs in a worker thread."""

    sources: Sources
    maintenance: Maintenance
    templates: Templates

    def now(self, request: Request) -> Response:
        """Show the runs that match a search, by project, newest first; and sessions that cannot be read."""
        query, wanted = request.query_params.get("q", ""), request.query_params.getlist("status")
        statuses: frozenset[RunStatus] = frozenset(one for one in _STATUSES if one in wanted)
        listed = self.sources.listing()
        every = [row for session in listed.sessions for row in rows_of(session)]
        fitting = newest_first(row for row in every if ListFilter(statuses=statuses).fits(row.run))
        if query.strip():
            fitting, _ = best_matches(fitting, map(texts_of, fitting), query)
        page = number_of(request, "page", 1)
        first = (page - 1) * CONSOLE_RUNS_SHOWN
        shown = fitting[first : first + CONSOLE_RUNS_SHOWN]
        values = {
            "title": "Now",
            "groups": self._groups(shown),
            "query": query,
            "statuses": [(one, one.replace("_", " "), one in statuses) for one in _STATUSES],
            "total": len(every),
            "fitting": len(fitting),
            "open": sum(_needs_somebody(row) for row in every),
            "page": page,
            "has_more": first + len(shown) < len(fitting),
            "unreadable": [(one, advise_by_health(one.session, one.health)) for one in listed.unreadable],
            "live": "*",
        }
        return self.templates.page(request, "now.html", values)

    def _groups(self, rows: list[Row]) -> list[tuple[str, list[dict[str, Any]]]]:
        view = self.sources.view() if rows else None
        groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            drift = self.sources.drift_of(row.run, view) if view is not None else None
            groups[project_of(row.run)].append({"row": row, "drift": drift, "waits": _needs_somebody(row)})
        return list(groups.items())

    def session(self, request: Request) -> Response:
        """Lead to the newest run of a session."""
        session: str = request.path_params["session"]
        listed = next((one for one in self.sources.listing().sessions if one.session == session), None)
        runs = [one.run for one in listed.runs] if listed is not None else self._runs_of(session)
        if not runs:
            raise RefusedPageError(missing("run", session), 404)
        return RedirectResponse(f"/sessions/{session}/runs/{runs[-1]}", 303)

    def _runs_of(self, session: str) -> list[RunId]:
        """Return the runs of a session that has no summary, in the order they began."""
        viewed = self.sources.view_session(session, lambda history: history.session)
        return [one.run for one in sorted(viewed.view.runs.values(), key=lambda run: run.index)]

    def run(self, request: Request) -> Response:
        """Show a run: its picture and its newest steps, or the steps before those."""
        session, run_id = request.path_params["session"], request.path_params["run"]
        after = number_of(request, "after", 0, least=0)
        viewed, reading = self.sources.report(session, run_id, (CONSOLE_STEPS_SHOWN, after))
        if viewed is None:
            return self.templates.reading(request, f"Run {run_id}", reading, session)
        (run,) = viewed.view.runs
        values = {
            **run_values(session, run, viewed.damage, is_folded=request.query_params.get("branches") == "preferred"),
            "has_forks": len(run.branches) > 1,
            "title": f"{run.summary.workflow_name}: run {run.summary.label}",
            "events": viewed.view.events,
            "after": after,
            "older": after + CONSOLE_STEPS_SHOWN if run.left_out else None,
            "drift": self.sources.drift_of(run.summary, self.sources.view()),
            "lifetime": self._lifetime(run.run_context.session),
            "question": _question_address(session, run),
            "reading": reading,
            "live": session,
        }
        return self.templates.page(request, "run.html", values)

    def _lifetime(self, session: Session) -> str:
        """Return how long a session is kept, by the configuration as it is now."""
        settings = self.maintenance.read_settings()
        days = None if isinstance(settings, str) else settings.config.retention_days
        return lifetime_of(session, self.maintenance.kept(), days).in_words()

    def node(self, request: Request) -> Response:
        """Show one step: its task, the evidence, what it changed, and refused attempts.

        A step that was redone has several results: that of the preferred branch, or that of the child `via`.
        """
        session, node_id = request.path_params["session"], request.path_params["node"]
        via = request.query_params.get("via")
        viewed, reading = self.sources.view_or_progress(
            (session, "node", node_id, via or ""),
            lambda history: self._node_values(self.sources.branch_in(history, session, node_id), via),
        )
        if viewed is None:
            return self.templates.reading(request, f"Node {node_id}", reading, session)
        values = {**viewed.view, "session": session, "damage": viewed.damage, "live": session, "reading": reading}
        return self.templates.page(request, "node.html", values)

    def _node_values(self, view: tuple[SessionReporter, RunContext, Node], via: str | None) -> dict[str, Any]:
        reporter, run_context, node = view
        begin = run_context.session.nodes[NodeId(via)] if via is not None and via in node.children else node
        end = _end_of(run_context, begin)
        step = reporter.step(run_context, end, node)
        return {
            "title": step.place.title if step is not None else "Complete",
            "run": run_context.view(node),
            "node": node,
            "beyond": list(beyond_recommendation(run_context.workflow, node.preferences)),
            "others": _other_results(view, end),
            "step": step,
            "blocks": tuple(step_details(step)) if step is not None else (),
            "why": self._why(run_context, node),
        }

    def _why(self, run_context: RunContext, node: Node) -> tuple[str, ...]:
        """Return what was decided on the way to a node, with the values that were read, as `session explain` does."""
        try:
            found = explain(self.sources.store, self.sources.plans, run_context.session, node)
        except ContentDamagedError:
            return ()
        return (*found.decisions, *(f"set {one}" for one in found.effects))

    def prove(self, request: Request) -> Response:
        """Compute every recorded decision of a session again, now, and show what differs."""
        session: str = request.path_params["session"]
        if not self.sources.store.is_stored(SessionId(session)):
            raise RefusedPageError(missing("record here", session), 404)
        proof, reading = self.sources.proof(SessionId(session))
        if proof is None:
            return self.templates.reading(request, f"Proof of {session}", reading)
        values = {"title": f"Proof of {session}", "session": session, "proof": proof}
        return self.templates.page(request, "prove.html", values)

    def compare(self, request: Request) -> Response:
        """Compare two branches, aligned by step. A branch is named by its session and the node at its end."""
        names = [request.query_params.get(side, "") for side in ("a", "b")]
        if not all(names):
            values = {"title": "Compare", "names": names, "found": None, "choices": self._choices(names)}
            return self.templates.page(request, "compare.html", values)
        branches = [self._branch(name) for name in names]
        (first, first_context, first_view), (second, second_context, second_view) = branches
        found = compare_branches(first, second, (first_context, second_context))
        values = {
            "title": "Compare",
            "names": names,
            "found": found,
            "steps": found.steps[:CONSOLE_MATCHES_SHOWN],
            "left_out": max(0, len(found.steps) - CONSOLE_MATCHES_SHOWN),
            "views": (first_view, second_view),
            "choices": self._choices(names, (first_view, second_view)),
        }
        return self.templates.page(request, "compare.html", values)

    def _choices(self, names: Sequence[str], views: Sequence[Any] = ()) -> list[tuple[str, str]]:
        """Return the branches that can be chosen, with their names: those compared, and the newest runs."""
        newest = newest_first(row for one in self.sources.listing().sessions for row in rows_of(one))
        found = {f"{row.session}:{row.run.tip}": _name_of(row) for row in newest[:CONSOLE_RUNS_SHOWN]}
        compared = dict(zip(names, views, strict=False))
        others = {
            name: f"{one.goal or one.workflow_name}, run {one.label}, branch to {name[-6:]}"
            for name, one in compared.items()
            if name not in found
        }
        return [*others.items(), *found.items()]

    def _branch(self, name: str) -> tuple[tuple[StepReport, ...], Mapping[str, Any], Any]:
        session, _, node_id = name.strip().partition(":")
        if not node_id:
            fix = "Name a session and a node with a colon between them, as the links of a run do."
            refusal = Refusal(code=ErrorCode.VALIDATION_ERROR, message="A branch is not complete.", suggestion=fix)
            raise RefusedPageError(refusal, 400)
        reporter, run_context, node = self.sources.branch(session, node_id).view
        return reporter.branch(run_context, node), run_context.session.context(node.node), run_context.view(node)

    def workflows(self, request: Request) -> Response:
        """List the workflows that agents can start, and the files that have faults."""
        view = self.sources.view()
        entries = [entry for _, entry in sorted(view.entries.items())]
        values = {"title": "Workflows", "entries": entries, "refused": view.refused, "suggested": view.suggested}
        return self.templates.page(request, "workflows.html", values)

    def workflow(self, request: Request) -> Response:
        """Show a workflow: its plan drawn, its source, and the runs that pinned it."""
        view, workflow_id = self.sources.view(), request.path_params["workflow"]
        found = view.found(workflow_id)
        if found is None:
            message = "There is no workflow with this id."
            refusal = Refusal(code=ErrorCode.WORKFLOW_NOT_FOUND, message=message, suggestion="Choose one of the list.")
            raise RefusedPageError(refusal, 404)
        compiled = found.compiled if isinstance(found, Entry) else found
        rows = [row for one in self.sources.listing().sessions for row in rows_of(one)]
        runs = newest_first(row for row in rows if row.run.workflow_id == workflow_id)[:CONSOLE_RUNS_SHOWN]
        values = {
            "title": workflow_id,
            "workflow_id": workflow_id,
            "source": found.source,
            "text": found.source.data.decode("utf-8", "replace"),
            "entry": found if isinstance(found, Entry) else None,
            "pinned": compiled if isinstance(compiled, Pinnable) else None,
            "diagnostics": compiled.diagnostics if isinstance(compiled, RefusedFile) else compiled.warnings,
            "picture": safe(render_svg(plan_chart(compiled.workflow), is_embedded=True))
            if isinstance(compiled, Pinnable)
            else None,
            "outline": outline_lines(compiled.workflow) if isinstance(compiled, Pinnable) else [],
            "origins": list(text_origins(compiled.workflow)) if isinstance(compiled, Pinnable) else [],
            "parts": list(hash_parts(compiled.workflow)) if isinstance(compiled, Pinnable) else [],
            "runs": runs,
        }
        return self.templates.page(request, "workflow.html", values)


def _end_of(run_context: RunContext, begin: Node) -> Node:
    """Return the end of the branch through a node: the preferred one, or else the newest."""
    nodes, preferred, above = run_context.session.nodes, set[NodeId](), run_context.run.tip
    while above is not None and above not in preferred:
        preferred.add(above)
        above = nodes[above].parent
    here = begin
    while here.children:
        here = nodes[next((one for one in here.children if one in preferred), here.children[-1])]
    return here


def _other_results(view: tuple[SessionReporter, RunContext, Node], shown: Node) -> list[dict[str, Any]]:
    """Return what else came of a step, the newest first: a branch through each of its nodes other than that shown."""
    reporter, run_context, node = view
    found: list[dict[str, Any]] = []
    if len(node.children) > 1:
        for child in (run_context.session.nodes[one] for one in reversed(node.children)):
            end = _end_of(run_context, child)
            step = reporter.step(run_context, end, node) if end.node != shown.node else None
            if step is not None and len(found) < CONSOLE_STEPS_SHOWN:
                found.append({"via": child.node, "at": step.at, "blocks": tuple(step_summary(step))})
    return found


def run_values(session: str, run: RunReport, damage: Damage | None, *, is_folded: bool = False) -> dict[str, Any]:
    """Return what a page shows of a run, now or in the past; `is_folded`: only its preferred branch is drawn."""
    whole = preferred_branch(run.graph) if is_folded else run.graph
    newest = newest_part(whole, CONSOLE_NODES_SHOWN)
    graph = draw_chart(run.run_context, newest)
    return {
        "session": session,
        "run": run,
        "damage": damage,
        "blockers": [blocker_line(one) for one in run.blockers],
        "gaps": [gap_line(one) for one in run.gaps],
        "badges": [(one, fact_line(one.fact)) for one in _in_effect(run.facts)],
        "facts": [(one, fact_line(one.fact)) for one in reversed(run.facts[-CONSOLE_MATCHES_SHOWN:])],
        "facts_left_out": max(0, len(run.facts) - CONSOLE_MATCHES_SHOWN),
        "beyond": list(beyond_recommendation(run.run_context.workflow, run.preferences)),
        "verdicts": [verdict_line(one) for one in run.verdicts if one.is_in_effect],
        "branches": [(one, branch_line(one)) for one in run.branches] if len(run.branches) > 1 else [],
        "picture": safe(render_svg(graph, is_embedded=True, link_of=lambda node: _node_address(session, node))),
        "times": _times(session, run),
        "tree": _tree(run, newest, session),
        "is_cut": newest is not whole,
        "is_folded": is_folded,
        "has_forks": False,
        "steps": [_step_row(session, step) for step in reversed(run.steps)],
        "after": 0,
        "older": None,
        "drift": None,
        "lifetime": None,
        "question": None,
        "reading": None,
    }


def _times(session: str, run: RunReport) -> Markup | None:
    """Return the shown steps over time as a picture; None if their times are not recorded."""
    bars = shown_bars(time_bars(run.steps))
    return safe(time_svg(bars, link_of=lambda node: _node_address(session, node))) if bars else None


def _in_effect(facts: Sequence[FactReport]) -> list[FactReport]:
    """Return on the way to the preferred tip the newest observation of each capability, and every deviation."""
    newest: dict[Any, FactReport] = {}
    for one in facts:
        if one.is_on_path:
            newest[
                one.fact.capability if isinstance(one.fact, CapabilityObserved) else (one.node, one.fact.summary)
            ] = one
    return list(newest.values())[-CONSOLE_MATCHES_SHOWN:]


def _question_address(session: str, run: RunReport) -> str | None:
    """Return the address of the question that a run waits for; None if it waits for no person."""
    if run.summary.waiting != PERSON_AWAITED:
        return None
    folded = run.run_context.session
    return f"/sessions/{session}/questions/{chain_head(folded, folded.nodes[run.summary.tip]).node}"


def _name_of(row: Row) -> str:
    return f"{row.run.goal or row.run.workflow_name}, run {row.run.label} ({row.run.status_text})"


def _needs_somebody(row: Row) -> bool:
    return row.run.status == "blocked" or row.run.waiting is not None


def number_of(request: Request, name: str, default: int, *, least: int = 1) -> int:
    """Return a number of a query; the default if it is missing or no number."""
    text = request.query_params.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(10**9))
    return max(least, int(text)) if is_number else default


def _node_address(session: str, node: str) -> str:
    return f"/sessions/{session}/nodes/{node}"


def _step_row(session: str, step: StepReport) -> dict[str, Any]:
    return {"step": step, "blocks": tuple(step_summary(step)), "address": _node_address(session, step.node)}


def _tree(run: RunReport, graph: GraphNode, session: str) -> list[dict[str, Any]]:
    """Return the nodes of a part of a run as rows: forks are one level below the node at which they began."""
    rows: list[dict[str, Any]] = []
    begins: list[tuple[GraphNode, int]] = [(graph, 0)]
    while begins:
        start, depth = begins.pop()
        here: GraphNode | None = start
        while here is not None:
            place = run.run_context.place(here.node)
            rows.append(
                {
                    "title": f"{place.number}. {place.title}" if place is not None else "complete",
                    "node": here.node.node,
                    "kind": here.node.kind,
                    "is_tip": here.is_tip,
                    "is_fork": here is start and depth > 0,
                    "depth": min(depth, 5),
                    "checkpoints": len(here.checkpoints),
                    "address": _node_address(session, here.node.node),
                }
            )
            here, forks = split_children(here)
            begins += [(fork, depth + 1) for fork in forks]
    return rows[-CONSOLE_NODES_SHOWN:]
