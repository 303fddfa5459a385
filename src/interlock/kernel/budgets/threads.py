"""Limits of the threads of a process, each with its reason and its unit, as in `budgets`."""

WORKER_THREADS_MAX = 8
"""Concurrent calls in one server that use the disk."""
WORKER_IDLE_S = 10.0
"""A worker thread without a call for so long ends: to begin one takes a tenth of a millisecond."""
SYNC_THREADS_MAX = 8
"""Threads that wait for the disk: an append has at most a few syncs in one round, and a few appends run at once."""
SLOW_SYNC_S = 0.002
"""From this on, the syncs of one round are made at the same time: handing one to a thread costs 0.1 to 0.3 ms."""
TURN_S_MAX = 0.02
"""From this on, a thread that computes keeps no other waiting: most calls compute for a few milliseconds at a time."""
TURNS_WAITED_MAX = 5
"""So many turns of others a thread waits for, each up to `TURN_S_MAX`: the lock does not know who came first."""
