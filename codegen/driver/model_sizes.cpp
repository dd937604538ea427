#include "codegen/driver/model_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/driver/reference.h"
#include "frontend/graph/members.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/place_lines.h"
#include "runtime/generate/generator.h"

namespace modelc::driver {

namespace code = diag::code;

namespace {

constexpr std::int64_t usual_context = 4096;               // of a model that says a longer one, or none

WeightRole role_of(graph::WeightRole role) {
  switch (role) {
    case graph::WeightRole::matrix: return WeightRole::matrix;
    case graph::WeightRole::table: return WeightRole::table;
    case graph::WeightRole::vector: break;
  }
  return WeightRole::vector;
}

StateSlot::Kind kind_of(graph::StateKind kind) {
  switch (kind) {
    case graph::StateKind::latent_cache: return StateSlot::Kind::latent_cache;
    case graph::StateKind::cross_cache: return StateSlot::Kind::cross_cache;
    case graph::StateKind::ring: return StateSlot::Kind::ring;
    case graph::StateKind::recurrent: return StateSlot::Kind::recurrent;
    case graph::StateKind::kv_cache: break;
  }
  return StateSlot::Kind::kv_cache;
}

// States of all instances, and the lists that are in no other.
struct Members {
  struct State {
    std::string name;
    const graph::StateDecl* decl;
  };
  std::vector<State> states;
  std::vector<ModelList> lists;

  void collect(const graph::Module& m, graph::ClassId id, const std::string& path, bool in_list) {
    const graph::Class& c = m.of(id);
    for (const graph::StateDecl& s : c.states) states.push_back({graph::join_path(path, s.name), &s});
    for (const graph::ChildDecl& child : c.children) {
      const std::string below = graph::join_path(path, child.path);
      if (child.list && !in_list && !below.empty()) lists.push_back({below, static_cast<std::int64_t>(child.elements.size())});
      for (std::size_t e = 0; e < child.elements.size(); ++e)
        collect(m, child.elements[e], child.list ? graph::join_path(below, std::to_string(e)) : below, in_list || child.list);
    }
  }
};

// Which element of the list a name is in.
class ElementOf {
 public:
  explicit ElementOf(const ModelList& list) : rule_{{{list.name, 0, list.elements, "cpu"}}}, lines_(rule_) {}
  std::optional<std::int64_t> operator()(const std::string& name) const {
    const auto e = lines_.element(0, name);
    return e ? std::optional(static_cast<std::int64_t>(*e)) : std::nullopt;
  }

 private:
  std::array<PlaceRule, 1> rule_;
  PlaceLines lines_;
};

}  // namespace

std::optional<ModelSizes> ModelSizes::of(Session& s, std::optional<std::int64_t> context) {
  if (!load_model(s, s.options.files[0])) return std::nullopt;
  ModelSizes m;
  m.checkpoint_ = open_checkpoint_of(s);
  if (!m.checkpoint_) return std::nullopt;
  const auto config = config_of(s, m.checkpoint_.get());
  if (s.sink.has_errors()) return std::nullopt;
  if (!config) {
    s.sink.error(code::config_not_given, s.options.checkpoint.front(), "the checkpoint has no config.json, and --config is not given")
        .help("--config config.json");
    return std::nullopt;
  }
  const auto program = analyze_model(s, &*config);
  if (!program) return std::nullopt;
  m.graph_ = program->graph;
  if (context && m.graph_.context && *context > *m.graph_.context) {
    s.sink.error(code::bad_option, "-c", fmt::format("-c {}: the model's context is {} positions", *context, grouped(*m.graph_.context)));
    return std::nullopt;
  }
  m.context_ = context ? *context : std::min(m.graph_.context.value_or(usual_context), usual_context);
  m.mapping_ = map_weights_of(s, m.graph_, *m.checkpoint_);
  if (report_mapping(s, m.mapping_)) return std::nullopt;
  const auto plan = plan_model(s, *program);
  if (!plan || !m.find_activations(s, *plan)) return std::nullopt;
  m.find_members();
  return m;
}

void ModelSizes::find_members() {
  weights_ = mapping_weights(graph_);
  const std::vector<graph::WeightInstance> instances = graph::weight_instances(graph_);
  for (const graph::WeightInstance& w : instances) roles_.push_back(role_of(w.decl->role));
  Members members;
  members.collect(graph_, graph_.root, "", false);
  std::int64_t most = -1;
  for (const ModelList& list : members.lists) {
    const ElementOf element(list);
    std::int64_t n = 0;
    for (const MappingWeight& w : weights_)
      if (element(w.name)) n += element_count(w.shape).value_or(0);
    if (n <= most) continue;
    most = n;
    list_ = list;
  }
  const std::optional<ElementOf> element = list_.name.empty() ? std::nullopt : std::optional<ElementOf>(list_);
  for (const MappingWeight& w : weights_) where_.push_back({element ? (*element)(w.name) : std::nullopt});
  const DType kept = fast_precision(graph_).cache;
  for (const Members::State& s : members.states) {
    State state;
    state.name = s.name;
    state.element = element ? (*element)(s.name) : std::nullopt;
    state.slot.kind = kind_of(s.decl->kind);
    state.slot.kept = kept;
    state.slot.window = s.decl->window.value_or(0);
    std::copy_n(s.decl->sizes.begin(), std::min(s.decl->sizes.size(), state.slot.sizes.size()), state.slot.sizes.begin());
    states_.push_back(std::move(state));
  }
}

// The arena, one copy of what is computed once a step, inputs and outputs; for a chunk of a prompt whose last token has an output.
bool ModelSizes::find_activations(Session& s, const plan::Program& plan) {
  tokens_ = std::min<std::int64_t>(GenerateOptions{}.chunk, context_);
  const graph::DimTable& dims = *plan.dims;
  std::vector<std::int64_t> sizes;
  for (const graph::Axis& axis : dims.axes()) {
    const bool one = axis.name == "outputs" || axis.name == "batch", many = axis.name == "tokens" || axis.name == "seq";
    // An axis of the model's own: as long as it may be, or as the prompt.
    const std::int64_t size = one ? 1 : many ? tokens_ : axis.hi.value_or(std::max(tokens_, axis.lo));
    sizes.push_back(std::max(axis.lo, size / axis.by * axis.by));
  }
  std::optional<std::int64_t> total = 0;
  const auto add = [&](graph::DimId d) {
    const auto n = dims.evaluate(d, sizes);
    std::int64_t to = 0;
    total = total && n && !__builtin_add_overflow(*total, *n, &to) ? std::optional(to) : std::nullopt;
  };
  add(plan.peak_bytes);
  arena_ = total.value_or(0);
  add(plan.step_value_bytes);
  const plan::Class& root = plan.classes[plan.graph->root.index];
  for (const plan::Function& f : root.functions)
    if (f.kind == graph::FunctionKind::forward)
      for (const plan::Buffer& b : f.buffers)
        if (b.kind != plan::BufferKind::frame) add(b.bytes);
  if (total) activations_ = *total;
  else s.sink.error(code::bad_option, "-c", fmt::format("the activations for {} tokens pass 64 bits", grouped(tokens_)));
  return total.has_value();
}

Result<HeldModel> ModelSizes::on(const Device& device, bool fast) const {
  HeldModel out;
  out.activations = activations_;
  if (arena_ > device.largest_buffer())
    return Error{"tensor-size",
                 fmt::format("activations of {} for {}, and a piece of memory has at most {}",
                             human_bytes(static_cast<std::uint64_t>(arena_)), counted(static_cast<std::uint64_t>(tokens_), "token"),
                             human_bytes(static_cast<std::uint64_t>(device.largest_buffer()))),
                 {},
                 {}};
  const auto part_of = [](Held& h, const Placed& p) {
    if (!p.element) h.rest = true;
    else if (h.elements.empty() || h.elements.back() != *p.element) h.elements.push_back(*p.element);
  };
  for (const HeldPiece& piece : held_pieces(*checkpoint_, mapping_, weights_, roles_, device)) {
    Held h{piece.bytes};
    for (const std::size_t w : piece.weights) part_of(h, where_[w]);
    std::sort(h.elements.begin(), h.elements.end());
    out.weights.push_back(std::move(h));
  }
  for (const State& s : states_) {
    StateSlot slot = s.slot;
    if (fast && slot.narrows()) slot.dtype = slot.kept;
    const auto bytes = device.state_bytes(slot, context_, 1);
    if (!bytes) {
      Error e = bytes.error();
      e.notes.push_back("for " + s.name);
      return e;
    }
    Held h{*bytes};
    part_of(h, s);
    out.caches.push_back(std::move(h));
  }
  return out;
}

}  // namespace modelc::driver
