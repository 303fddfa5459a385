"""The mark of processes that Interlock started: the word of none of them is taken for a person's (WORLD-9)."""

DESCENDANT = "INTERLOCK_DESCENDANT"
"""The environment variable that every child process of a channel or a driver carries, with the value 1."""
