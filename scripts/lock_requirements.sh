#!/usr/bin/env bash
# Pin every requirement, with hashes and without any index address, for all platforms. Needs `uv`.
# Extras are kept: without them, pip looks for a newer version of a pinned package, which has no hash.
set -euo pipefail
cd "$(dirname "$0")/.."
lock() { uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --no-strip-extras "$@"; }
# The build backend comes with the run requirements: the package is installed without build isolation.
printf 'hatchling>=1.27\neditables>=0.5\n' > requirements/build.in
lock pyproject.toml requirements/build.in --output-file requirements/run.txt
lock pyproject.toml requirements/build.in --extra drive --constraint requirements/run.txt --output-file requirements/drive.txt
lock pyproject.toml requirements/build.in --extra console --constraint requirements/run.txt --output-file requirements/console.txt
lock pyproject.toml requirements/build.in --extra drive --extra console --extra dev --constraint requirements/drive.txt \
  --constraint requirements/console.txt \
  --output-file requirements/dev.txt
rm requirements/build.in
