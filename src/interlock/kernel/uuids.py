"""UUIDs as checked text: definitions and executions have them, and the pure rooms need no `uuid` module (OPS-15)."""

import hashlib
from typing import NewType

from interlock.kernel.canonical import canonical_bytes

Uuid = NewType("Uuid", str)
"""A UUID in its one spelling: lower-case hexadecimal digits in five groups."""
UUID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def derived_uuid(*parts: str | int) -> Uuid:
    """Return the UUID that these parts always have: version 8 of RFC 9562, from a digest of their canonical bytes."""
    digits = hashlib.sha256(canonical_bytes(list(parts))).hexdigest()
    variant = "89ab"[int(digits[16], 16) % 4]
    return Uuid(f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}")
