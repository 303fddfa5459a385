"""Searches as people make them: 500 goals, and misspelt or partial words of one of them."""

import random
from collections.abc import Iterator

from interlock.kernel.matching import Words

NOUNS = [
    *("parser", "invoice", "login", "export", "retry", "schema", "cache", "totals", "webhook", "migration"),
    *("renderer", "scheduler", "tokenizer", "importer", "dashboard", "payment", "mailer", "archive", "gateway"),
]
VERBS = ["repair", "rename", "investigate", "document", "speed up", "release", "review", "simplify", "translate"]
PLACES = ["customers", "settings", "reports", "checkout", "profile", "inventory", "calendar", "search page", "billing"]
DETAILS = ["timeout", "rounding", "encoding", "ordering", "duplicates", "permissions", "memory", "spelling", "limit"]


def misspelt(word: str, chance: random.Random) -> str:
    at = chance.randrange(1, len(word) - 1)
    return chance.choice(
        [
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        ]
    )


def goals() -> list[str]:
    """Return 500 goals, the same at every call."""
    every = [
        f"{verb} the {noun} of {place}: {detail}"
        for verb in VERBS
        for noun in NOUNS
        for place in PLACES
        for detail in DETAILS
    ]
    return random.Random(20_25).sample(every, 500)


def searches(among: list[str], count: int = 200) -> Iterator[tuple[str, str]]:
    """Yield goals, and what somebody types who means this goal: words cut at their end, and often one misspelt."""
    chance = random.Random(11)
    for _ in range(count):
        meant = chance.choice(among)
        words = [word for word in Words.of(meant).words if word not in ("the", "of")]
        asked = [word[: max(4, len(word) - 2)] if chance.random() < 0.3 else word for word in words]
        if chance.random() < 0.7:
            at = chance.choice([at for at, word in enumerate(asked) if len(word) > 4])
            asked[at] = misspelt(words[at], chance)
        yield meant, " ".join(asked)
