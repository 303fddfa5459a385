"""Clients of one test process check each schema once."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator


@pytest.fixture(scope="session", autouse=True)
def schemas_are_checked_once() -> Iterator[None]:
    """Let a schema that was found valid count as valid in every later client.

    A client of the SDK checks the output schema of each tool that it calls, which takes a tenth of a second for each
    client and tool, always for the same schemas. The answers are still validated by them.
    """
    check, valid = Draft202012Validator.check_schema, set[str]()

    def check_once(schema: Mapping[str, Any] | bool, *more: Any, **options: Any) -> None:  # noqa: FBT001 — as the original
        text = json.dumps(schema, sort_keys=True)
        if text not in valid:
            check(schema, *more, **options)
            valid.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", staticmethod(check_once))
        yield
