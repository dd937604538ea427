#!/usr/bin/env bash
# From nothing to text: sets up what is missing (apt), builds modelc, checks the example, compiles it for the small model that
# ships in examples/tiny, and lets it write. Usage: bash examples/demo.sh [PROMPT]
set -euo pipefail
cd "$(dirname "$0")/.."
prompt=${1:-It is a truth universally acknowledged, that}

bash examples/setup.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build build --target modelc
modelc=build/codegen/driver/modelc

echo; echo "== check: names and shapes of every weight, before anything runs"
"$modelc" check examples/llama/llama.model --checkpoint examples/tiny
echo; echo "== build: the C++ that runs it"
"$modelc" build examples/llama/llama.model --checkpoint examples/tiny -o build/demo
echo; echo "== run"
"$modelc" run examples/llama/llama.model --checkpoint examples/tiny --prompt "$prompt" -n 100 --temperature 0.8 --top-p 0.95 --seed 7
