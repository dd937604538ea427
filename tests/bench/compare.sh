#!/usr/bin/env bash
# Prefill and decode beside llama.cpp: the same random weights, threads and encoding, the two taking turns.
# Usage: bash tests/bench/compare.sh DIR_OF_LLAMA_CPP_PROGRAMS [--quick] [--only SHAPE[:ENCODING]]… [--rounds N] [--prompt N] [--tokens N]
#        [--backend vulkan [--device vulkan:N]] [--threads N] [--build FOLDER] [--keep FOLDER] [--json FILE]
# DIR holds llama-bench. The whole run takes about four hours on two cores, more than half of them for the largest shape; --quick takes
# under ten minutes and leaves that shape out. --only measures one shape, or one encoding of it, and may be given again; with --quick a shape
# that it leaves out is measured in all its encodings, each in its own mode. --rounds, --prompt and --tokens stand over what either run has.
# --backend vulkan has both sides on one Vulkan device (llama.cpp built with GGML_VULKAN=ON), without gates; a software driver takes minutes
# for each of the shapes' prompts, so --only, --prompt and --tokens are for it.
# --keep keeps the models that were made (19 GB) and takes those that are there. Exits 1 when a stated gate fails, 2 when something could
# not be measured.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 tests/bench/compare.py "$@"
