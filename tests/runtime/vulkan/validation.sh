#!/usr/bin/env bash
# What the validation layer (core and synchronisation checks) says of everything that is run on Mesa's software driver, with
# subgroups of 4, 8 and 16: nothing. No message is suppressed. Usage: validation.sh BUILD_FOLDER [WIDTH…]
set -uo pipefail
cd "$(dirname "$0")/../../.."
build=${1:?usage: $0 BUILD_FOLDER [WIDTH…]}
shift
[ $# -gt 0 ] || set -- 128 256 512
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation MODELC_TEST_DEVICES=vulkan
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
export MODELC_CACHE="$build/cache"
modelc="$build/codegen/driver/modelc"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
if ! "$modelc" devices 2>&1 | grep -q '^vulkan:0'; then echo "SKIPPED: no Vulkan driver is installed"; exit 0; fi
# The layer must be there, or silence means nothing.
if [ ! -e /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]; then echo "SKIPPED: no validation layer is installed"; exit 0; fi

check() {
  local name=$1
  shift
  "$@" > "$log" 2>&1 || { echo "FAILED  $name: status $?"; tail -n 20 "$log"; status=1; return; }
  local said
  said=$(grep -cE 'VUID|SYNC-HAZARD|UNASSIGNED|Validation (Error|Warning)' "$log")
  if [ "$said" = 0 ]; then echo "ok      $name"; else echo "FAILED  $name: $said messages"; grep -E 'VUID|SYNC-HAZARD|UNASSIGNED' "$log" | cut -c1-300 | sort -u | head; status=1; fi
}
for width in "$@"; do
  export LP_NATIVE_VECTOR_WIDTH=$width
  "$modelc" devices | grep -o 'subgroups of [0-9]*' | sed "s/^/width $width: /"
  check "devices, $width" "$build/tests/runtime/vulkan/runtime_vulkan_test"
  check "kernels, $width" "$build/tests/runtime/cpu/runtime_cpu_test"
  check "the tiny model, $width" "$modelc" verify examples/llama/llama.model --checkpoint examples/tiny --expected examples/tiny/expected.safetensors --backend vulkan
  while read -r -u 3 model fixture part; do
    folder=examples/$model/fixtures/$fixture
    on() { "$modelc" verify "examples/$model/$model.model" --checkpoint "$folder" --expected "$folder/expected.safetensors" --within 1e-4 "$@"; }
    check "$fixture, $width" on --chunk 5 --backend vulkan
    check "$fixture with $part on the CPU, $width" on --device "$part=cpu,vulkan:0"
  done 3<<'CASES'
mamba2 mamba2-tiny backbone.layers.1
qwen3_next qwen3-next-dense model.layers.1
deepseek_v3 deepseek-v3-experts model.layers.1
whisper whisper-tiny-random model.encoder
CASES
  check "the tiny model on two devices, $width" "$modelc" verify examples/llama/llama.model --checkpoint examples/tiny --expected examples/tiny/expected.safetensors --device "model.layers[1..4]=vulkan:0,lm_head=vulkan:0,cpu"
done
exit $status
