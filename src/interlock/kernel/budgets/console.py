"""Limits of the console, each with its reason and its unit, as in `budgets`: a server for agents needs none of them."""

from interlock.kernel.budgets import KIB

# Access to the console (CON-2, CON-3, CON-4).
CONSOLE_PORT = 7517
"""The port unless another is named: an address of a page that was sent stays valid."""
CONSOLE_PORT_MAX = 65_535
"""The largest port of TCP; part of its specification."""
CONSOLE_LINK_MS = 600_000
"""How long a one-time link can be opened: ten minutes to change to a browser."""
CONSOLE_DECISION_MS = 86_400_000
"""How long a link that decides one question can be used: a day, as a question in the client can be answered."""
CONSOLE_SECRET_BYTES = 32
"""Random bytes of a secret: nobody guesses 256 bits."""
CONSOLE_BROWSERS_MAX = 64
"""Browsers that are admitted at a time: the earliest has to open another link. More is no person."""
CONSOLE_BODY_BYTES_MAX = 16 * KIB
"""Body of one request: a form with a note. Nothing of a page needs more."""
CONSOLE_SOURCE_BODY_BYTES_MAX = 3_000_000
"""Body of a request with the source of a workflow: a form writes up to three bytes for each."""
CONSOLE_TARGET_BYTES_MAX = 4 * KIB
"""Path and query of one request: two names of nodes and the words of a search."""

# Pages (CON-6).
CONSOLE_RUNS_SHOWN = 50
"""Runs on one page: about two screens."""
CONSOLE_NODES_SHOWN = 200
"""Nodes of a run in its picture and in its list, those around the preferred tip: a page has fewer than 500 of them."""
CONSOLE_SLOW_S = 0.2
"""A report of a run that takes longer is kept until the log changes: to make it again is not free."""
CONSOLE_SLOW_LOOK_S = 0.1
"""A page uses versions of all logs that were read before only if to read them takes longer: thousands of sessions."""
CONSOLE_WAIT_S = 0.05
"""How long a page waits for its view before it shows the progress: a person sees a page within 0.3 seconds."""
CONSOLE_ENDED_S = 10.0
"""How long a finished proof waits for the page that asks for it: far longer than such a page waits to ask again."""
CONSOLE_REPORTS_KEPT = 8
"""Reports of long runs that are kept: the pages that one person has open."""
CONSOLE_HISTORIES_KEPT = 2
"""Histories of long sessions that are kept, so that a page of a run that continues reads only what was added."""
CONSOLE_STEPS_SHOWN = 20
"""Steps on one page of a run, the newest first: at any length of a run a page has a bounded number of elements."""
CONSOLE_MATCHES_SHOWN = 200
"""Steps of two branches on one page of a comparison."""

CONSOLE_ITEMS_SHOWN = 100
"""Things on one page of the inbox, the oldest first: what is answered makes room for the next."""
CONSOLE_CONTRACTS_READ_MAX = 500
"""The newest sessions that the page of contracts reads: only their logs say whether they execute one."""
CONSOLE_FIELDS_MAX = 8
"""Fields of one form. No form has more."""

# The page in a chat (CHAT-1).
APP_NODES_SHOWN = 40
"""Nodes of the picture in a chat, those around the preferred tip: it is small, and its host keeps it with the chat."""

# Live updates (CON-7).
CONSOLE_POLL_S = 0.5
"""The pause between two looks whether a session changed: a page shows an event within a second."""
CONSOLE_END_S = 2
"""How long the end of the process waits for open requests: streams notice it within one pause."""
CONSOLE_STREAMS_MAX = 100
"""Pages that are updated at a time; a further page is not live. Each holds a connection."""
CONSOLE_BEAT_S = 15.0
"""The pause after which a stream without news sends a comment, so that a dead connection is noticed."""
