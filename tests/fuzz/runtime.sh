#!/usr/bin/env bash
# Fuzzes what the runtime reads beside weights: runtime.sh tokenizer|chat [MINUTES]. README.md here.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=$1
build=${MODELC_FUZZ_BUILD:-build-fuzz}
version=${MODELC_FUZZ_CLANG:--16}
[ -f "$build/build.ninja" ] || cmake -S . -B "$build" -G Ninja -DMODELC_FUZZ=ON -DMODELC_WERROR=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER="clang++$version"
ninja -C "$build" -j "${MODELC_FUZZ_JOBS:-2}" "fuzz_$what"
work=$PWD/$build/fuzz-$what
mkdir -p "$work/corpus"
if [ "$what" = tokenizer ]; then
  cp tests/runtime/tokenizer/cases/*.tokenizer.json "$work/corpus/"
else
  python3 - "$work/corpus" << 'END'
import json, pathlib, sys
for name, key in (("templates", "templates"), ("language", "cases")):
    file = json.loads(pathlib.Path(f"tests/runtime/chat/cases/{name}.json").read_text())
    for i, row in enumerate(file[key]):
        pathlib.Path(sys.argv[1], f"{name}-{i}.seed").write_text(row["template"])
END
fi
exec nice -n 10 "$build/tests/fuzz/fuzz_$what" "$work/corpus" -max_total_time=$((${2:-10} * 60)) -max_len=30000 -timeout=60 \
  -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$work/"
