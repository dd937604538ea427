#!/usr/bin/env bash
# The arrows between folders (A includes B) are those of the design, and no architecture is named where any model runs.
source "$(dirname "$0")/lib.sh"

# allowed FOLDER "PREFIXES": what the sources of the folder may include from the repository.
allowed() {
  local folder=$1 found
  shift
  found=$(grep -rnoE '#include "(runtime|frontend|codegen|shaders)/[^"]*"' "$folder" --include='*.h' --include='*.cpp' 2>/dev/null |
    sed -E 's/^([^:]*:[0-9]+):#include "(.*)"$/\1 \2/' |
    while read -r place include; do
      ok=0
      for prefix in "$folder" "$@"; do case "$include" in "$prefix"/*|"$prefix") ok=1 ;; esac; done
      [ $ok = 1 ] || echo "$place includes $include"
    done)
  if [ -z "$(find "$folder" -name '*.h' -o -name '*.cpp' 2>/dev/null | head -n 1)" ]; then fail "$folder" "there is nothing to look at"
  elif [ -z "$found" ]; then pass "$folder"
  else fail "$folder" "$found"; fi
}

allowed runtime/abi
allowed runtime/base runtime/abi
allowed runtime/encoding runtime/base runtime/abi
allowed runtime/tensor runtime/base runtime/abi
allowed runtime/checkpoint runtime/encoding runtime/base runtime/abi
allowed runtime/tokenizer runtime/base runtime/abi
allowed runtime/sampler runtime/base runtime/abi
allowed runtime/kv_cache runtime/device runtime/tensor runtime/base runtime/abi
allowed runtime/device runtime/kv_cache runtime/tensor runtime/checkpoint runtime/encoding runtime/base runtime/abi
allowed runtime/cpu runtime/device runtime/kv_cache runtime/tensor runtime/encoding runtime/base runtime/abi
allowed runtime/vulkan runtime/device runtime/kv_cache runtime/tensor runtime/base runtime/abi
allowed runtime/chat runtime/tokenizer runtime/checkpoint runtime/base runtime/abi
allowed runtime/generate runtime/device runtime/kv_cache runtime/tokenizer runtime/sampler runtime/checkpoint runtime/tensor runtime/base runtime/abi
allowed runtime/c runtime/chat runtime/generate runtime/device runtime/kv_cache runtime/tokenizer runtime/sampler runtime/checkpoint runtime/tensor runtime/base runtime/abi
allowed runtime/main runtime/chat runtime/generate runtime/device runtime/kv_cache runtime/tokenizer runtime/sampler runtime/checkpoint runtime/tensor runtime/base runtime/abi
allowed frontend/source runtime/base runtime/abi
allowed frontend/diagnostics frontend/source runtime/base runtime/abi
allowed frontend/syntax frontend/source frontend/diagnostics runtime/base runtime/abi
# The patterns of a policy's modules are those of checkpoint rules.
allowed frontend/graph runtime/base runtime/abi runtime/checkpoint/tensor_pattern.h
# The patterns and transforms of checkpoint rules are read by one text, at compile time and at load.
allowed frontend/sema frontend/syntax frontend/graph frontend/source frontend/diagnostics runtime/base runtime/abi runtime/checkpoint/place_lines.h runtime/checkpoint/tensor_pattern.h runtime/checkpoint/transform.h
allowed codegen/plan frontend/graph runtime/base runtime/abi
allowed codegen/lower codegen/plan frontend/graph runtime/base runtime/abi runtime/device/map.h
allowed codegen/emit codegen/plan frontend/graph runtime/base runtime/abi
# The driver may use all of the compiler, and the runtime's headers of checkpoints and tokenizers, which load no weights, and asks which encodings can be written; the random numbers are
# those of the sampler, and --version says which instruction sets there are; `devices` lists what the runtime finds, and counts what a load would hold and a chunk of a prompt takes; --device is read by one text; help reads as that of generated binaries.
allowed codegen/driver codegen frontend runtime/base runtime/abi runtime/checkpoint runtime/tokenizer runtime/encoding/encode.h runtime/sampler/random.h runtime/device/device.h runtime/device/held.h runtime/device/place_text.h runtime/generate/generator.h runtime/cpu/isa.h runtime/main/help.h

found=$(grep -rniE 'llama|qwen|gemma|mistral|deepseek|gpt2|gpt_oss|bert|whisper|mamba|phi3|falcon' runtime shaders --include='*.h' --include='*.cpp' --include='*.comp' --include='*.md' --include=CMakeLists.txt |
  grep -vE '^runtime/tokenizer/gguf(_patterns|_writer|_folder)?\.(cpp|h):' |  # the values of tokenizer.ggml.model and .pre
  grep -vE '"(Bert(Normalizer|PreTokenizer|Processing)|RobertaProcessing)"' |
  grep -viE '"model\.layers|// .*("Llama|Llama|llama\.model|llama_factory|Qwen2|GPT-2|Llama-3)')
[ -z "$found" ] && pass "no architecture is named in runtime/ or shaders/" || fail "no architecture is named in runtime/ or shaders/" "$found"
found=$(grep -rlE 'antlr4' frontend codegen runtime --include='*.h' --include='*.cpp' | grep -v '^frontend/syntax/')
[ -z "$found" ] && pass "the parser generator is private to frontend/syntax" || fail "the parser generator is private to frontend/syntax" "$found"
found=$(grep -rnE '^import|^ *from ' stdlib --include='*.model' | grep -E 'import (llama|qwen)')
[ -z "$found" ] && pass "the standard library imports no architecture" || fail "the standard library imports no architecture" "$found"
finish
