"""The ports of all use cases over a data directory, as the user's configuration sets them."""

import os

from interlock.config.applied import applied_config_hash, config_file_hash
from interlock.config.checks import LocalChecks
from interlock.config.settings import Settings, workflow_sources
from interlock.engine.outside import SentEvent
from interlock.kernel.errors import Refusal
from interlock.kernel.frozen import replace
from interlock.kernel.ids import RunId, SessionId
from interlock.service.clock import NoTrace, StderrTrace
from interlock.service.outside.dispatch import SYSTEM, Dispatcher, Sender
from interlock.service.outside.receive import Arrival
from interlock.service.ports import AppendPorts, Ports, ReadPorts, unknown_client
from interlock.service.run.summarize import LateSummaries
from interlock.service.tools.send_event import send_event
from interlock.service.workflows.catalog import Catalog
from interlock.store.git import GitObserver
from interlock.store.opening import open_server_store, open_store, open_untried
from interlock.store.ports.servers import AppliedConfig
from interlock.store.worktree import read_tree


def local_ports(settings: Settings, *, server_input: int | None = None) -> Ports:
    """Return the ports over a local data directory. Reads and writes nothing yet, unless the process is a server.

    A server announces itself, so that what its client starts is known (WORLD-9). `server_input` is the descriptor of
    its standard input.
    """
    is_server = server_input is not None
    is_client_of_agent, config_hash = unknown_client, applied_config_hash(settings)
    if server_input is None:
        store = open_store(settings.data_dir)
    else:
        applied = AppliedConfig(values=config_hash, file=config_file_hash(settings.config))
        store, is_client_of_agent = open_server_store(settings.data_dir, server_input, applied)
    trace = StderrTrace() if settings.is_traced else NoTrace()
    git = GitObserver()
    read = replace(
        ReadPorts.over(store, store),
        trace=trace,
        tree=read_tree,
        anchors=git.find,
        anchors_again=git.find_again,
        token_format=settings.config.token_format,
    )

    def receive(session: SessionId, run: RunId, sent: SentEvent) -> str | None:
        """Record an event that a channel answered with, and advance the run if it waits for it."""
        found = send_event(ports, (session, run), sent, Arrival(via="channel", assurance="observed"), SYSTEM)
        return f"{found.message} {found.suggestion}" if isinstance(found, Refusal) else None

    appending = AppendPorts(read=read, writer=store)

    def cache_summary(session: SessionId) -> None:
        """Cache the summary of the current log of a session."""
        with appending.hold(session) as lock:
            if lock.session is not None:
                appending.cache_summary(lock, lock.session)

    # A command ends at once, so it caches what it appended before it answers.
    late_summaries = LateSummaries(write=cache_summary) if is_server else None
    sender = Sender(
        ports=replace(appending, late_summaries=late_summaries),
        channels=settings.config.channels,
        owner=f"process {os.getpid()}",
        on_event=receive,
    )
    ports = Ports(
        read=read,
        writer=store,
        late_summaries=late_summaries,
        is_client_of_agent=is_client_of_agent,
        key_ring=store,
        catalog=Catalog(workflow_sources(settings)),
        baseline=settings.config.baseline,
        gates_claims=settings.config.gates_claims,
        gates_apps=settings.config.gates_apps,
        artifact_bytes_max=settings.config.artifact_bytes_max,
        keeps_repo_root=settings.config.keeps_repo_root,
        config_hash=config_hash,
        outbox=Dispatcher(sender=sender, untried=open_untried(settings.data_dir)),
        sources={one.name: one for one in settings.config.sources},
        proofs=settings.config.proofs,
        checks=LocalChecks(data_dir=settings.data_dir, configured=settings.config.checks),
    )
    return ports
