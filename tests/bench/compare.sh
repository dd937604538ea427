#!/usr/bin/env bash
# Prefill and decode beside llama.cpp: the same random weights, threads and encoding, the two taking turns.
# Usage: bash tests/bench/compare.sh DIR_OF_LLAMA_CPP_PROGRAMS [--quick] [--threads N] [--build FOLDER] [--keep FOLDER] [--json FILE]
# DIR holds llama-bench. --quick takes under ten minutes and leaves the largest shape out; --keep keeps the models that were made (19 GB)
# and takes those that are there. Exits 1 when a stated gate fails, 2 when something could not be measured.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 tests/bench/compare.py "$@"
