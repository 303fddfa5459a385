"""Every form of the drawing of a plan, and which of its nodes each of them shows."""

import re
from collections import Counter
from io import StringIO
from xml.etree import ElementTree as ET

from rich.console import Console

from interlock.cli.render.chart import Dot, Mermaid
from interlock.cli.workflow.graph import charted, drawn
from interlock.plan.compiled import CompiledWorkflow
from interlock.views.picture.chart import all_parts, fold_chart
from interlock.views.picture.plan_picture import plan_chart
from interlock.views.picture.svg import render_svg


def assert_drawn_whole(workflow: CompiledWorkflow) -> None:
    """Draw a plan in every form; each shows each step once, and a folded picture counts them all."""
    steps = Counter(map(str, workflow.numbers.values()))
    out = StringIO()
    Console(file=out, width=1_000, color_system=None).print(drawn(workflow))
    assert Counter(re.findall(r"● (\d+)\. ", out.getvalue())) == steps
    for pen in (Mermaid(), Dot()):
        text = charted(workflow, pen)
        for number, node in enumerate(workflow.plan.nodes, start=1):
            assert f"n{number}_{node.node_id.replace('-', '_')}" in text
    chart = plan_chart(workflow)
    titles = [part.box.lines[0] for part in all_parts(chart.parts) if part.box.kind == "step"]
    assert Counter(title.partition(".")[0] for title in titles) == steps
    assert sum(part.box.steps for part in all_parts(fold_chart(chart).parts)) == len(steps)
    for is_embedded in (True, False):
        ET.fromstring(render_svg(chart, is_embedded=is_embedded))  # noqa: S314 — our own
