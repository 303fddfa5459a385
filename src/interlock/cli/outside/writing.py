"""The ports of a command that may advance a run: with the user's whole configuration, as a server has it."""

import argparse
import os

from interlock.cli.options import checked_settings, place_arguments
from interlock.cli.screen import StopError
from interlock.config.model import FaultyConfig
from interlock.config.settings import Settings, read_settings
from interlock.service.outside.dispatch import Dispatcher
from interlock.service.ports import Ports


def command_settings(options: argparse.Namespace) -> Settings:
    """Return the settings that a server with the same arguments would use.

    Raises:
        StopError: The configuration file has faults.
    """
    with checked_settings():
        settings = read_settings(os.environ, place_arguments(options))
    if isinstance(settings, FaultyConfig):
        fix = "\n".join([*settings.lines(), "Correct each fault."])
        raise StopError("The configuration file has faults.", fix, exit_code=1)
    return settings


def command_ports(options: argparse.Namespace) -> Ports:
    """Return the ports of a command that may advance a run.

    Raises:
        StopError: See `command_settings`.
    """
    from interlock.config.ports import local_ports  # noqa: PLC0415 — it reads workflows, and most commands do not

    return local_ports(command_settings(options))


def finish_sending(ports: Ports) -> None:
    """Send in this process what the command recorded, before the command ends."""
    if isinstance(ports.outbox, Dispatcher):
        ports.outbox.drain()
