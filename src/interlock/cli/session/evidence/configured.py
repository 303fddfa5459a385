"""What the configuration says about a session that a command shows: known keys (WORLD-10), and how long it is kept."""

import argparse
import os

from interlock.cli.options import chosen_data_dir, place_arguments
from interlock.cli.store import answered_by_store, kept_sessions
from interlock.config.data_dir import SettingsError, data_dir_of
from interlock.config.file import read_config
from interlock.config.model import Config, FaultyConfig
from interlock.config.places import CONFIG_FILE
from interlock.service.retention.lifetime import Lifetime, lifetime_of
from interlock.views.outside import SigningKeys
from interlock.views.session import Session


def known_keys(options: argparse.Namespace, session: Session) -> SigningKeys | None:
    """Return the configured signing keys; None if no event of the session has one: then no file is read.

    Of a configuration with faults, no key is known: a view is shown nevertheless.
    """
    if all(one.data.signed is None for one in session.outside.events.values()):
        return None
    config = _read_config(options)
    return frozenset((one.name, one.public_key) for one in config.sources) if config is not None else frozenset()


def read_lifetime(options: argparse.Namespace, session: Session) -> Lifetime:
    """Return how long a session is kept.

    Raises:
        StopError: The disk failed.
    """
    config = _read_config(options)
    with answered_by_store():
        kept = kept_sessions(chosen_data_dir(options))
    return lifetime_of(session, kept, config.retention_days if config is not None else None)


def _read_config(options: argparse.Namespace) -> Config | None:
    """Return the configuration; None if it has faults."""
    try:
        config = read_config(data_dir_of(os.environ, place_arguments(options)) / CONFIG_FILE)
    except SettingsError:
        return None
    return None if isinstance(config, FaultyConfig) else config
