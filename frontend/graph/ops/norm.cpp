// Norms over the last axis.
#include "frontend/graph/ops/rules.h"

namespace modelc::graph::rules {

namespace {

// x, and vectors along its last axis.
ShapeResult norm(Rule& r, std::initializer_list<int> vectors) {
  r.floats(0);
  r.rank_at_least(0, 1);
  for (int i : vectors) {
    if (!r.has(i)) continue;
    r.floats(i);
    r.rank_is(i, 1);
    r.same(0, -1, i, 0);
  }
  return r.result(tensor(r.type(0).dtype, r.type(0).shape));
}

}  // namespace

ShapeResult rms_norm(const ShapeQuery& q) {
  Rule r(q);
  r.one_of("multiply", {"after_cast", "before_cast"});
  return norm(r, {1});
}

ShapeResult layer_norm(const ShapeQuery& q) {
  Rule r(q);
  return norm(r, {1, 2});
}

ShapeResult l2_normalize(const ShapeQuery& q) {
  Rule r(q);
  return norm(r, {});
}

}  // namespace modelc::graph::rules
