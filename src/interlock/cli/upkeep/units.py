"""Sizes as people read them."""

_STEP = 1000
_UNITS = ("kB", "MB", "GB", "TB")


def in_units(size: int) -> str:
    """Return a number of bytes in the largest unit of which there is one, with one decimal."""
    if size < _STEP:
        return f"{size} B"
    power = 1
    while power < len(_UNITS) and round(size / _STEP**power, 1) >= _STEP:
        power += 1
    return f"{size / _STEP**power:.1f} {_UNITS[power - 1]}"
