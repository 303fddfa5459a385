"""Files that the commands of a driver read: profiles, manifests and scripts, in JSON or YAML."""

from pathlib import Path

from interlock.cli.screen import StopError
from interlock.define.diagnostics import Diagnostic
from interlock.define.source.text_form import parse_text
from interlock.drive.agent.manifest import LoadedProfile, load_profile
from interlock.drive.faults import TurnError
from interlock.kernel.budgets.drive import PROFILE_BYTES_MAX
from interlock.kernel.canonical import Json
from interlock.store.regular_file import read_regular


def read_object(name: str, bytes_max: int = PROFILE_BYTES_MAX) -> dict[str, Json]:
    """Read a file that holds one object, in JSON or YAML.

    Raises:
        StopError: It cannot be read, is too large, or holds something else.
    """
    try:
        data = read_regular(Path(name), bytes_max)
    except OSError as error:
        raise StopError(
            f"{name} cannot be read: {error.strerror}.", "Name a file that you can read.", exit_code=2
        ) from error
    if len(data) > bytes_max:
        raise StopError(f"{name} has more than {bytes_max} bytes.", "Use a smaller file.", exit_code=2)
    parsed = parse_text(data, "json" if name.endswith(".json") else "yaml")
    if isinstance(parsed, Diagnostic):
        raise StopError(f"{name}: {parsed.message}", parsed.fix, exit_code=2)
    return parsed


def read_agent(name: str) -> LoadedProfile:
    """Read the profile of an agent.

    Raises:
        StopError: It cannot be read, or a field that is used has another form.
    """
    try:
        return load_profile(read_object(name))
    except TurnError as error:
        fix = "`interlock agent validate` lists each field of the file."
        raise StopError(f"{name}: {error.fault.message}", fix, exit_code=2) from error
