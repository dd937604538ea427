#include "frontend/graph/verify_moves.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "frontend/graph/members.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/printer.h"

namespace modelc::graph {

namespace {

using Paths = std::set<std::string>;                                           // of states, from the class at hand

class Moves {
 public:
  Moves(const Module& m, std::vector<std::string>& faults) : m_(m), faults_(faults) {}

  // Classes stand after those that they contain, so that what a call moves is known before it is read.
  void run() {
    for (std::uint32_t i = 0; i < m_.classes.size(); ++i)
      for (const Function& f : m_.classes[i].functions) {
        if (f.kind == FunctionKind::init) continue;
        owner_ = ClassId{i};
        f_ = &f;
        known_[{i, f.name}] = block(f.body, owner_);
        if (full_) return;
      }
  }

 private:
  void fault(const Op& op, const std::string& what) {
    faults_.push_back(m_.of(owner_).name + "." + f_->name + ": `" + print_op(m_, *f_, op) + "`: " + what);
  }

  static bool moves(const Op& op, StateKind kind) {
    if (kind == StateKind::ring || kind == StateKind::recurrent) return true;
    return op.kind == OpKind::append;
  }

  void add(Paths& all, std::string path, const Op& op) {
    if (full_) return;
    if (++total_ > max_moved_states) {
      full_ = true;
      return fault(op, "moves on more than " + std::to_string(max_moved_states) + " states");
    }
    const auto [at, first] = all.insert(std::move(path));
    if (!first && said_.insert(&op).second) fault(op, "the state \"" + *at + "\" goes over the same tokens twice");
  }

  // Paths of a loop's element begin with a dot.
  Paths block(const Block& b, ClassId element) {
    Paths all;
    for (const Op& op : b.ops) {
      if (full_) break;
      const bool of_element = op.member.empty() || op.member.front() == '.';
      const ClassId from = of_element ? element : owner_;
      const std::string_view path = std::string_view(op.member).substr(of_element && !op.member.empty() ? 1 : 0);
      if (op.kind != OpKind::call && op.kind != OpKind::repeat && (op.member.empty() || !info(op.kind).has_state)) continue;
      const auto ref = find_member(m_, from, path);
      if (!ref) continue;
      if (op.kind == OpKind::repeat) {
        const ChildDecl* list = list_of(m_, *ref);
        if (list == nullptr || !op.body) continue;
        std::map<std::uint32_t, Paths> inside;                                 // by class of the element
        for (std::size_t i = 0; i < list->elements.size() && !full_; ++i) {
          const ClassId e = list->elements[i];
          auto found = inside.find(e.index);
          if (found == inside.end()) found = inside.emplace(e.index, block(*op.body, e)).first;
          for (const std::string& p : found->second) add(all, p.starts_with('.') ? op.member + "." + std::to_string(i) + p : p, op);
        }
      } else if (op.kind == OpKind::call) {
        const auto callee = known_.find({ref->owner.index, op.callee});
        if (callee == known_.end()) continue;
        for (const std::string& p : callee->second) add(all, op.member + "." + p, op);
      } else if (const StateDecl* state = state_of(m_, *ref); state != nullptr && moves(op, state->kind)) {
        add(all, op.member, op);
      }
    }
    return all;
  }

  const Module& m_;
  std::vector<std::string>& faults_;
  ClassId owner_;
  const Function* f_ = nullptr;
  std::map<std::pair<std::uint32_t, std::string>, Paths> known_;
  std::set<const Op*> said_;
  std::int64_t total_ = 0;
  bool full_ = false;
};

}  // namespace

void verify_moves(const Module& module, std::vector<std::string>& faults) { Moves(module, faults).run(); }

}  // namespace modelc::graph
