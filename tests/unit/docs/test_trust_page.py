"""The workflow and the configuration of the page on trust are valid and belong together."""

import re
from pathlib import Path

import yaml
from tests.support.flow import Document

from interlock.config.form import parse_config
from interlock.config.model import Config
from interlock.define.document import WorkflowDocument
from interlock.define.front import parse_workflow
from interlock.plan.compile.compiler import Compiled, compile_workflow

PAGE = (Path(__file__).parents[3] / "docs" / "trust.md").read_text(encoding="utf-8")


def labelled(label: str) -> str:
    (found,) = re.findall(rf"^```{label}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def block(language: str) -> str:
    return labelled(f"{language} trust")


def test_the_workflow_compiles_and_the_configuration_has_its_checks() -> None:
    value: Document = yaml.safe_load(block("yaml"))
    parsed = parse_workflow(value)
    assert isinstance(parsed, WorkflowDocument), parsed
    compiled = compile_workflow(parsed)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.warnings == ()
    config = parse_config(block("toml"))
    assert isinstance(config, Config), config
    assert set(compiled.workflow.checks) == {one.name for one in config.checks}
    musts = [node.task.awaits.must for node in compiled.workflow.steps.values() if node.task and node.task.awaits]
    assert musts == ["passed", None]


def test_the_workflow_with_questions_compiles() -> None:
    parsed = parse_workflow(yaml.safe_load(labelled("yaml approve")))
    assert isinstance(parsed, WorkflowDocument), parsed
    compiled = compile_workflow(parsed)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.warnings == ()
    musts = [node.task.awaits.must for node in compiled.workflow.steps.values() if node.task and node.task.awaits]
    assert musts == ["approved", None]


def test_the_workflow_with_proofs_compiles() -> None:
    parsed = parse_workflow(yaml.safe_load(labelled("yaml proof")))
    assert isinstance(parsed, WorkflowDocument), parsed
    compiled = compile_workflow(parsed)
    assert isinstance(compiled, Compiled), compiled
    assert compiled.warnings == ()
    proofs = [one for node in compiled.workflow.steps.values() if node.task for one in node.task.proofs]
    assert [(one.command.value, one.assurance) for one in proofs] == [(None, "observed"), ("make lint", "claimed")]
