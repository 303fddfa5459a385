"""Limits of what is read from the store's own files, each with its reason and its unit, as in `budgets`."""

SMALL_FILE_BYTES_MAX = 1_000_000
"""Read of one of the small files; the largest, that of the retention pins, has some 340 KB."""
CACHED_SUMMARY_BYTES_MAX = 32_000_000
"""A larger summary is not cached: it names some 84 bytes for each stored file of its session."""
RECORD_DEPTH_MAX = 200
"""Nesting of a stored record: pydantic, which explains why one is refused, reads no deeper ones."""
