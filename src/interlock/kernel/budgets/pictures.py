"""Limits of pictures of plans and of time, each with its reason and its unit, as in `budgets`."""

PICTURE_PARTS_MAX = 80
"""Boxes of a picture up to which loops and branches are drawn in full: about two screens."""
PICTURE_LINE_MAX = 200
"""Boxes of a picture in one sequence; a longer one keeps its beginning and its end."""
PICTURE_DEPTH_MAX = 5
"""Loops, ways and branches of a picture inside each other; what is deeper is folded."""
PICTURE_BRANCHES_MAX = 4
"""Branches beside one box of a picture; further ones are folded into one."""
PICTURE_COLUMN_PX_MAX = 1_500
"""The height from which a picture continues in the next column."""
IDLE_MS_MIN = 60_000
"""A shorter time in which nothing was recorded is never squeezed in a picture: a person would not call it idle."""
IDLE_TIMES_USUAL = 4
"""A time without records is squeezed in a picture if it is so many times as long as the median of such times."""
PICTURE_TEXT_LINES_MAX = 3
"""Lines of text in a box; the rest is cut."""
