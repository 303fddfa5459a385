"""Reads the forms that pages send. A form that no page of the console sends is refused whole."""

from urllib.parse import parse_qsl

from starlette.requests import Request

from interlock.console.reading import RefusedPageError
from interlock.kernel.budgets.console import CONSOLE_FIELDS_MAX
from interlock.kernel.errors import ErrorCode, Refusal


async def read_form(request: Request, *names: str) -> dict[str, str]:
    """Return the fields of a form, each of `names` exactly once.

    Raises:
        RefusedPageError: The body is no such form, or not UTF-8.
    """
    body = await request.body()
    try:
        text = body.decode("utf-8")
        pairs = (
            parse_qsl(
                text,
                keep_blank_values=True,
                strict_parsing=True,
                errors="strict",
                max_num_fields=CONSOLE_FIELDS_MAX,
            )
            if text
            else []
        )
    except ValueError as error:
        raise _refusal("it cannot be parsed") from error
    fields = dict(pairs)
    if len(fields) != len(pairs) or fields.keys() != set(names):
        expected = f"the fields {', '.join(names)}, each once" if names else "no fields"
        raise _refusal(f"the form has {expected}")
    return fields


def _refusal(why: str) -> RefusedPageError:
    message = f"The form is not one of this page: {why}. Nothing was recorded."
    return RefusedPageError(
        Refusal(code=ErrorCode.VALIDATION_ERROR, message=message, suggestion="Reload the page and send it again."), 400
    )
