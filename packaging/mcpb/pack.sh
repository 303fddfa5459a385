#!/usr/bin/env bash
# Pack build/interlock.mcpb, for clients that install such a file. Needs node.
set -euo pipefail
cd "$(dirname "$0")/../.."
staged=build/mcpb
rm -rf "$staged"
mkdir -p "$staged"
cp -R packaging/mcpb/manifest.json pyproject.toml README.md LICENSE src "$staged"
find "$staged" -name __pycache__ -prune -exec rm -rf {} +
npx --yes @anthropic-ai/mcpb pack "$staged" build/interlock.mcpb
