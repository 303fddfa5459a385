"""What waits for a person in the sessions of a harness."""

from interlock.service.run.summaries import Listing, Summaries
from interlock.service.trust.inbox import InboxItem, InboxNow, inbox_of
from interlock.testing.harness import Harness


def inbox_in(harness: Harness, found: Listing | None = None) -> list[InboxItem]:
    """Return the inbox, of an earlier listing if there is one."""
    ports, plans = harness.ports, harness.ports.read.plans
    now = InboxNow(channels=(), checks=ports.checks, keys=ports.signing_keys, now_ms=ports.clock.unix_ms())
    return inbox_of(harness.store, plans, found or Summaries().listing(harness.store, plans), now)
