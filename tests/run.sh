#!/usr/bin/env bash
# Sets up what is missing (apt), builds everything and runs all tests. Usage: bash tests/run.sh [BUILD_FOLDER]
# Further checks, each a command of its own: tests/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}

bash examples/setup.sh --with vulkan-driver
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMODELC_TESTS=ON
cmake --build "$build"

# Compiled models are kept below the build folder, not among the user's.
export MODELC_CACHE="$PWD/$build/cache"
case "$build" in /*) MODELC_CACHE="$build/cache" ;; esac
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
