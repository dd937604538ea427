// Sums and maxima over the invocations of a workgroup, by halves in shared memory: one order whatever the device. Every
// invocation must call them. local_size is a power of two.
shared float group_scratch[local_size];

float group_sum(float v) {
  const uint me = gl_LocalInvocationID.x;
  group_scratch[me] = v;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (me < half_size) group_scratch[me] += group_scratch[me + half_size];
    barrier();
  }
  const float all = group_scratch[0];
  barrier();
  return all;
}

float group_max(float v) {
  const uint me = gl_LocalInvocationID.x;
  group_scratch[me] = v;
  barrier();
  for (uint half_size = local_size / 2; half_size > 0; half_size /= 2) {
    if (me < half_size) group_scratch[me] = max(group_scratch[me], group_scratch[me + half_size]);
    barrier();
  }
  const float all = group_scratch[0];
  barrier();
  return all;
}
