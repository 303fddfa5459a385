"""`python -m evaluation`: let the model work through the arms, and print the table. `make eval` installs it first."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from evaluation.agent import CHANNELS, play
from evaluation.arms import ARMS
from evaluation.model import Model
from evaluation.product import serving_product
from evaluation.results import Place, Results, product_state, table


def missing(results: Results, state: str, chosen: argparse.Namespace) -> Iterator[Place]:
    """Yield the runs that have no result yet: the first of each arm and channel, then the second of each."""
    found = results.places()
    arms, channels = chosen.arm or list(ARMS), chosen.channel or list(CHANNELS)
    for number, arm, channel in product(range(1, chosen.runs + 1), arms, channels):
        place = Place(state=state, arm=arm, channel=channel, number=number)
        if place not in found:
            yield place


def evaluate(model: Model, results: Results, places: list[Place]) -> None:
    """Play the runs, each on a server with a new data directory, and append each result."""
    for at, place in enumerate(places, 1):
        began = time.perf_counter()
        with serving_product() as served:
            episode = play(served, model, ARMS[place.arm], place.channel, place.number)
        results.append(place, episode)
        seconds = time.perf_counter() - began
        said = f"{place.arm}, {place.channel}, run {place.number}: {episode.ended}, {episode.calls} calls"
        print(f"{at} of {len(places)}: {said}, {seconds:.0f} s", file=sys.stderr, flush=True)


def main() -> int:
    """Play what is missing, and print the table of this state of the product."""
    parser = argparse.ArgumentParser(prog="python -m evaluation", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".eval"), help="directory of the model and the results")
    parser.add_argument("--runs", type=int, default=1, help="runs of each arm in each channel, with earlier results")
    parser.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="threads of the model; use fewer if the cores are busy"
    )
    parser.add_argument("--arm", choices=ARMS, action="append", help="only this one; can be repeated")
    parser.add_argument("--channel", choices=CHANNELS, action="append", help="only this one; can be repeated")
    chosen = parser.parse_args()
    results, state = Results(chosen.directory / "results.jsonl"), product_state()
    places = list(missing(results, state, chosen))
    if places:
        with Model(chosen.directory, chosen.threads) as model:
            evaluate(model, results, places)
    print(f"product {state}\n\n{table(row for row in results.rows() if row['state'] == state)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
