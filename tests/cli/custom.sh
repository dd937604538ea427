#!/usr/bin/env bash
# What custom operations bring: C++ for the CPU, which runs when it is allowed, and shaders for a GPU, each against the reference.
source "$(dirname "$0")/lib.sh"

mkdir -p "$work/host"
cat > "$work/host/m.model" <<'MODEL'
language 1
config C { n: dim }
op blended(x: [..., n], gain: [n], k: index(5)[]) -> ([..., n], [..., n]) {
    reference { let s = x * gain + k as f32  return s, s * s }
    cpu "blended.h"
}
model M(c: C) {
    param gain: [c.n]
    forward(x: [tokens, c.n]) -> (a: [tokens, c.n], b: [tokens, c.n]) { return blended(x, gain, arange(5)[3] as index(5)) }
}
test "as C++" { op blended  input x = linspace(-3, 3, 4200) as [50, 2, 42]  input gain = linspace(1, 2, 42)  input k = 3
                same reference, cpu within 1e-5 }
MODEL
cat > "$work/host/blended.h" <<'H'
// Rows of the result, which other threads compute others of.
inline void blended(modelc::OpContext& at, modelc::View<const float> x, modelc::View<const float> gain,
                    modelc::View<const std::int32_t> k, modelc::View<float> sum, modelc::View<float> square) {
  const std::int64_t n = x.shape[-1];
  for (std::int64_t i = at.begin * n; i < at.end * n; ++i) {
    sum[i] = x[i] * gain[i % n] + static_cast<float>(k[0]);
    square[i] = sum[i] * sum[i];
  }
}
H
m=$work/host/m.model
echo '{"n": 6}' > "$work/c.json"
expect "C++ is refused until it is allowed" 1 "E0360" "blended.h" "--allow-extension" -- "$modelc" test "$m"
expect "allowed, it is what runs" 0 "1 passed, 0 failed" -- "$modelc" test "$m" --allow-extension "$work/host"
mkdir -p "$work/elsewhere"
expect "another folder does not allow it" 1 "E0360" "none of the folders" -- "$modelc" test "$m" --allow-extension "$work/elsewhere"
expect "a folder that is not there" 2 "no such folder" -- "$modelc" build "$m" --config "$work/c.json" -o "$work/out" --allow-extension "$work/nowhere"
expect "it comes with the generated files" 0 m_blended_host.h -- "$modelc" build "$m" --config "$work/c.json" -o "$work/out" --allow-extension "$work/host" \
  --depfile "$work/out.d"
grep -q "blended.h" "$work/out.d" && pass "and a build system knows it" || fail "and a build system knows it" "$(cat "$work/out.d")"
grep -q "if (!s.custom(" "$work/out/m.cpp" && pass "the reference stays beside it" || fail "the reference stays beside it"
"$modelc" dump "$m" --config "$work/c.json" --stage graph --allow-extension "$work/host" > "$work/m.graph"
expect "the text of a graph brings it along, and asks again" 1 "E0360" -- "$modelc" build "$work/m.graph" -o "$work/again"
"$modelc" build "$work/m.graph" -o "$work/again" --allow-extension "$work/host" > "$work/log" 2>&1
if diff -r "$work/out" "$work/again" > "$work/diff"; then pass "and gives the same bytes"; else fail "and gives the same bytes" "$(cat "$work/diff")"; fi
sed -i 's/gain\[i % n\] +/gain[i % n] -/' "$work/host/blended.h"
expect "C++ that computes something else is found" 1 "0 passed, 1 failed" "cpu against" -- "$modelc" test "$m" --allow-extension "$work/host"
sed -i 's/std::int64_t n = /std::int64_t m = /' "$work/host/blended.h"
expect "C++ that does not compile is shown" 1 "m_blended_host.h:5" "was not declared" -- "$modelc" test "$m" --allow-extension "$work/host"

# ---- shaders
if ! "$modelc" devices 2>&1 | grep -q '^vulkan:0'; then
  skip "SKIPPED: no Vulkan driver is installed, or this modelc was built without Vulkan"
  finish
  exit
fi

# Operations that bring a shader: it runs, it is what computes the numbers, and the reference does where it cannot.
mkdir -p "$work/custom"
cat > "$work/custom/m.model" <<'MODEL'
language 1
op halves(x: [..., n], scale: [n], shift: []) -> ([..., n], [..., n]) {
    reference { let s = x * scale  return s + shift, s - shift }
    glsl "halves.comp" local_size 32 dispatch [ceil_div(count(x), 32)]
}
op counted(x: [a, b], k: index(5)[a]) -> [a, b] {
    reference x + unflatten(k as f32, 0, [count(k), 1])
    glsl "wide.comp" local_size 8 dispatch [ceil_div(b, 8), a] requires float64, int64
    glsl "counted.comp" local_size 8 dispatch [ceil_div(b, 8), a]
}
test "two results" { op halves  input x = linspace(-3, 3, 105) as [5, 3, 7]  input scale = linspace(1, 2, 7)  input shift = 0.25
                     same reference, cpu, vulkan within 1e-6 }
test "two axes of groups" { op counted  input x = linspace(-3, 3, 51) as [3, 17]  input k = [4, 0, 2]  same reference, cpu, vulkan within 1e-6 }
MODEL
cat > "$work/custom/halves.comp" <<'GLSL'
#version 450
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer Scale { T scale[]; };
layout(set = 0, binding = 2) readonly buffer Shift { T shift[]; };
layout(set = 0, binding = 3) writeonly buffer Up { T up[]; };
layout(set = 0, binding = 4) writeonly buffer Down { T down[]; };
layout(push_constant) uniform Sizes { uint lead; uint n; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= lead * n) return;
  const R s = R(x[i]) * R(scale[i % n]);
  up[i] = T(s + R(shift[0]));
  down[i] = T(s - R(shift[0]));
}
GLSL
cat > "$work/custom/counted.comp" <<'GLSL'
#version 450
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer K { int k[]; };
layout(set = 0, binding = 2) writeonly buffer Y { T y[]; };
layout(push_constant) uniform Sizes { uint a; uint b; };
void main() {
  const uint row = gl_GlobalInvocationID.y, column = gl_GlobalInvocationID.x;
  if (row < a && column < b) y[row * b + column] = T(R(x[row * b + column]) + R(k[row]));
}
GLSL
sed 's/#version 450/#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require/' "$work/custom/counted.comp" > "$work/custom/wide.comp"
expect "operations by their shaders" 0 "2 passed, 0 failed" -- "$modelc" test "$work/custom/m.model"
# By chance: other shapes than those that its author thought of.
cp -r "$work/custom" "$work/chance"
sed -i '/^test "two results"/,$d' "$work/chance/m.model"
echo 'test "by chance" { op halves  same reference, cpu, vulkan within 1e-5 }
test "by chance, beside numbers" { op counted  input k = [4, 0, 2]  same reference, cpu, vulkan within 1e-5 }' >> "$work/chance/m.model"
expect "their shaders on shapes by chance" 0 "2 passed, 0 failed" -- "$modelc" test "$work/chance/m.model"
for folder in custom chance; do
  cp -r "$work/$folder" "$work/short-$folder"
  sed -i 's/if (i >= lead \* n) return;/if (i >= min(lead * n, 105u)) return;/' "$work/short-$folder/halves.comp"
done
expect "one that is right for the given sizes alone" 0 "2 passed, 0 failed" -- "$modelc" test "$work/short-custom/m.model"
expect "is found by others" 1 "1 passed, 1 failed" "with inputs by chance, x [" "vulkan against the reference" -- "$modelc" test "$work/short-chance/m.model"
cp -r "$work/custom" "$work/other"
sed -i 's/up\[i\] = T(s + /up[i] = T(s - /' "$work/other/halves.comp"
expect "a shader that computes something else is found" 1 "1 passed, 1 failed" "vulkan against" -- "$modelc" test "$work/other/m.model"
sed -i 's/R(shift\[0\])/R(shft[0])/' "$work/other/halves.comp"
expect "a shader that does not compile is shown, with the line that brings it" 1 "E0611" "halves.comp:13" "m.model:4" -- "$modelc" test "$work/other/m.model"
# What a shader sees is what its operation gives it; a driver would read what is not there, or end the process.
cp -r "$work/custom" "$work/beside"
beside() {                                                 # NAME SUBSTITUTION WHAT IS SAID…
  local name=$1 change=$2
  shift 2
  sed "$change" "$work/custom/halves.comp" > "$work/beside/halves.comp"
  if cmp -s "$work/custom/halves.comp" "$work/beside/halves.comp"; then fail "$name: nothing was changed"; fi
  expect "$name" 1 E0611 "m.model:4" "$@" -- "$modelc" test "$work/beside/m.model"
}
beside "a binding that there is not" 's/binding = 4/binding = 5/' "halves.comp:7: " "\`Down\` is at set 0, binding 5; set 0 has bindings 0 to 4"
beside "a set that there is not" 's/set = 0, binding = 4/set = 1, binding = 0/' "\`Down\` is at set 1, binding 0"
beside "more sizes than axes" 's/uint n; }/uint n; uint m[29]; }/' "halves.comp:8: " "124 bytes of push constants, and the operation's 2 sizes are 8 bytes"
beside "a uniform buffer" 's/readonly buffer Shift { T shift\[\]; }/uniform Shift { T shift[1]; }/' "halves.comp:5: " "no single storage buffer"
beside "an array of buffers" 's/readonly buffer Shift { T shift\[\]; }/readonly buffer Shift { T shift[]; } b[2]/; s/(shift/(b[0].shift/' "no single storage buffer"
beside "another local size" 's/local_size_x_id = 0/local_size_x = 64/' "halves.comp:2: " "layout(local_size_x_id = 0) in"
beside "a workgroup of two axes" 's/local_size_x_id = 0/local_size_x_id = 0, local_size_y = 2/' "invocations along x"
beside "more shared memory than there is" 's/^void main() {/shared float s[5000];&s[gl_LocalInvocationID.x] = 1;/' "a workgroup shares 20000 bytes"
beside "a feature that it does not name" 's/#version 450/&\n#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require/; s/R(shift\[0\])/R(float16_t(shift[0]))/' \
  "requires float16"
beside "a feature that has no name" 's/#version 450/&\n#extension GL_KHR_shader_subgroup_ballot : require/; s/R(shift\[0\])/subgroupBroadcastFirst(R(shift[0]))/' \
  "no feature of \`requires\`"
sed 's/local_size_x_id = 0/local_size_x = 32/; s/^void main() {/shared float s[64][64];&s[0][gl_LocalInvocationID.x] = 1;/' "$work/custom/halves.comp" > "$work/beside/halves.comp"
expect "the same local size, and as much shared memory as every device has" 0 "2 passed, 0 failed" -- "$modelc" test "$work/beside/m.model"
# What `devices` says that a device has is what `requires` finds there: these shaders are wrong, so that it shows which of them ran.
{ echo "language 1"
  for f in float16 float64 int8 int16 int64 storage8 storage16 subgroup_arithmetic subgroup_shuffle; do
    echo "op needs_$f(x: [n]) -> [n] { reference 2 * x  glsl \"wrong.comp\" local_size 8 dispatch [ceil_div(n, 8)] requires $f }"
    echo "test \"$f\" { op needs_$f  input x = [1, 2, 3]  same reference, vulkan within 1e-6 }"
  done; } > "$work/custom/needs.model"
cat > "$work/custom/wrong.comp" <<'GLSL'
#version 450
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };
layout(push_constant) uniform Sizes { uint n; };
void main() { if (gl_GlobalInvocationID.x < n) y[gl_GlobalInvocationID.x] = T(3) * x[gl_GlobalInvocationID.x]; }
GLSL
ran=$("$modelc" test "$work/custom/needs.model" 2>&1 | sed -n 's/^FAILED  //p' | sort | tr '\n' ' ')
said=$("$modelc" devices | sed -n '/^vulkan:0/,/^vulkan:1/s/^  has //p' | tr -d ',' | tr ' ' '\n' | grep -E '^(float|int|storage|subgroup_)' | sort | tr '\n' ' ')
if [ -n "$said" ] && [ "$ran" = "$said" ]; then pass "features as \`devices\` lists them"; else fail "features as \`devices\` lists them" "ran: $ran
said: $said"; fi
apertus=examples/apertus/fixtures/apertus-tiny
"$modelc" verify examples/apertus/apertus.model --checkpoint $apertus --expected $apertus/expected.safetensors --within 1e-4 --backend vulkan > "$work/log" 2>&1
if grep -q "custom operations* by a shader of its own" "$work/log"; then pass "Apertus runs its own shader"; else fail "Apertus runs its own shader" "$(cat "$work/log")"; fi
finish
