#!/usr/bin/env bash
# Times of the compiler itself, warm, median of 10: `check` of a 1B shape with its header, `build` of a 126-layer model, and the
# host compiler on the result. Usage: bash tests/bench/speed.sh [BUILD_FOLDER]. Exit 1 when one of the stated bounds is passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
modelc=${1:-build}/codegen/driver/modelc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/config.json" <<'JSON'
{"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
 "rope_theta": 500000.0, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
 "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "hidden_act": "silu", "tie_word_embeddings": true}
JSON
# A header of that shape over a sparse file: check reads headers only.
mkdir "$work/1b"
cp "$work/config.json" "$work/1b/"
"$modelc" build examples/llama/llama.model --config "$work/config.json" -o "$work/out" > /dev/null 2>&1
awk '
  /"name":/ { name = $0; sub(/.*"name": "/, "", name); sub(/".*/, "", name) }
  /"shape": \[/ { shape = ""; reading = 1; next }
  reading && /\]/ { reading = 0; if (name != "lm_head.weight" && name !~ /rope\.factors/) { n = 1; k = split(shape, s, ","); for (i = 1; i <= k; i++) n *= s[i];
      printf "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%.0f,%.0f]}", (count++ ? "," : "{"), name, shape, at, at + 2 * n; at += 2 * n } next }
  reading { gsub(/[ \n]/, ""); shape = shape $0 }
  END { print "}"; printf "%.0f\n", at > "/dev/stderr" }
' "$work/out/llama.manifest.json" > "$work/header" 2> "$work/size"
length=$(($(wc -c < "$work/header") - 1))
{ for shift in 0 8 16 24 32 40 48 56; do printf "\\x$(printf %02x $(((length >> shift) & 255)))"; done; head -c $length "$work/header"; } > "$work/1b/model.safetensors"
truncate -s $((8 + length + $(cat "$work/size"))) "$work/1b/model.safetensors"

# median MILLISECONDS of ten runs, after one that does not count
median() {
  local i t0 t1
  "$@" > "$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }
  for i in 1 2 3 4 5 6 7 8 9 10; do
    t0=$(date +%s%N); "$@" > /dev/null 2>&1; t1=$(date +%s%N)
    echo $(((t1 - t0) / 10000))
  done | sort -n | awk '{ v[NR] = $1 } END { printf "%.1f\n", (v[5] + v[6]) / 200 }'
}
status=0
bound() { # NAME MS LIMIT
  printf '%-44s %8.1f ms (bound %s)\n' "$1" "$2" "$3"
  awk -v a="$2" -v b="$3" 'BEGIN { exit !(a < b) }' || status=1
}
bound "check, 1B shape with its header" "$(median "$modelc" check examples/llama/llama.model --checkpoint "$work/1b")" 50
bound "build, 126 layers" "$(median "$modelc" build examples/llama/llama.model --config "$work/config.json" --set num_hidden_layers=126 -o "$work/126")" 200
t0=$(date +%s%N)
c++ -std=c++20 -O2 -march=native -ffp-contract=off -I. "-I$work/126" -c "$work/126/llama.cpp" -o "$work/llama.o"
t1=$(date +%s%N)
bound "C++ compile of the result" "$(((t1 - t0) / 1000000))" 10000
exit $status
