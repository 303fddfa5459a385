"""Limits of blocks, flows, contracts and lifecycles, each with its reason and its unit, as in `budgets`."""

from interlock.kernel.budgets import KIB

# Operations: blocks, flows and contracts.
PORTS_MAX = 100
"""Inputs, or outputs, of one block: each is a line of its prompt."""
SLOTS_MAX = 1_000
"""Slots of one flow: each becomes a step, and each conditional edge a decision, of one plan."""
FLOW_EDGES_MAX = 4_000
"""Edges of one flow: four for each slot."""
MAPPINGS_MAX = 100
"""Port mappings of one edge: one for each port."""
CONTRACT_PARTS_MAX = 200
"""Flows, sub-contracts, outcomes or assessments of one contract: a person reads them in one list."""
DEFINITION_VERSION_MAX = 1_000_000
"""The highest version of a definition: more changes than anybody makes, in a number that every reader keeps exact."""
EXECUTOR_CHARS_MAX = 200
"""The identifier of an executor, which is shown on one line."""
EXECUTION_TIME_CHARS_MAX = 40
"""A time as RFC 3339 text, with a fraction and an offset."""
PORT_VALUE_BYTES_MAX = 8 * KIB
"""A value on a port that the next prompt shows; a larger one is shown by its digest, and the artifact holds it."""
BOUND_DEFINITIONS_MAX = 2_000
"""Definitions that a contract run refers to: their digests are one event, and their texts files of their own."""
BOUND_CONTRACTS_MAX = 100
"""Contracts of one contract run, itself included: each is an event of one plan."""

# Lifecycles (LIFE-2).
LIFECYCLE_EVENT_BYTES_MAX = 8_192
"""Bytes of one event of a lifecycle (LIFE-2)."""
LIFECYCLE_REFS_MAX = 16
"""References of one event of a lifecycle."""
LIFECYCLE_REF_CHARS_MAX = 512
"""Characters of one reference, which are ASCII."""
LIFECYCLE_REFS_BYTES_MAX = 4_096
"""Bytes of all references of one event."""
LIFECYCLE_KEY_CHARS_MAX = 3_000
"""Characters of the key of a node instance or of an edge in a lifecycle."""
LIFECYCLE_CODE_CHARS_MAX = 64
"""Characters of a reason code in a lifecycle."""
CONFORMANCE_FILE_BYTES_MAX = 64_000_000
"""Bytes of a file of lifecycle events that `session conformance` reads: about 100,000 events."""
