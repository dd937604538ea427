// Pairs of a token and a choice by expert, in two runs: how many each expert has; then its pairs, lower ones first, and tiles of at
// most `together` of them. Of words: the experts' counts, the number of tiles, three words a tile (expert, its first pair's place
// in the list, how many), the list. A workgroup takes an expert. One that is not there is written to `faults`, once.
#version 450
#include "common.glsl"

layout(constant_id = 1) const uint second = 0;             // the run
layout(constant_id = 2) const uint together = 4;

layout(binding = 0) readonly buffer Chosen { int v[]; } chosen;
layout(binding = 1) buffer Sorted { uint v[]; } sorted;
layout(binding = 2) buffer Faults { uint v[]; } faults;
layout(push_constant) uniform Push {
  uint at[3];
  uint pairs, experts, list;
} p;

shared uint mine[local_size], tiles[local_size];

void main() {
  const uint e = group_number(), me = gl_LocalInvocationID.x, to = p.at[1] >> 2, from = p.at[0] >> 2;
  if (e >= p.experts) return;
  // An invocation takes one run of pairs.
  const uint run = (p.pairs + local_size - 1u) / local_size, begin = min(me * run, p.pairs), end = min(begin + run, p.pairs);
  uint count = 0u;
  for (uint i = begin; i < end; ++i) {
    const int wanted = chosen.v[from + i];
    if (wanted == int(e)) ++count;
    if (second == 0u && e == 0u && (wanted < 0 || uint(wanted) >= p.experts) && atomicCompSwap(faults.v[0], 0u, 2u) == 0u) {
      faults.v[1] = uint(wanted);
      faults.v[2] = p.experts;
    }
  }
  mine[me] = count;
  barrier();
  uint before = 0u, all = 0u;
  for (uint i = 0u; i < local_size; ++i) {
    if (i < me) before += mine[i];
    all += mine[i];
  }
  if (second == 0u) {
    if (me == 0u) sorted.v[to + e] = all;
    return;
  }
  // Pairs and tiles of the experts before this one.
  barrier();
  uint its_pairs = 0u, its_tiles = 0u;
  for (uint i = me; i < e; i += local_size) {
    const uint n = sorted.v[to + i];
    its_pairs += n;
    its_tiles += (n + together - 1u) / together;
  }
  mine[me] = its_pairs;
  tiles[me] = its_tiles;
  barrier();
  uint first_pair = 0u, first_tile = 0u;
  for (uint i = 0u; i < local_size; ++i) {
    first_pair += mine[i];
    first_tile += tiles[i];
  }
  const uint count_of_tiles = (all + together - 1u) / together;
  if (me == 0u && e + 1u == p.experts) sorted.v[to + p.experts] = first_tile + count_of_tiles;
  for (uint i = me; i < count_of_tiles; i += local_size) {
    const uint tile = to + p.experts + 1u + (first_tile + i) * 3u;
    sorted.v[tile] = e;
    sorted.v[tile + 1u] = first_pair + i * together;
    sorted.v[tile + 2u] = min(together, all - i * together);
  }
  uint place = to + p.list + first_pair + before;
  for (uint i = begin; i < end; ++i)
    if (chosen.v[from + i] == int(e)) sorted.v[place++] = i;
}
