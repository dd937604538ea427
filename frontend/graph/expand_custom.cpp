#include "frontend/graph/expand_custom.h"

#include <algorithm>
#include <numeric>

#include "frontend/graph/ops.h"

namespace modelc::graph {

namespace {

class Expander {
 public:
  Expander(Function& f, const std::function<bool(const Custom&)>& stays) : f_(f), stays_(stays), now_(f.values.size()) {}
  void run() {
    std::iota(now_.begin(), now_.end(), 0U);
    block(f_.body);
    renumber();
  }

 private:
  void rename(ValueId& v) const { v.index = now_[v.index]; }

  void block(Block& b) {
    std::vector<Op> ops;
    for (Op& op : b.ops) one(std::move(op), ops);
    b.ops = std::move(ops);
    for (ValueId& v : b.results) rename(v);
  }

  void one(Op op, std::vector<Op>& to) {
    for (auto& v : op.operands)
      if (v) rename(*v);
    if (op.kind != OpKind::custom || (stays_ && stays_(*op.custom))) {
      if (op.body) block(*op.body);
      to.push_back(std::move(op));
      return;
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) now_[op.body->arguments[i].index] = op.operands[i]->index;
    std::vector<std::uint32_t> made;
    for (Op& inner : op.body->ops) {
      for (const ValueId v : inner.results) made.push_back(v.index);
      if (inner.call.line == 0) inner.call = op.call.line != 0 ? op.call : op.where;
      one(std::move(inner), to);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      ValueId given = op.body->results[i];
      rename(given);
      Value& value = f_.values[given.index];
      const Value& wanted = f_.values[op.results[i].index];
      const bool named = !wanted.name.empty() || !wanted.stage.empty();
      const bool own = std::find(made.begin(), made.end(), given.index) != made.end() && value.name.empty() && value.stage.empty();
      if (!named || own) {
        if (named) value.name = wanted.name, value.stage = wanted.stage;
        now_[op.results[i].index] = given.index;
        continue;
      }
      // A name for what has one already, or is an operand: the same numbers under it.
      Op same;
      same.kind = OpKind::reshape;
      same.operands = {given};
      same.results = {op.results[i]};
      same.source = op.source, same.where = op.where, same.call = op.call;
      to.push_back(std::move(same));
    }
  }

  // Values that nothing defines any more go.
  void renumber() {
    std::vector<Value> kept;
    const auto keep = [&](ValueId& v) {
      now_[v.index] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(std::move(f_.values[v.index]));
      rename(v);
    };
    const auto walk = [&](const auto& self, Block& b) -> void {
      for (ValueId& v : b.arguments) keep(v);
      for (Op& op : b.ops) {
        for (auto& v : op.operands)
          if (v) rename(*v);
        if (op.body) self(self, *op.body);
        for (ValueId& v : op.results) keep(v);
      }
      for (ValueId& v : b.results) rename(v);
    };
    for (Parameter& p : f_.inputs) keep(p.value);
    walk(walk, f_.body);
    f_.values = std::move(kept);
  }

  Function& f_;
  const std::function<bool(const Custom&)>& stays_;
  std::vector<std::uint32_t> now_;               // the value that stands for each
};

bool has_custom(const Block& b) {
  return std::any_of(b.ops.begin(), b.ops.end(),
                     [](const Op& op) { return op.kind == OpKind::custom || (op.body && has_custom(*op.body)); });
}

}  // namespace

bool has_custom(const Module& module) {
  for (const Class& c : module.classes)
    for (const Function& f : c.functions)
      if (has_custom(f.body)) return true;
  return false;
}

void expand_custom(Module& module, const std::function<bool(const Custom&)>& stays) {
  for (Class& c : module.classes)
    for (Function& f : c.functions)
      if (has_custom(f.body)) Expander(f, stays).run();
}

}  // namespace modelc::graph
