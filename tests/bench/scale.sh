#!/usr/bin/env bash
# How `check` grows: 20,000 weights in 2,000 module instances (under 1 s), 2,000 module definitions (under 2 s), and memory that grows
# no faster than the input. Processor time, so that a busy machine does not matter. Exit 1 when a bound is passed.
# Usage: bash tests/bench/scale.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
modelc=${1:-build}/codegen/driver/modelc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# instances LAYERS KINDS: a stack whose layers are of KINDS different widths, ten weights each, four modules a layer.
instances() {
  cat > "$work/instances.model" <<MODEL
language 1
config C { layers: int in 1..1000000    kinds: int }
module Pair(n: dim) {
    param a: [n, 8]
    param b: [8, n]
    param c: [8]
    forward(x: [tokens, 8]) -> [tokens, 8] { return linear(linear(x, a), b, c) }
}
module Layer(n: dim) {
    one:   Pair(n)
    two:   Pair(n)
    three: Pair(n)
    param scale: [8]
    forward(x: [tokens, 8]) -> [tokens, 8] { return x + three(two(one(x))) * scale }
}
model M(c: C) {
    layers: [Layer(8 + i % c.kinds) for i in 0..c.layers]
    param table: [16, 8]
    forward(ids: index(16)[tokens], at: Batch) -> logits: [outputs, 16] {
        let h = take(table, ids)
        for layer in layers { h = layer(h) }
        return linear(take(h, at.outputs), table)
    }
}
MODEL
  echo "{\"layers\": $1, \"kinds\": $2}" > "$work/config.json"
}

# definitions COUNT: that many modules, each with a child of the one before or none.
definitions() {
  {
    echo 'language 1'
    echo 'config C { n: dim }'
    for ((i = 0; i < $1; ++i)); do
      printf 'module M%d(n: dim, scale: float = 1.0) {\n    param w: [n, n]\n    param b: [n]\n    forward(x: [..., n]) -> [..., n] {\n        let y = linear(x, w, b)\n        return silu(y) * scale\n    }\n}\n' "$i"
    done
    echo 'model M(c: C) {'
    for ((i = 0; i < $1; ++i)); do printf '    m%d: M%d(c.n)\n' "$i" "$i"; done
    echo '    forward(x: [tokens, c.n]) -> [tokens, c.n] {'
    echo '        let h0 = m0(x)'
    for ((i = 1; i < $1; ++i)); do printf '        let h%d = m%d(h%d)\n' "$i" "$i" "$((i - 1))"; done
    printf '        return h%d\n    }\n}\n' "$(($1 - 1))"
  } > "$work/definitions.model"
  echo '{"n": 8}' > "$work/config.json"
}

# measured FILE: seconds of processor time and kB of memory; best of three.
measured() {
  local i
  for i in 1 2 3; do
    python3 - "$modelc" check "$1" --config "$work/config.json" <<'PY'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if done.returncode != 0: sys.exit(done.stdout[:2000])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.3f} {used.ru_maxrss}")
PY
  done | sort -n | head -n 1
}

status=0
bound() { # NAME VALUE LIMIT UNIT
  printf '%-64s %9.2f %s (bound %s)\n' "$1" "$2" "$4" "$3"
  awk -v a="$2" -v b="$3" 'BEGIN { exit !(a < b) }' || { status=1; echo "    passed the bound"; }
}
growth() { # NAME SMALL LARGE: of memory, for an input four times as large
  bound "$1: memory, input four times as large" "$(awk -v a="$2" -v b="$3" 'BEGIN { print b / a }')" 4.4 times
}

instances 500 25;   read -r _ small < <(measured "$work/instances.model")
instances 2000 100; read -r seconds large < <(measured "$work/instances.model")
bound "20,000 weights in 8,000 instances, 2,000 layers of 100 kinds" "$seconds" 1 s
growth "instances" "$small" "$large"
instances 667 667;  read -r seconds _ < <(measured "$work/instances.model")
bound "6,670 weights in 2,668 instances, each layer of its own kind" "$seconds" 1 s
definitions 500;    read -r _ small < <(measured "$work/definitions.model")
definitions 2000;   read -r seconds large < <(measured "$work/definitions.model")
bound "2,000 module definitions, all used" "$seconds" 2 s
growth "definitions" "$small" "$large"
exit $status
