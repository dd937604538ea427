#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Sizes { uint n; };
void main() {
  if (gl_GlobalInvocationID.x < n) y[gl_GlobalInvocationID.x] = 2 * x[gl_GlobalInvocationID.x];
}
