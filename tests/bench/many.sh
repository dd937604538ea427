#!/usr/bin/env bash
# Many models in one build: time and memory of configuring and of generating, for 10, 50 and 100 models of their own, and
# whether they grow in proportion. Nothing is compiled; --jobs says how many modelc run at once.
# Usage: bash tests/bench/many.sh BUILD_FOLDER [--jobs N]        Exits 1 when a stated bound is passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: $0 BUILD_FOLDER [--jobs N]}
jobs=1
[ "${2:-}" = --jobs ] && jobs=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# Seconds of the processor and largest resident set, of a command and its children.
measured() {
  python3 - "$@" <<'P'
import resource, subprocess, sys, time
begin = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode: sys.exit(done.stdout.decode())
print(f"{time.monotonic() - begin:.2f} {u.ru_utime + u.ru_stime:.2f} {u.ru_maxrss / 1024:.0f}")
P
}

printf '%-8s %28s %28s %14s\n' models "configure: s, cpu s, MB" "generate: s, cpu s, MB" "nothing: s"
declare -A cpu configure
for n in 10 50 100; do
  app=$work/app$n
  mkdir "$app"
  {
    echo 'cmake_minimum_required(VERSION 3.25)'
    echo 'project(many LANGUAGES CXX)'
    echo 'find_package(modelc REQUIRED)'
    echo 'add_custom_target(generated)'
    for i in $(seq "$n"); do
      # Each of its own: another file, another size.
      cp examples/llama/llama.model "$app/llama$i.model"
      python3 -c "import json, sys; c = json.load(open('examples/tiny/config.json')); c['num_hidden_layers'] = $i; json.dump(c, open('$app/$i.json', 'w'))"
      echo "modelc_add_library(m$i MODEL llama$i.model CONFIG $i.json)"
      echo "add_custom_target(generate_$i DEPENDS \${CMAKE_CURRENT_BINARY_DIR}/m$i.modelc/llama$i.manifest.json)"
      echo "add_dependencies(generated generate_$i)"
    done
  } > "$app/CMakeLists.txt"
  c=$(measured cmake -S "$app" -B "$app/build" -G Ninja "-DCMAKE_PREFIX_PATH=$work/prefix")
  g=$(measured cmake --build "$app/build" --target generated -j "$jobs")
  again=$(measured cmake --build "$app/build" --target generated)
  [ "$(find "$app/build" -name '*.manifest.json' | wc -l)" = "$n" ] || { echo "not all of $n models were generated" >&2; exit 1; }
  printf '%-8s %28s %28s %14s\n' "$n" "$c" "$g" "${again%% *}"
  cpu[$n]=$(echo "$g" | cut -d' ' -f2)
  configure[$n]=$(echo "$c" | cut -d' ' -f2)
done
# In proportion: ten times the models take at most twelve times the processor's time (configuring has a fixed part below it).
python3 - "${cpu[10]}" "${cpu[100]}" "${configure[10]}" "${configure[100]}" <<'P'
import sys
g10, g100, c10, c100 = map(float, sys.argv[1:])
ok = g100 <= 12 * g10 and c100 <= 12 * c10
print(f"100 models against 10, processor's time: generate {g100 / g10:.1f} times, configure {c100 / c10:.1f} times; bound 12: {'holds' if ok else 'FAILS'}")
sys.exit(not ok)
P
