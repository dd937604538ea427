// Module::to: modules of a loaded model go to another device. Their weights are loaded again there, the way they were the first time;
// those of others stay where they lie. Then everything is bound anew.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/device/binder.h"
#include "runtime/device/model_impl.h"

namespace modelc {
namespace {

// Every buffer that a weight's elements lie in.
template <class F> void each_buffer(Weight& w, F&& f) {
  if (w.tensor) f(w.tensor.buffer);
  for (RowBlock& b : w.matrix.blocks) {
    f(b.data.buffer);
    if (b.bias) f(b.bias.buffer);
  }
}

// What a move changes of the tree, to be put back when it fails.
class Snapshot {
 public:
  explicit Snapshot(const ModuleTree& tree) : tree_(tree) {
    for (const NamedParameter& p : tree.weights()) weights_.push_back(*p.weight);
    for (const Module* m : tree.bottom_up()) members_.push_back(m->member());
  }
  const Weight& weight(std::size_t i) const { return weights_[i]; }
  void restore() const {
    for (std::size_t i = 0; i < weights_.size(); ++i) *tree_.weights()[i].weight = weights_[i];
    for (std::size_t i = 0; i < members_.size(); ++i) tree_.bottom_up()[i]->set_member(members_[i]);
    for (const ModuleTree::NamedState& s : tree_.states()) s.slot->member = s.of->member();
  }

 private:
  const ModuleTree& tree_;
  std::vector<Weight> weights_;
  std::vector<int> members_;
};

// The lines that say where modules are once this one is on `device`.
std::vector<PlaceRule> moved(const std::vector<PlaceRule>& rules, const std::string& module, const std::string& device) {
  std::vector<PlaceRule> out = {{module.empty() ? "**" : module, {}, {}, device, {}}};
  if (module.empty()) return out;                          // it is all of them
  // What was said of it or of modules below it is said no more.
  for (const PlaceRule& r : rules)
    if (r.first || r.end || (r.pattern != module && !r.pattern.starts_with(module + "."))) out.push_back(r);
  return out;
}

}  // namespace

Status Module::to(const std::string& device) {
  if (model_ == nullptr) return Error{"placement", std::string(type_name()) + " is moved before it is loaded", {}, "load the model first"};
  return model_->move(*this, device);
}

Status Model::move(Module& module, const std::string& device) {
  const std::lock_guard guard(*impl_->lock);
  const std::string what = module.qualified_name().empty() ? std::string(name()) : module.qualified_name();
  if (impl_->running)
    return Error{"re-entry", what + " is moved by a hook of a call of the model", {}, "move it when the call has returned"};
  Residence& old = *impl_->here;
  if (old.placed.set == nullptr && old.placed.name.empty())
    return Error{"placement", what + " is moved while it is measured", {}, "load it without LoadOptions::around"};

  const ModuleTree tree(*this);
  ModelDevices placed;
  placed.rest = old.placed.rest;
  placed.rules = moved(old.placed.rules, module.qualified_name(), device);
  auto placement = decide_placement(tree, placed.rules, placed.rest);
  if (!placement) return std::move(placement.error());
  if (old.placed.set == nullptr && placement->devices == std::vector{old.placed.name}) return {};

  // The devices: those that are there, and the new one.
  const auto known = [&](const std::string& called) -> std::shared_ptr<Device> {
    if (old.placed.set != nullptr) {
      const int i = old.placed.set->find(called);
      return i < 0 ? nullptr : old.placed.set->list()[static_cast<std::size_t>(i)].device;
    }
    return called == old.placed.name ? old.placed.device : nullptr;
  };
  std::vector<DeviceSet::Member> members;                  // by the placement's numbers
  for (const std::string& called : placement->devices) {
    std::shared_ptr<Device> one = known(called);
    if (one == nullptr) {
      auto opened = device_called(called, impl_->source.options);
      if (!opened) return std::move(opened.error());
      one = std::move(*opened);
    }
    if (old.mode == Mode::fast && !one->has_fast_mode())
      return Error{"mode", "mode fast is not carried out on " + one->description(), {}, "load the model in mode exact"};
    members.push_back({called, std::move(one)});
  }
  std::vector<int> numbers;                                // of the set's members
  const bool joins = old.placed.set == nullptr && members.size() > 1;      // one device becomes a set
  if (old.placed.set == nullptr && members.size() == 1) {
    placed.name = members[0].name;
    placed.device = members[0].device;
    numbers = {0};
  } else {
    placed.set = old.placed.set;
    if (joins) placed.set = std::make_shared<DeviceSet>(std::vector<DeviceSet::Member>{{old.placed.name, old.placed.device}});
    for (DeviceSet::Member& m : members) {
      const int there = placed.set->find(m.name);
      if (there < 0 && placed.set->members() == Whereabouts::max_members)
        return Error{"placement", "the model is on " + std::to_string(Whereabouts::max_members) + " devices already", {}, {}};
      numbers.push_back(there >= 0 ? there : placed.set->add(std::move(m)));
    }
    placed.device = placed.set;
  }

  const Snapshot before(tree);
  set_members(tree, *placement, numbers);
  auto here = std::make_unique<Residence>(std::move(placed), old.mode);
  // Weights that stay keep their buffers, which become the set's where there was none.
  std::map<const Buffer*, const Buffer*> kept;
  std::vector<bool> loads;
  for (std::size_t i = 0; i < tree.weights().size(); ++i) {
    Weight& w = *tree.weights()[i].weight;
    const bool stays = here->placed.set != nullptr && w.member == before.weight(i).member;
    loads.push_back(!stays);
    if (!stays) {
      w.tensor = {};
      w.matrix = {};
      continue;
    }
    each_buffer(w, [&](const Buffer*& b) {
      const auto [at, fresh] = kept.emplace(b, b);
      if (fresh && joins) at->second = here->placed.set->adopt(0, b);
      if (const auto file = old.file_of.find(b); fresh && file != old.file_of.end()) here->lies_in(at->second, file->second);
      b = at->second;
    });
  }
  LoadReport report;
  if (Status s = fill(*here, name(), tree, impl_->source, &loads, report); !s) {
    const std::shared_ptr<DeviceSet> set = here->placed.set;
    here.reset();
    if (joins)
      for (const auto& [own, of_set] : kept) set->release(of_set);
    before.restore();
    try {
      ModelBinder binder(old);
      for (Module* m : tree.bottom_up()) binder.bind(*m);
      old.device->enter(0);
    } catch (StepFailure& f) { s.error().notes.push_back("and the model cannot be used any more: " + f.error.message); }
    s.error().notes.insert(s.error().notes.begin(), what + " stays where it was: it was to go to " + device);
    return s;
  }
  for (const auto& [own, of_set] : kept) {
    std::erase(old.buffers, own);
    here->buffers.push_back(of_set);
  }
  device_ = here->device;
  impl_->here = std::move(here);                           // what the others had is freed
  ++impl_->moves;
  return {};
}

}  // namespace modelc
