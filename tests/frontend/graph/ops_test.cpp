// The table of operations, and what their shape rules refuse.
#include "frontend/graph/ops.h"

#include <doctest/doctest.h>

#include <set>

#include "frontend/graph/types.h"
#include "tests/frontend/graph/support.h"

namespace modelc::graph::test {

namespace {

struct Refused {
  const char* op;                                // of the table
  const char* inputs;
  const char* text;                              // the operation, its results named %y (and %z)
  const char* message;
  const char* members = "";
};

// At least one of every operation; the message as the verifier gives it, after "`op`: ".
const Refused refused[] = {
    {"linear", "%x: f32[tokens, 40], %w: f32[64, 32]", "%y: f32[2] = linear(%x, %w, _)", "linear: the last axis of x is 40, of w 32"},
    {"linear", "%x: f32[3, 4], %w: f32[5, 4], %b: f32[4]", "%y: f32[2] = linear(%x, %w, %b)",
     "linear: the axis of b is 4, the first axis of w 5"},
    {"linear", "%x: f32[3, 4], %w: f32[1, 5, 4]", "%y: f32[2] = linear(%x, %w, _)", "linear: w has 3 axes, not 2: f32[1, 5, 4]"},
    {"linear", "%x: index(3)[3, 4], %w: f32[5, 4]", "%y: f32[2] = linear(%x, %w, _)",
     "linear: x is index(3)[3, 4], not of floats; write `as f32`"},
    {"linear", "%x: Batch, %w: f32[5, 4]", "%y: f32[2] = linear(%x, %w, _)", "linear: x is a Batch, not a tensor"},
    {"linear", "%x: f32[], %w: f32[5, 4]", "%y: f32[2] = linear(%x, %w, _)", "linear: x has 0 axes, wanted at least 1: f32[]"},
    {"matmul", "%a: f32[3, 4], %b: f32[5, 2]", "%y: f32[2] = matmul(%a, %b)", "matmul: the last axis of a is 4, the first axis of b 5"},
    {"matmul", "%a: f32[2, 3, 4], %b: f32[5, 4, 2]", "%y: f32[2] = matmul(%a, %b)", "matmul: a leading axis of a is 2, of b 5"},
    {"outer", "%a: f32[3], %b: f32[3, 1]", "%y: f32[2] = outer(%a, %b)", "outer: b has 2 axes, not 1"},
    {"take", "%x: f32[10, 4], %i: index(11)[tokens]", "%y: f32[2] = take(%x, %i)",
     "take: rows is index(11)[tokens], and there are only 10 rows"},
    {"take", "%x: f32[10, 4], %i: i32[tokens]", "%y: f32[2] = take(%x, %i)", "take: rows has no bound: declare it as index(10)[tokens]"},
    {"take", "%x: f32[10, 4], %i: f32[tokens]", "%y: f32[2] = take(%x, %i)", "take: rows is f32[tokens], not an index"},
    {"take", "%x: f32[tokens, 4], %i: index(batch)[3]", "%y: f32[2] = take(%x, %i)", "there are only tokens rows"},
    {"put", "%x: f32[10, 4], %i: index(10)[3], %v: f32[2, 4]", "%y: f32[2] = put(%x, %i, %v)",
     "put: the first axis of v is 2, the axis of rows 3"},
    {"put", "%x: f32[10, 4], %i: index(10)[3], %v: f32[3, 5]", "%y: f32[2] = put(%x, %i, %v)", "put: the last axis of v is 5, of x 4"},
    {"route", "%s: f32[tokens, 8], %b: f32[6]", "%y: f32[2] = route(%s, %b; k: 2, renormalize: true)",
     "route: the axis of bias is 6, the last axis of scores 8"},
    {"route", "%s: f32[tokens, 8]", "%y: f32[2] = route(%s, _; k: 9, renormalize: true)", "route: k is 9, the last axis of scores 8"},
    {"route", "%s: f32[tokens, 8]", "%y: f32[2] = route(%s, _; k: 2, groups: 3, renormalize: true)",
     "route: groups is 3, which does not divide the 8 scores evenly"},
    {"route", "%s: f32[tokens, 8]", "%y: f32[2] = route(%s, _; k: 2, groups: 4, keep_groups: 5, renormalize: true)",
     "route: keep_groups is 5, wanted 1 to the 4 groups"},
    {"route", "%s: f32[tokens, 8]", "%y: f32[2] = route(%s, _; k: 3, groups: 4, keep_groups: 1, renormalize: true)",
     "route: k is 3, and the 1 best groups have 2 scores"},
    {"route", "%s: f32[tokens, 8]",
     "%y: f32[2] = route(%s, _; k: 1, groups: 8, keep_groups: 1, group_score: \"top2_sum\", renormalize: true)",
     "route: group_score \"top2_sum\" needs groups of at least 2, these have 1"},
    {"route", "%s: f32[tokens, 8]", "%y: f32[2] = route(%s, _; k: 1, groups: 2, group_score: \"mean\", renormalize: true)",
     "route: group_score is \"mean\", wanted \"max\" or \"top2_sum\""},
    {"route", "%s: f32[8, tokens]", "%y: f32[2] = route(%s, _; k: 1, renormalize: true)",
     "route: the last axis of scores is tokens, wanted one known at compile time"},
    {"moe", "%x: f32[tokens, 6], %e: index(3)[tokens, 2], %p: f32[tokens, 2], %a: f32[3, 4, 5], %d: f32[3, 6, 4]",
     "%y: f32[2] = moe(%x, %e, %p, %a, %a, %d, _, _, _)", "moe: the last axis of x is 6, of gate 5"},
    {"moe", "%x: f32[tokens, 6], %e: index(4)[tokens, 2], %p: f32[tokens, 2], %a: f32[3, 4, 6], %d: f32[3, 6, 4]",
     "%y: f32[2] = moe(%x, %e, %p, %a, %a, %d, _, _, _)", "moe: chosen is index(4)[tokens, 2], and there are only 3 rows"},
    {"moe", "%x: f32[tokens, 6], %e: index(3)[tokens, 2], %p: f32[tokens, 3], %a: f32[3, 4, 6], %d: f32[3, 6, 4]",
     "%y: f32[2] = moe(%x, %e, %p, %a, %a, %d, _, _, _)", "moe: the last axis of weights is 3, of chosen 2"},
    {"moe", "%x: f32[tokens, 6], %e: index(3)[tokens, 2], %p: f32[tokens, 2], %a: f32[3, 4, 6], %d: f32[3, 4, 6]",
     "%y: f32[2] = moe(%x, %e, %p, %a, %a, %d, _, _, _)", "moe: axis 1 of down is 4, the last axis of gate 6"},
    {"moe", "%x: f32[tokens, 6], %e: index(3)[tokens, 2], %p: f32[tokens, 2], %a: f32[3, 4, 6], %d: f32[3, 6, 4], %b: f32[3, 4]",
     "%y: f32[2] = moe(%x, %e, %p, %a, %a, %d, %b, _, %b)", "moe: the last axis of down_b is 4, axis 1 of down 6"},
    {"attend", "%q: f32[tokens, 3, 8], %k: f32[tokens, 2, 8], %v: f32[tokens, 2, 8], %at: Batch",
     "%y: f32[2] = attend(%q, %k, %v, %at, _, _, _; mask: \"causal\", scale: 1.0)", "attend: q has 3 heads, not a multiple of the 2 of k"},
    {"attend", "%q: f32[tokens, 2, 8], %k: f32[tokens, 2, 9], %v: f32[tokens, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"causal\", scale: 1.0)", "attend: the last axis of q is 8, of k 9"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[4, 2, 8], %v: f32[4, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"causal\", scale: 1.0)", "attend: the first axis of q is 3, of k 4"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[4, 2, 8], %v: f32[4, 2, 8], %m: bool[3]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, %m, _; mask: \"full\", scale: 1.0)", "attend: the axis of keep is 3, the first axis of k 4"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[4, 2, 8], %v: f32[4, 2, 8], %b: f32[3, 3]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, %b; mask: \"full\", scale: 1.0)",
     "the last axis of bias is 3, of the scores [2, 3, 4] it is 4"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[3, 2, 8], %v: f32[3, 2, 8], %s: f32[3]",
     "%y: f32[2] = attend(%q, %k, %v, _, %s, _, _; mask: \"full\", scale: 1.0)", "attend: the axis of sinks is 3, axis 1 of q 2"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[3, 2, 8], %v: f32[3, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"some\", scale: 1.0)", "attend: mask is \"some\", wanted \"causal\" or \"full\""},
    {"attend", "%q: f32[3, 2, 8], %k: f32[3, 2, 8], %v: f32[3, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"full\", scale: 1.0, window: 2)", "attend: a window needs mask \"causal\""},
    {"attend", "%q: f32[3, 2, 8], %k: f32[3, 2, 8], %v: f32[3, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"causal\", scale: 1.0, window: 0)",
     "attend: window counts the own position, so it is at least 1"},
    {"attend", "%q: f32[3, 2, 8], %k: f32[3, 2, 8], %v: f32[3, 2, 8]",
     "%y: f32[2] = attend(%q, %k, %v, _, _, _, _; mask: \"causal\", scale: 1.0, softcap: -1.0)", "attend: softcap is"},
    {"attend", "%q: f32[tokens, 4, 8], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: the last axis of q is 8, of the cache 16", "state cache: kv_cache[2, 16, 16]"},
    {"attend", "%q: f32[tokens, 3, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: q has 3 heads, not a multiple of the 2 of the cache", "state cache: kv_cache[2, 16, 16]"},
    {"attend", "%q: f32[seq, 4, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: the first axis of q is seq, wanted tokens", "state cache: kv_cache[2, 16, 16]"},
    {"attend", "%q: f32[tokens, 4, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, %q, _, %at, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: k is given, but the cache is attended to", "state cache: kv_cache[2, 16, 16]"},
    {"attend", "%q: f32[tokens, 4, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, _, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: at is missing", "state cache: kv_cache[2, 16, 16]"},
    {"attend", "%q: f32[tokens, 4, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"full\", scale: 1.0)",
     "attend: the state cache is a LatentCache, not a KVCache", "state cache: latent_cache[5, 2]"},
    {"attend", "%q: f32[tokens, 4, 16], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"causal\", scale: 1.0)",
     "attend: all of a CrossCache is seen: mask must be \"full\"", "state cache: cross_cache[5, 2, 16]"},
    {"attend", "%q: f32[tokens, 4, 8], %at: Batch", "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"full\", scale: 1.0)",
     "attend: the last axis of q is 8, of the cache 16", "state cache: cross_cache[5, 2, 16]"},
    {"attend", "%q: f32[tokens, 4, 16], %at: Batch",
     "%y: f32[2] = attend \"cache\"(%q, _, _, %at, _, _, _; mask: \"full\", scale: 1.0, window: 4)",
     "attend: a window needs mask \"causal\"", "state cache: kv_cache[2, 16, 16]"},
    {"cross_set", "%k: f32[batch, 5, 2, 16], %at: Sequences", "cross_set \"cache\"(%k, %k, %at)\n%y: f32[] = literal(value: 0.0)",
     "cross_set: axis 1 of k is 5, the cache's rows are 6", "state cache: cross_cache[6, 2, 16]"},
    {"cross_set", "%k: f32[batch, 5, 2, 16], %v: f32[batch, 5, 2, 8], %at: Sequences",
     "cross_set \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)", "cross_set: the last axis of v is 8, of the cache 16",
     "state cache: cross_cache[5, 2, 16]"},
    {"cross_set", "%k: f32[tokens, 5, 2, 16], %at: Sequences", "cross_set \"cache\"(%k, %k, %at)\n%y: f32[] = literal(value: 0.0)",
     "cross_set: the first axis of k is tokens, wanted batch", "state cache: cross_cache[5, 2, 16]"},
    {"cross_set", "%k: f32[batch, 5, 2, 16], %at: Batch", "cross_set \"cache\"(%k, %k, %at)\n%y: f32[] = literal(value: 0.0)",
     "cross_set: at is Batch, not a Sequences", "state cache: cross_cache[5, 2, 16]"},
    {"cross_set", "%k: f32[batch, 5, 2, 16], %at: Sequences", "cross_set \"cache\"(%k, %k, %at)\n%y: f32[] = literal(value: 0.0)",
     "cross_set: the state cache is a KVCache, not a CrossCache", "state cache: kv_cache[5, 2, 16]"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 2, 3]", "%y: f32[2] = conv1d(%x, %w, _)", "conv1d: axis 1 of x is 3, w wants 2"},
    {"conv1d", "%x: f32[2, 6, 8], %w: f32[4, 2, 3]", "%y: f32[2] = conv1d(%x, %w, _; groups: 2)",
     "conv1d: axis 1 of x is 6, w wants groups · its axis 1, which is 4"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 1, 3]", "%y: f32[2] = conv1d(%x, %w, _; groups: 2)",
     "conv1d: the channels of x are 3, no multiple of groups, which is 2"},
    {"conv1d", "%x: f32[2, 2, 8], %w: f32[5, 1, 3]", "%y: f32[2] = conv1d(%x, %w, _; groups: 2)",
     "conv1d: the channels of w's result are 5, no multiple of groups, which is 2"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 3], %b: f32[3]", "%y: f32[2] = conv1d(%x, %w, %b)",
     "conv1d: the axis of b is 3, the first axis of w 4"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv1d(%x, %w, _; dilation: 3, padding: 2)",
     "conv1d: the last axis of x with padding is 12, and the kernel spans 13"},
    {"conv1d", "%x: f32[3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv1d(%x, %w, _)", "conv1d: x has 2 axes, not 3"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv1d(%x, %w, _; stride: 0)", "conv1d: stride is 0, wanted at least 1"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv1d(%x, %w, _; padding: -1)",
     "conv1d: padding is -1, wanted at least 0"},
    {"conv1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv1d(%x, %w, _; padding: 9223372036854775807)",
     "conv1d: the size of the last axis of the result overflows"},
    {"conv1d", "%x: f32[batch, 3, tokens], %w: f32[4, 3, 3]", "%y: f32[2] = conv1d(%x, %w, _; stride: 2, padding: 1)",
     "but must be f32[batch, 4, div(tokens + 1, 2)]"},
    {"conv2d", "%x: f32[2, 3, 8, 2], %w: f32[4, 3, 3, 3]", "%y: f32[2] = conv2d(%x, %w, _)",
     "conv2d: the last axis of x with padding is 2, and the kernel spans 3"},
    {"conv3d", "%x: f32[2, 3, 8, 8], %w: f32[4, 3, 3, 3]", "%y: f32[2] = conv3d(%x, %w, _)", "conv3d: x has 4 axes, not 5"},
    {"conv_transpose1d", "%x: f32[2, 3, 8], %w: f32[4, 3, 5]", "%y: f32[2] = conv_transpose1d(%x, %w, _)",
     "conv_transpose1d: axis 1 of x is 3, the first axis of w 4"},
    {"conv_transpose1d", "%x: f32[2, 4, 2], %w: f32[4, 3, 3], %b: f32[3]", "%y: f32[2] = conv_transpose1d(%x, %w, %b; groups: 2)",
     "conv_transpose1d: the axis of b is 3, the result's channels are 6"},
    {"conv_transpose1d", "%x: f32[2, 4, 2], %w: f32[4, 3, 3]", "%y: f32[2] = conv_transpose1d(%x, %w, _; padding: 2)",
     "conv_transpose1d: the padding cuts all away: the last axis of the result is 0"},
    {"append", "%k: f32[tokens, 3, 16], %v: f32[tokens, 2, 16], %at: Batch",
     "append \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)", "append: axis 1 of k is 3, the cache's heads are 2",
     "state cache: kv_cache[2, 16, 16]"},
    {"append", "%k: f32[tokens, 2, 16], %v: f32[tokens, 2, 16], %at: Batch",
     "append \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)", "append: the last axis of v is 16, of the cache 8",
     "state cache: kv_cache[2, 16, 8]"},
    {"append", "%k: f32[tokens, 5], %v: f32[tokens, 3], %at: Batch", "append \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)",
     "append: the last axis of v is 3, of the cache 2", "state cache: latent_cache[5, 2]"},
    {"append", "%k: f32[tokens, 1, 5], %v: f32[tokens, 2], %at: Batch", "append \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)",
     "append: k has 3 axes, not 2", "state cache: latent_cache[5, 2]"},
    {"append", "%k: f32[tokens, 5], %v: f32[tokens, 2], %at: Batch", "append \"cache\"(%k, %v, %at)\n%y: f32[] = literal(value: 0.0)",
     "append: the state cache is a Ring, not a KVCache", "state cache: ring[5, 2]"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 3, 4], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)",
     "attend_latent: the last axis of q_rope is 4, of the cache 2", "state cache: latent_cache[5, 2]"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 2, 2], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)",
     "attend_latent: axis 1 of q_nope is 3, of q_rope 2", "state cache: latent_cache[5, 2]"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 3, 2], %up: f32[21, 6], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)",
     "attend_latent: the last axis of up is 6, the cache's rank is 5", "state cache: latent_cache[5, 2]"},
    {"attend_latent", "%q: f32[tokens, 3, 7], %r: f32[tokens, 3, 2], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)",
     "attend_latent: the first axis of up is 21, not 3 heads of more than the 7 channels of q_nope", "state cache: latent_cache[5, 2]"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 3, 2], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)",
     "attend_latent: the state cache is a KVCache, not a LatentCache", "state cache: kv_cache[2, 16, 16]"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 3, 2], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent(%q, %r, %at, %up; mask: \"causal\", scale: 1.0)", "attend_latent: no state, a LatentCache, is named"},
    {"attend_latent", "%q: f32[tokens, 3, 4], %r: f32[tokens, 3, 2], %up: f32[21, 5], %at: Batch",
     "%y: f32[2] = attend_latent \"cache\"(%q, %r, %at, %up; mask: \"some\", scale: 1.0)",
     "attend_latent: mask is \"some\", wanted \"causal\" or \"full\"", "state cache: latent_cache[5, 2]"},
    {"causal_conv1d", "%x: f32[tokens, 3], %w: f32[3, 5], %at: Batch", "%y: f32[2] = causal_conv1d \"ring\"(%x, %w, _, %at)",
     "causal_conv1d: the last axis of w is 5, for a ring of 3 rows and the token itself it is 4", "state ring: ring[3, 3]"},
    {"causal_conv1d", "%x: f32[tokens, 3], %w: f32[3, 4], %at: Batch", "%y: f32[2] = causal_conv1d \"ring\"(%x, %w, _, %at)",
     "causal_conv1d: the state ring is [3, 2], wanted [3, 3]", "state ring: ring[3, 2]"},
    {"causal_conv1d", "%x: f32[tokens, 3], %w: f32[3, 4], %b: f32[4], %at: Batch", "%y: f32[2] = causal_conv1d \"ring\"(%x, %w, %b, %at)",
     "causal_conv1d: the axis of b is 4, the last axis of x 3", "state ring: ring[3, 3]"},
    {"causal_conv1d", "%x: f32[seq, 3], %w: f32[3, 4], %at: Batch", "%y: f32[2] = causal_conv1d \"ring\"(%x, %w, _, %at)",
     "causal_conv1d: the first axis of x is seq, wanted tokens", "state ring: ring[3, 3]"},
    {"ssd_scan",
     "%x: f32[tokens, 4, 3], %dt: f32[tokens, 4], %a: f32[4], %b: f32[tokens, 3, 5], %c: f32[tokens, 3, 5], %d: f32[4], "
     "%at: Batch",
     "%y: f32[2] = ssd_scan \"s\"(%x, %dt, %a, %b, %c, %d, %at)", "ssd_scan: x has 4 heads, not a multiple of the 3 of b",
     "state s: recurrent[4, 3, 5]"},
    {"ssd_scan",
     "%x: f32[tokens, 4, 3], %dt: f32[tokens, 4], %a: f32[4], %b: f32[tokens, 2, 5], %c: f32[tokens, 2, 6], %d: f32[4], "
     "%at: Batch",
     "%y: f32[2] = ssd_scan \"s\"(%x, %dt, %a, %b, %c, %d, %at)", "ssd_scan: the last axis of c is 6, of b 5",
     "state s: recurrent[4, 3, 5]"},
    {"ssd_scan",
     "%x: f32[tokens, 4, 3], %dt: f32[tokens, 3], %a: f32[4], %b: f32[tokens, 2, 5], %c: f32[tokens, 2, 5], %d: f32[4], "
     "%at: Batch",
     "%y: f32[2] = ssd_scan \"s\"(%x, %dt, %a, %b, %c, %d, %at)", "ssd_scan: the last axis of dt is 3, axis 1 of x 4",
     "state s: recurrent[4, 3, 5]"},
    {"ssd_scan",
     "%x: f32[tokens, 4, 3], %dt: f32[tokens, 4], %a: f32[4], %b: f32[tokens, 2, 5], %c: f32[tokens, 2, 5], %d: f32[4], "
     "%at: Batch",
     "%y: f32[2] = ssd_scan \"s\"(%x, %dt, %a, %b, %c, %d, %at)", "ssd_scan: the state s is [4, 5, 3], wanted [4, 3, 5]",
     "state s: recurrent[4, 5, 3]"},
    {"gated_delta",
     "%q: f32[tokens, 2, 4], %k: f32[tokens, 2, 4], %v: f32[tokens, 3, 5], %g: f32[tokens, 3], %b: f32[tokens, 3], %at: "
     "Batch",
     "%y: f32[2] = gated_delta \"s\"(%q, %k, %v, %g, %b, %at; scale: 1.0)", "gated_delta: v has 3 heads, not a multiple of the 2 of k",
     "state s: recurrent[3, 4, 5]"},
    {"gated_delta",
     "%q: f32[tokens, 2, 4], %k: f32[tokens, 2, 4], %v: f32[tokens, 4, 5], %g: f32[tokens, 4], %b: f32[tokens, 2], %at: "
     "Batch",
     "%y: f32[2] = gated_delta \"s\"(%q, %k, %v, %g, %b, %at; scale: 1.0)", "gated_delta: the last axis of beta is 2, axis 1 of v 4",
     "state s: recurrent[4, 4, 5]"},
    {"gated_delta",
     "%q: f32[tokens, 2, 4], %k: f32[tokens, 2, 4], %v: f32[tokens, 4, 5], %g: f32[tokens, 4], %b: f32[tokens, 4], %at: "
     "Batch",
     "%y: f32[2] = gated_delta \"s\"(%q, %k, %v, %g, %b, %at; scale: 1.0, normalize: 0.0)",
     "gated_delta: normalize is an eps, wanted more than 0", "state s: recurrent[4, 4, 5]"},
    {"gated_delta",
     "%q: f32[tokens, 2, 4], %k: f32[tokens, 2, 4], %v: f32[tokens, 4, 5], %g: f32[tokens, 4], %b: f32[tokens, 4], %at: "
     "Batch",
     "%y: f32[2] = gated_delta \"s\"(%q, %k, %v, %g, %b, %at; scale: 1.0)", "gated_delta: the state s is [2, 4, 5], wanted [4, 4, 5]",
     "state s: recurrent[2, 4, 5]"},
    {"einsum", "%a: f32[3, 4], %b: f32[5, 2]", "%y: f32[2] = einsum(%a, %b; formula: \"ij,jk->ik\")",
     "einsum: the first axis of xs[1] is 5, the last axis of xs[0] 4"},
    {"einsum", "%a: f32[3, 4], %b: f32[4]", "%y: f32[2] = einsum(%a, %b; formula: \"ij,jk->ik\")",
     "einsum: xs[1] is f32[4], in \"ij,jk->ik\" it is \"jk\""},
    {"einsum", "%a: f32[3, 4]", "%y: f32[2] = einsum(%a; formula: \"ij,jk->ik\")",
     "einsum: \"ij,jk->ik\" is of 2 operands, and there are 1"},
    {"einsum", "%a: f32[3, 4]", "%y: f32[2] = einsum(%a; formula: \"ij\")", "einsum: \"ij\" is no formula"},
    {"einsum", "%a: f32[3, 4]", "%y: f32[2] = einsum(%a; formula: \"ij->k\")", "einsum: \"ij->k\" is no formula"},
    {"einsum", "%a: f32[3, 4]", "%y: f32[2] = einsum(%a; formula: \"ij->ii\")", "einsum: \"ij->ii\" is no formula"},
    {"einsum", "%a: f32[3, 4]", "%y: f32[2] = einsum(%a; formula: \"...j->j\")", "is no formula as in \"ij,jk->ik\""},
    {"take_along", "%x: f32[3, 4], %i: index(5)[3, 2]", "%y: f32[2] = take_along(%x, %i)",
     "take_along: i is index(5)[3, 2], and there are only 4 rows"},
    {"take_along", "%x: f32[3, 4], %i: index(4)[2, 2]", "%y: f32[2] = take_along(%x, %i)", "take_along: the first axis of i is 2, of x 3"},
    {"rope", "%x: f32[tokens, 2, 6], %a: f32[tokens, 4]", "%y: f32[2] = rope(%x, %a; pairs: \"halves\")",
     "rope: angles turn 2 · 4 channels, the last axis of x is 6"},
    {"rope", "%x: f32[tokens, 2, 8], %a: f32[batch, 4]", "%y: f32[2] = rope(%x, %a; pairs: \"halves\")",
     "rope: the first axis of x is tokens, of angles batch"},
    {"rope", "%x: f32[tokens, 2, 8], %a: f32[tokens, 4]", "%y: f32[2] = rope(%x, %a; pairs: \"both\")",
     "rope: pairs is \"both\", wanted \"halves\" or \"adjacent\""},
    {"rope", "%x: f32[tokens, 2, 8], %a: f32[tokens, 4]", "%y: f32[2] = rope(%x, %a)", "rope: argument pairs is missing"},
    {"rms_norm", "%x: f32[tokens, 40], %w: f32[32]", "%y: f32[2] = rms_norm(%x, %w; eps: 1e-05)",
     "rms_norm: the last axis of x is 40, the axis of w 32"},
    {"rms_norm", "%x: f32[tokens, 40]", "%y: f32[2] = rms_norm(%x, _; eps: 1e-05, multiply: \"never\")", "rms_norm: multiply is \"never\""},
    {"layer_norm", "%x: f32[tokens, 40], %w: f32[40], %b: f32[1]", "%y: f32[2] = layer_norm(%x, %w, %b; eps: 1e-05)",
     "layer_norm: the last axis of x is 40, the axis of b 1"},
    {"l2_normalize", "%x: bool[4]", "%y: f32[2] = l2_normalize(%x)", "l2_normalize: x is bool[4], not of floats"},
    {"softmax", "%x: f32[2, 3]", "%y: f32[2] = softmax(%x, _; axis: 2)", "softmax: axis 2 does not exist, x has 2 axes"},
    {"sum", "%x: f32[2, 3, 4], %w: bool[2, 4]", "%y: f32[2] = sum(%x, %w; axis: 1)", "sum: the last axis of where is 4, axis 1 of x 3"},
    {"mean", "%x: i32[2, 3]", "%y: f32[2] = mean(%x, _)", "mean: x is i32[2, 3], not of floats"},
    {"max_reduce", "%x: f32[2, 3], %w: bool[2, 3]", "%y: f32[2] = max_reduce(%x, %w; axis: 0)", "max_reduce: where has 2 axes, not 1"},
    {"min_reduce", "%x: f32[]", "%y: f32[2] = min_reduce(%x, _)", "min_reduce: x has 0 axes, wanted at least 1"},
    {"argmax", "%x: bool[2]", "%y: f32[2] = argmax(%x, _)", "argmax: x is bool[2], not of numbers"},
    {"cumsum", "%x: f32[2], %w: f32[2]", "%y: f32[2] = cumsum(%x, %w)", "cumsum: where is f32[2], not of bools"},
    {"reshape", "%x: f32[tokens, 576]", "%y: f32[tokens, 9, 63] = reshape(%x)",
     "reshape: [tokens, 576] has 576 * tokens elements, [tokens, 9, 63] 567 * tokens"},
    {"reshape", "%x: f32[4611686018427387904, 4]", "%y: f32[4611686018427387904, 4] = reshape(%x)", "reshape: "},
    {"cast", "%x: f32[2]", "%y: f32[2] = cast(%x; dtype: \"f8_e4m3\")", "cast: dtype \"f8_e4m3\" is none that a value can have"},
    {"slice", "%x: f32[2, 7]", "%y: f32[2] = slice(%x; axis: 1, start: 3, stop: 8)",
     "slice: [3 .. 8] of the last axis of x, which is 7: ends beyond it"},
    {"slice", "%x: f32[2, 7]", "%y: f32[2] = slice(%x; axis: 1, start: -1)", "starts before 0"},
    {"slice", "%x: f32[2, 7]", "%y: f32[2] = slice(%x; axis: 1, start: 3, stop: 3)", "nothing is left"},
    {"slice", "%x: f32[2, 7]", "%y: f32[2] = slice(%x; axis: 1, start: 7, drop: true)", "ends beyond it"},
    {"slice", "%x: f32[2, 7]", "%y: f32[2] = slice(%x; axis: 1, start: 0, stop: 1, drop: true)", "takes start alone"},
    {"slice", "%x: f32[tokens, 7]", "%y: f32[2] = slice(%x; axis: 0, stop: \"tokens + 1\")", "ends beyond it"},
    {"slice", "%x: f32[tokens, 7]", "%y: f32[2] = slice(%x; axis: 0, stop: \"heads\")", "slice: stop is no dim: \"heads\""},
    {"slice", "%x: f32[tokens, 7]", "%y: f32[2] = slice(%x; axis: 1, step: 0)", "slice: step is 0, wanted at least 1"},
    {"concat", "%x: f32[2, 7], %w: f32[3, 7]", "%y: f32[2] = concat(%x, %w)", "concat: the first axis of xs[1] is 3, of xs[0] 2"},
    {"concat", "%x: f32[2, 7], %w: i32[2, 7]", "%y: f32[2] = concat(%x, %w)", "concat: xs[1] is i32[2, 7], xs[0] f32[2, 7]"},
    {"concat", "%x: f32[2, 7]", "%y: f32[2] = concat()", "concat: 0 operands, wanted 0 and more"},
    {"stack", "%x: f32[2, 7], %w: f32[2, 6]", "%y: f32[2] = stack(%x, %w)", "stack: the last axis of xs[1] is 6, of xs[0] 7"},
    {"stack", "%x: f32[2, 7]", "%y: f32[2] = stack(%x; axis: 3)", "stack: axis 3 does not exist, the result has 3 axes"},
    {"split", "%x: f32[2, 7]", "%y: f32[2, 3], %z: f32[2, 3] = split(%x; sizes: [3, 3])",
     "split: the last axis of x is 7, the sizes 3 + 3 add up to 6"},
    {"split", "%x: f32[2, 7]", "%y: f32[2, 3] = split(%x; sizes: [3, 4])", "1 results, wanted 2"},
    {"split", "%x: f32[2, 7]", "%y: f32[2, 7], %z: f32[2, 0] = split(%x; sizes: [7, 0])", "a size of 0"},
    {"transpose", "%x: f32[2, 7]", "%y: f32[2] = transpose(%x; a: 0, b: 2)", "transpose: axis 2 does not exist, x has 2 axes"},
    {"repeat_axis", "%x: f32[2, 7]", "%y: f32[2] = repeat_axis(%x; times: 0)", "repeat_axis: times is 0, wanted at least 1"},
    {"expand", "%x: f32[2, 1]", "%y: f32[3, 4] = expand(%x)",
     "expand: the first axis of x is 2, of the result 3; sizes must be equal, or literally 1"},
    {"expand", "%x: f32[2, 1]", "%y: f32[4] = expand(%x)", "expand: x has 2 axes, the result [4]"},
    {"pad", "%x: f32[2]", "%y: f32[2] = pad(%x; before: -1, after: 0)", "pad: before and after are not negative"},
    {"pad", "%x: i32[2]", "%y: i32[3] = pad(%x; before: 1, after: 0, value: 0.5)", "pad: value must be a whole number"},
    {"arange", "", "%y: f32[2] = arange(count: 0)", "arange: count is no dim of at least 1"},
    {"arange", "", "%y: f32[2] = arange(count: \"heads\")", "arange: count is no dim of at least 1"},
    {"nibbles", "%x: i32[4]", "%y: u8[8] = nibbles(%x)", "nibbles: x is i32[4], not of bytes (u8)"},
    {"nibbles", "%x: u8[]", "%y: u8[2] = nibbles(%x)", "nibbles: x has 0 axes, wanted at least 1"},
    {"nibbles", "%x: u8[4611686018427387904]", "%y: u8[2] = nibbles(%x)", "too large to be taken apart"},
    {"e2m1", "%x: f32[4]", "%y: f32[4] = e2m1(%x)", "e2m1: x is f32[4], not of bytes (u8)"},
    {"linspace", "", "%y: f32[2] = linspace(start: 0.0, stop: 1.0, count: 0)", "linspace: count is 0, wanted at least 1"},
    {"tensor_literal", "", "%y: f32[2] = tensor_literal(values: [1.0, 2.0], shape: [3])", "tensor_literal: 2 values do not fill the shape"},
    {"tensor_literal", "", "%y: f32[2] = tensor_literal(values: [1, 2])", "tensor_literal: values must be a list of floats"},
    {"one_hot", "%i: index(6)[2]", "%y: f32[2] = one_hot(%i; count: 5)", "one_hot: i is index(6)[2], and there are only 5 rows"},
    {"where", "%c: f32[2], %a: f32[2], %b: f32[2]", "%y: f32[2] = where(%c, %a, %b)", "where: c is f32[2], not of bools"},
    {"where", "%c: bool[2], %a: f32[2], %b: f32[3]", "%y: f32[2] = where(%c, %a, %b)",
     "where: the axis of c is 2, of b 3; sizes must be equal, or literally 1"},
    {"top_k", "%x: f32[tokens]", "%y: f32[2], %z: index(tokens)[2] = top_k(%x; k: 2)",
     "top_k: the last axis of x is tokens, wanted one known at compile time"},
    {"top_k", "%x: f32[3]", "%y: f32[4], %z: index(3)[4] = top_k(%x; k: 4)", "top_k: k is 4, the last axis of x 3"},
    {"add", "%a: f32[tokens, 40], %b: f32[32]", "%y: f32[2] = add(%a, %b)",
     "add: the last axis of a is 40, of b 32; sizes must be equal, or literally 1"},
    {"add", "%a: f32[tokens, 40], %b: f32[batch, 40]", "%y: f32[2] = add(%a, %b)", "add: the first axis of a is tokens, of b batch"},
    {"sub", "%a: f32[2], %b: bool[2]", "%y: f32[2] = sub(%a, %b)", "sub: b is bool[2], not of numbers; write `as f32`"},
    {"mul", "%a: i32[2], %b: i64[2]", "%y: f32[2] = mul(%a, %b)", "mul: a is i32[2] and b i64[2]: write `as`"},
    {"div", "%a: i32[2], %b: i32[2]", "%y: f32[2] = div(%a, %b)", "div: both operands are integers; write `as f32`"},
    {"pow", "%a: i32[2], %b: i32[2]", "%y: f32[2] = pow(%a, %b)", "pow: both operands are integers"},
    {"min", "%a: f32[2], %b: Batch", "%y: f32[2] = min(%a, %b)", "min: b is a Batch, not a tensor"},
    {"max", "%a: f32[2], %b: f32[3]", "%y: f32[2] = max(%a, %b)", "max: the axis of a is 2, of b 3"},
    {"mod", "%a: f32[2], %b: f32[3]", "%y: f32[2] = mod(%a, %b)", "mod: the axis of a is 2, of b 3"},
    {"less", "%a: bool[2], %b: bool[2]", "%y: bool[2] = less(%a, %b)", "less: a is bool[2], not of numbers"},
    {"less_equal", "%a: f32[2], %b: f32[3]", "%y: bool[2] = less_equal(%a, %b)", "less_equal: the axis of a is 2, of b 3"},
    {"greater", "%a: f32[2], %b: f32[3]", "%y: bool[2] = greater(%a, %b)", "greater: the axis of a is 2, of b 3"},
    {"greater_equal", "%a: f32[2], %b: f32[3]", "%y: bool[2] = greater_equal(%a, %b)", "greater_equal: the axis of a is 2, of b 3"},
    {"equal", "%a: f32[2], %b: bool[2]", "%y: bool[2] = equal(%a, %b)", "equal: a is f32[2] and b bool[2]: write `as`"},
    {"not_equal", "%a: f32[2], %b: f32[3]", "%y: bool[2] = not_equal(%a, %b)", "not_equal: the axis of a is 2, of b 3"},
    {"logical_and", "%a: bool[2], %b: f32[2]", "%y: bool[2] = logical_and(%a, %b)", "logical_and: b is f32[2], not of bools"},
    {"logical_or", "%a: i32[2], %b: bool[2]", "%y: bool[2] = logical_or(%a, %b)", "logical_or: a is i32[2], not of bools"},
    {"logical_not", "%a: f32[2]", "%y: bool[2] = logical_not(%a)", "logical_not: x is f32[2], not of bools"},
};

bool contains(const std::string& s, std::string_view part) { return s.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("every operation has its row, in the order of the kinds") {
  std::set<std::string_view> names;
  for (int k = 0; k <= static_cast<int>(OpKind::custom); ++k) {
    const OpInfo& row = info(static_cast<OpKind>(k));
    INFO(std::string(row.name));
    CHECK(row.kind == static_cast<OpKind>(k));
    CHECK_FALSE(row.name.empty());
    CHECK_FALSE(row.doc.empty());
    CHECK_FALSE(row.shapes.empty());
    CHECK(names.insert(row.name).second);
    std::set<std::string_view> operands;
    for (const OperandSpec& o : row.operands) CHECK(operands.insert(o.name).second);
    for (const AttrSpec& a : row.attrs) CHECK_FALSE(a.name.empty());
    if (!is_structure(row.kind)) CHECK(find_op(row.name) == &row);
    if (is_structure(row.kind)) CHECK_FALSE(carried_out(row));
  }
  CHECK(find_op("lineer") == nullptr);
  CHECK(find_op("weight") == nullptr);
  CHECK(op_table().size() == static_cast<std::size_t>(OpKind::custom) - static_cast<std::size_t>(OpKind::literal));
}

TEST_CASE("shape rules refuse with operand, axis and both dims") {
  for (const Refused& r : refused) {
    const std::string faults = faults_of(module_text(r.inputs, std::string(r.text) + "\nreturn %y", r.members));
    CAPTURE(r.text);
    CAPTURE(r.message);
    INFO(faults);
    CHECK(contains(faults, r.message));
  }
}

TEST_CASE("every shape rule has something that it refuses") {
  std::set<std::string_view> covered;
  for (const Refused& r : refused) covered.insert(r.op);
  for (const OpInfo& row : op_table()) {
    if (!carried_out(row) || (row.elementwise && row.operands.size() == 1 && row.kind != OpKind::logical_not)) continue;
    INFO(std::string(row.name));
    CHECK(covered.contains(row.name));
  }
  // Those of one operand share two rules.
  for (const OpInfo& row : op_table()) {
    if (!row.elementwise || row.operands.size() != 1 || row.kind == OpKind::logical_not) continue;
    const std::string name(row.name);
    const std::string faults = faults_of(module_text("%x: bool[2]", "%y: bool[2] = " + name + "(%x)\nreturn %y"));
    INFO(faults);
    CHECK(contains(faults, name + ": x is bool[2], not of "));
  }
}

TEST_CASE("every computation has a rule and a reference; a custom operation has its body instead") {
  for (const OpInfo& row : op_table()) {
    CAPTURE(std::string(row.name));
    CHECK(carried_out(row) == (row.kind != OpKind::custom));
    CHECK((eval::reference_of(row.kind) != nullptr) == (row.kind != OpKind::custom));
  }
}

TEST_CASE("a shape error names operand and axis for the caller") {
  DimTable dims;
  Op op;
  op.kind = OpKind::linear;
  const std::vector<std::optional<Type>> types = {tensor(DType::f32, {dims.constant(2), dims.constant(40)}),
                                                  tensor(DType::f32, {dims.constant(64), dims.constant(32)}), std::nullopt};
  const ShapeResult r = infer(ShapeQuery{op, types, dims});
  REQUIRE(std::holds_alternative<ShapeError>(r));
  CHECK(std::get<ShapeError>(r).operand == 0);
  CHECK(std::get<ShapeError>(r).axis == 1);
  const ShapeResult few = infer(ShapeQuery{op, {}, dims});
  CHECK(std::get<ShapeError>(few).message == "linear: 0 operands, wanted 3");
}

TEST_CASE("dtypes of elementwise operations") {
  DimTable dims;
  const DimId two = dims.constant(2);
  auto of = [&](DType a, std::vector<DimId> sa, DType b, std::vector<DimId> sb) { return promoted(tensor(a, sa), tensor(b, sb)); };
  CHECK(of(DType::f32, {two}, DType::bf16, {two}) == DType::f32);
  CHECK(of(DType::f16, {two}, DType::bf16, {two}) == DType::f32);
  CHECK(of(DType::bf16, {two}, DType::f32, {}) == DType::bf16);       // x * 0.5 keeps x's dtype
  CHECK(of(DType::f32, {}, DType::i32, {two}) == DType::f32);
  CHECK(of(DType::i32, {two}, DType::bf16, {two}) == DType::bf16);
  CHECK(of(DType::boolean, {two}, DType::boolean, {two}) == DType::boolean);
  CHECK_FALSE(of(DType::boolean, {two}, DType::f32, {}).has_value());
  CHECK_FALSE(of(DType::i32, {two}, DType::u8, {two}).has_value());
}

TEST_CASE("types of a batch's fields") {
  DimTable dims;
  CHECK_FALSE(batch_field_type("positions", dims, 64).has_value());
  add_prelude_axes(dims);
  CHECK(text(*batch_field_type("positions", dims, 64), dims) == "index(64)[tokens]");
  CHECK(text(*batch_field_type("positions", dims, std::nullopt), dims) == "i32[tokens]");
  CHECK(text(*batch_field_type("lengths", dims, 64), dims) == "i32[tokens]");
  CHECK(text(*batch_field_type("sequence", dims, 64), dims) == "index(batch)[tokens]");
  CHECK(text(*batch_field_type("outputs", dims, 64), dims) == "index(tokens)[outputs]");
  CHECK(text(*batch_field_type("last", dims, 64), dims) == "index(tokens)[batch]");
  CHECK_FALSE(batch_field_type("length", dims, 64).has_value());
}

}  // namespace modelc::graph::test
