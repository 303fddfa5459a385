"""Serve a model on the loopback until standard input ends. Runs in the environment of the wheel `xllamacpp`."""

import importlib
import json
import sys

CONTEXT_TOKENS = 8_192


def main() -> None:
    """Load the model that the first argument names, on as many threads as the second says; print its address."""
    engine = importlib.import_module("xllamacpp")
    parameters = engine.CommonParams()
    parameters.model.path = sys.argv[1]
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(sys.argv[2])
    # One slot: consecutive prompts share their beginning, and only the rest of each is evaluated.
    parameters.n_parallel = 1
    parameters.cache_prompt = True
    parameters.cache_ram_mib = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ui = False
    server = engine.Server(parameters)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
