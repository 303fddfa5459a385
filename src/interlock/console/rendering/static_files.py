"""The script and the style of all pages: their addresses name their content, so a browser may keep them (CON-11)."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from interlock.kernel.canonical import digest_of_bytes

_DIRECTORY = Path(__file__).parents[1] / "static"
_TYPES = {"console.css": "text/css", "console.js": "text/javascript"}
_ADDRESSES = {name: f"/static/{name}?v={digest_of_bytes((_DIRECTORY / name).read_bytes())[7:23]}" for name in _TYPES}
_KEPT = {"cache-control": "private, max-age=31536000, immutable"}


def address_of(name: str) -> str:
    """Return the address of a file, which changes with its content. A page runs its script without its server then."""
    return _ADDRESSES[name]


def static_file(request: Request) -> Response:
    """Answer with a file. A browser keeps what it asked for by its content, and nothing else."""
    name: str = request.path_params["name"]
    if name not in _TYPES:
        raise HTTPException(404)
    is_exact = f"{request.url.path}?{request.url.query}" == _ADDRESSES[name]
    return FileResponse(_DIRECTORY / name, headers=_KEPT if is_exact else None, media_type=_TYPES[name])
