"""What the tests of drivers share."""

from tests.support.valid_schemas import schemas_are_checked_once as schemas_are_checked_once  # noqa: PLC0414 — a fixture
