#!/usr/bin/env bash
# clang-tidy with .clang-tidy over what a build folder compiles. Usage: bash tests/tidy.sh BUILD_FOLDER [PATH…]      Needs clang-tidy-16;
# minutes on many cores. With paths, the files below them alone: bash tests/tidy.sh build runtime/cpu codegen/driver/convert.cpp
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: $0 BUILD_FOLDER [PATH…]}
shift
tidy=${CLANG_TIDY:-clang-tidy-16}
command -v "$tidy" > /dev/null || { echo "FAILED  $tidy is missing (apt-get install clang-tidy-16)" >&2; exit 1; }
[ -f "$build/compile_commands.json" ] || { echo "FAILED  $build/compile_commands.json is not there: configure the build first" >&2; exit 1; }
# Our own sources, once each: kernels are compiled once for every instruction set. Tests are judged by the compiler's warnings alone.
mapfile -t files < <(python3 - "$build" "$@" <<'P'
import json, os, sys
here, wanted, seen = os.getcwd(), [os.path.abspath(p) for p in sys.argv[2:]], []
for c in json.load(open(os.path.join(sys.argv[1], "compile_commands.json"))):
    path = os.path.normpath(os.path.join(c["directory"], c["file"]))
    if os.path.relpath(path, here).split(os.sep)[0] not in ("frontend", "codegen", "runtime"): continue
    if wanted and not any(path == w or path.startswith(w + os.sep) for w in wanted): continue
    if path not in seen: seen.append(path)
print("\n".join(seen))
P
)
[ -n "${files[0]:-}" ] || { echo "FAILED  no file of these is compiled in $build" >&2; exit 1; }
if printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$tidy" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option; then
  echo "${#files[@]} files, nothing found"
else
  echo "FAILED  clang-tidy found something (above)" >&2
  exit 1
fi
