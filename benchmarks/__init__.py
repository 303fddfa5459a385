"""What Interlock costs, in one run against floors measured beside it. Run by `python -m benchmarks`."""
