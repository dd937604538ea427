// What goes token by token with a state in registers. A workgroup is some teams of `lanes` invocations. A team has some columns of
// one head's state (what of it no sum goes across), and of each column an invocation has every lanes-th element. A column's sums are
// its team's: of the subgroup, or through shared memory, in one order whatever else the workgroup does.
//
// Before it is included: SUMS, how many a team has for one token, in terms of `columns`.
#extension GL_EXT_control_flow_attributes : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif

layout(constant_id = 1) const uint lanes = 1;
layout(constant_id = 2) const uint held = 1;               // elements of a column that one invocation has
layout(constant_id = 3) const uint columns = 1;            // of a team

const uint teams = local_size / lanes, sums = SUMS;
float sum_of[sums];                                        // an invocation's part of each; all of it after sum_lanes()

#ifdef SUBGROUP
#define scan_team gl_SubgroupID
#define scan_lane gl_SubgroupInvocationID

void sum_lanes() {
  [[unroll]] for (uint i = 0u; i < sums; ++i) sum_of[i] = subgroupAdd(sum_of[i]);
}
#else
#ifdef COLUMNS_TOGETHER                                    // what lies side by side in the state are columns, not a column's elements
#define scan_team (gl_LocalInvocationID.x % teams)
#define scan_lane (gl_LocalInvocationID.x / teams)
#else
#define scan_team (gl_LocalInvocationID.x / lanes)
#define scan_lane (gl_LocalInvocationID.x % lanes)
#endif
shared float part_of_sum[sums * local_size], whole_sum[sums * teams];

// Every invocation must call it.
void sum_lanes() {
  if (lanes == 1u) return;
  const uint mine = scan_lane * teams + scan_team;
  [[unroll]] for (uint i = 0u; i < sums; ++i) part_of_sum[i * local_size + mine] = sum_of[i];
  barrier();
  for (uint k = gl_LocalInvocationID.x; k < sums * teams; k += local_size) {
    const uint from = k / teams * local_size + k % teams;
    float s = part_of_sum[from];
    for (uint l = 1u; l < lanes; ++l) s += part_of_sum[from + l * teams];
    whole_sum[k] = s;
  }
  barrier();
  [[unroll]] for (uint i = 0u; i < sums; ++i) sum_of[i] = whole_sum[i * teams + scan_team];
}
#endif
