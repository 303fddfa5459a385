"""The keys whose signatures count here, for commands that show what a log says of signatures (WORLD-10)."""

import argparse
import os

from interlock.cli.options import place_arguments
from interlock.config.data_dir import SettingsError
from interlock.config.model import FaultyConfig
from interlock.config.settings import read_settings
from interlock.views.outside import SigningKeys
from interlock.views.session import Session


def known_keys(options: argparse.Namespace, session: Session) -> SigningKeys | None:
    """Return the configured signing keys; None if no event of the session has one: then no file is read.

    Of a configuration with faults, no key is known: a view is shown nevertheless.
    """
    if all(one.data.signed is None for one in session.outside.events.values()):
        return None
    try:
        settings = read_settings(os.environ, place_arguments(options))
    except SettingsError:
        return frozenset()
    if isinstance(settings, FaultyConfig):
        return frozenset()
    return frozenset((one.name, one.public_key) for one in settings.config.sources)
