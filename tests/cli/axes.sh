#!/usr/bin/env bash
# Many run-time axes: a model with the prelude's four and thirteen of its own, operations with more sizes than push constants hold, and
# more axes than a model may have. The numbers are the reference evaluator's, on the CPU and, where a driver is, on Vulkan.
source "$(dirname "$0")/lib.sh"

backends="cpu"
if "$modelc" devices 2>&1 | grep -q '^vulkan:0'; then backends="cpu, vulkan"; else echo "SKIPPED on Vulkan: no driver is installed"; fi
own() { for i in $(seq 1 "$1"); do echo "axis f$i: 1..9"; done; }

{ echo "language 1"; own 13; cat <<MODEL
config C { n: dim }
model M(c: C) {
    param table: [c.n, c.n]
    forward(x: [f1, f2, f3, f4, f5], y: [f6, f7, f8, f9], z: [f10, f11, f12, f13, c.n], s: [batch, seq])
        -> (a: [f1, f2, f3, f4, f5], b: [f9, f8, f7, f6], d: [f10, f11, f12, f13, c.n], e: [batch, seq]) {
        let whole = sum(flatten(y, 0, 3), axis: 0)
        let turned = transpose(transpose(y, 0, 3), 1, 2)
        return x * x + whole, turned - mean(turned, axis: 3) as [f9, f8, f7, 1],
            linear(z, table) + max(z, axis: 3) as [f10, f11, f12, 1, c.n], s + sum(s, axis: 1) as [batch, 1]
    }
}
test "17 axes" {
    config { n: 3 }  checkpoint random 3
    input x = linspace(-1, 2, 720) as [2, 3, 4, 5, 6]  input y = linspace(-2, 1, 120) as [2, 3, 4, 5]
    input z = linspace(-3, 3, 144) as [2, 3, 2, 4, 3]  input s = linspace(0, 1, 6) as [2, 3]
    same reference, $backends within 1e-5
}
MODEL
} > "$work/axes.model"
expect "a model with 17 axes" 0 "1 passed, 0 failed" -- "$modelc" test "$work/axes.model"

{ echo "language 1"; own 29; cat <<'MODEL'
config C { n: dim }
model M(c: C) {
    param table: [c.n]
    forward(x: [f29, c.n]) -> y: [f29, c.n] { return x * table }
}
MODEL
} > "$work/many.model"
echo '{"n": 3}' > "$work/n.json"
expect "more axes than there is room for" 1 "33 run-time axes" "room for 32" -- "$modelc" build "$work/many.model" --config "$work/n.json" -o "$work/many"

# An operation's shader is told every size: 17 of them here as push constants, 36 in a buffer behind its tensors.
cat > "$work/ops.model" <<MODEL
language 1
op few(x: [a, b, c, d, e, f], y: [g, h, i, j, k, l], z: [m, n, o, p, q]) -> [a, b, c, d, e, f] {
    reference x + sum(flatten(y, 0, 5), axis: 0) * sum(flatten(z, 0, 4), axis: 0)
    glsl "few.comp" local_size 16 dispatch [ceil_div(count(x), 16)]
}
op many(u: [a1, a2, a3, a4, a5, a6], v: [b1, b2, b3, b4, b5, b6], w: [c1, c2, c3, c4, c5, c6],
        x: [d1, d2, d3, d4, d5, d6], y: [e1, e2, e3, e4, e5, e6], z: [g1, g2, g3, g4, g5, g6]) -> [a1, a2, a3, a4, a5, a6] {
    reference u + sum(flatten(v, 0, 5), axis: 0) - sum(flatten(w, 0, 5), axis: 0) + sum(flatten(x * x, 0, 5), axis: 0) +
              sum(flatten(y, 0, 5), axis: 0) + sum(flatten(z, 0, 5), axis: 0)
    glsl "many.comp" local_size 16 dispatch [ceil_div(count(u), 16)]
}
test "17 sizes" { op few  input x = linspace(-1, 1, 192) as [2, 2, 2, 2, 3, 4]  input y = linspace(0, 1, 96) as [2, 1, 2, 2, 3, 4]
                  input z = linspace(0, 1, 24) as [1, 2, 1, 3, 4]  same reference, $backends within 1e-5 }
test "36 sizes" { op many  input u = linspace(0, 0.1, 64) as [2, 2, 2, 2, 2, 2]  input v = linspace(0, 0.2, 64) as [2, 2, 2, 2, 2, 2]
                  input w = linspace(0, 0.3, 192) as [2, 2, 2, 2, 2, 6]  input x = linspace(0, 0.1, 32) as [1, 2, 2, 2, 2, 2]
                  input y = linspace(0, 0.1, 64) as [2, 2, 2, 2, 2, 2]  input z = linspace(0, 0.1, 64) as [2, 2, 2, 2, 2, 2]
                  same reference, $backends within 1e-5 }
MODEL
cat > "$work/few.comp" <<'GLSL'
#version 450
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) readonly buffer Y { T y[]; };
layout(set = 0, binding = 2) readonly buffer Z { T z[]; };
layout(set = 0, binding = 3) writeonly buffer Sum { T result[]; };
layout(push_constant) uniform Sizes { uint n[17]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  uint counts[3] = uint[3](1, 1, 1);
  for (uint k = 0; k < 17; ++k) counts[k / 6] *= n[k];
  if (i >= counts[0]) return;
  R a = R(0), b = R(0);
  for (uint k = 0; k < counts[1]; ++k) a += R(y[k]);
  for (uint k = 0; k < counts[2]; ++k) b += R(z[k]);
  result[i] = T(R(x[i]) + a * b);
}
GLSL
cat > "$work/many.comp" <<'GLSL'
#version 450
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer U { T u[]; };
layout(set = 0, binding = 1) readonly buffer V { T v[]; };
layout(set = 0, binding = 2) readonly buffer W { T w[]; };
layout(set = 0, binding = 3) readonly buffer X { T x[]; };
layout(set = 0, binding = 4) readonly buffer Y { T y[]; };
layout(set = 0, binding = 5) readonly buffer Z { T z[]; };
layout(set = 0, binding = 6) writeonly buffer Sum { T result[]; };
layout(set = 0, binding = 7) readonly buffer Sizes { uint n[36]; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  uint counts[6] = uint[6](1, 1, 1, 1, 1, 1);
  for (uint k = 0; k < 36; ++k) counts[k / 6] *= n[k];
  if (i >= counts[0]) return;
  R sum = R(u[i]);
  for (uint k = 0; k < counts[1]; ++k) sum += R(v[k]);
  for (uint k = 0; k < counts[2]; ++k) sum -= R(w[k]);
  for (uint k = 0; k < counts[3]; ++k) sum += R(x[k]) * R(x[k]);
  for (uint k = 0; k < counts[4]; ++k) sum += R(y[k]);
  for (uint k = 0; k < counts[5]; ++k) sum += R(z[k]);
  result[i] = T(sum);
}
GLSL
expect "operations with 17 sizes and with 36" 0 "2 passed, 0 failed" -- "$modelc" test "$work/ops.model"
if [ "$backends" = cpu ]; then skip "SKIPPED: whether the shaders that are told so many sizes ran"
else
  sed 's/buffer Sizes { uint n\[36\]/buffer Sizes { uint unused; uint n[36]/' "$work/many.comp" > "$work/later.comp"
  cp "$work/many.comp" "$work/right.comp"
  cp "$work/later.comp" "$work/many.comp"
  expect "the shader that was told 36 sizes ran" 1 "1 passed, 1 failed" "36 sizes" -- "$modelc" test "$work/ops.model"
  sed 's/set = 0, binding = 7) readonly buffer Sizes { uint n\[36\]/push_constant) uniform Sizes { uint n[32]/' "$work/right.comp" > "$work/many.comp"
  expect "and one that reads them where they are not is refused" 1 "E0611" "36 sizes come as a buffer of uints at binding 7" -- "$modelc" test "$work/ops.model"
  cp "$work/right.comp" "$work/many.comp"
  sed -i 's/a \* b/a - b/' "$work/few.comp"
  expect "and the shader that was told 17 sizes ran" 1 "1 passed, 1 failed" "17 sizes" -- "$modelc" test "$work/ops.model"
fi
finish
