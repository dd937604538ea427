// What every shader begins with: the size of a workgroup (constant 0), and a workgroup's number in a dispatch that was
// folded into more axes than one.
//
// A shader's push constants are, in this order: for each binding the byte at which its tensor begins (bindings are
// aligned down to what the device asks), then the shader's own arguments.
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;

uint group_number() {
  return gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}
uint invocation_number() { return group_number() * local_size + gl_LocalInvocationID.x; }

const uint dtype_f32 = 0, dtype_i32 = 1, dtype_bool = 2;
