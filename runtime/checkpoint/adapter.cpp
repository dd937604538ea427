#include "runtime/checkpoint/adapter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/mapping_names.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/open.h"
#include "runtime/encoding/decode.h"

namespace modelc {
namespace {

constexpr std::string_view model_prefix = "base_model.model.";
constexpr std::size_t max_config_bytes = 16u << 20;

// Which part of an adapter a tensor is, by its name.
struct Part {
  enum class Kind : std::uint8_t { a, b, embedding_a, embedding_b, whole } kind = Kind::whole;
  std::string module;                                      // of the pair; of `whole`: the tensor of the base
};

bool cut_end(std::string& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.resize(name.size() - end.size());
  return true;
}

std::optional<Part> part_of(std::string_view tensor, std::string& why) {
  if (!tensor.starts_with(model_prefix)) {
    why = "its name does not begin with " + quote(model_prefix);
    return std::nullopt;
  }
  Part p;
  p.module = tensor.substr(model_prefix.size());
  using Kind = Part::Kind;
  if (cut_end(p.module, ".lora_A.weight")) p.kind = Kind::a;
  else if (cut_end(p.module, ".lora_B.weight")) p.kind = Kind::b;
  else if (cut_end(p.module, ".lora_embedding_A")) p.kind = Kind::embedding_a;
  else if (cut_end(p.module, ".lora_embedding_B")) p.kind = Kind::embedding_b;
  if (p.module.find("lora_") != std::string::npos) {
    why = "this part of an adapter is not carried out; lora_A.weight, lora_B.weight, lora_embedding_A and lora_embedding_B are";
    return std::nullopt;
  }
  // Wrappers that stand between a module and what it holds.
  for (std::string_view between : {".base_layer", ".modules_to_save"})
    if (const std::size_t at = p.module.find(between); at != std::string::npos) p.module.erase(at, between.size());
  return p;
}

// The plan without what is no matter of place: a sum's parts are added as they are.
Result<std::shared_ptr<const TransformPlan>> moves_of(const TransformPlan& plan) {
  std::vector<Transform> steps;
  for (const Transform& t : plan.steps)
    if (!computes(t.kind) && t.kind != TransformKind::cast) steps.push_back(t);
  auto moves = plan_transforms(std::move(steps), plan.model());
  if (!moves) return std::move(moves.error());
  return std::make_shared<const TransformPlan>(std::move(*moves));
}

HostArray array_of(std::span<const float> values, TensorShape shape) {
  const auto bytes = std::as_bytes(values);
  return {Encoding::f32, std::move(shape), {bytes.begin(), bytes.end()}};
}

}  // namespace

Result<Adapter> Adapter::open(const std::string& folder, FileAccess access) {
  const std::string config_name = "adapter_config.json";
  auto file = read_json_file(folder + "/" + config_name, {.name = config_name, .max_bytes = max_config_bytes});
  if (!file) {
    file.error().notes.push_back("adapter " + quote(folder, 1000));
    if (file.error().kind == "no-such-file")
      file.error().help = "an adapter is a folder with adapter_config.json and adapter_model.safetensors";
    return std::move(file.error());
  }
  auto config = read_adapter_config(file->root, config_name);
  if (!config) {
    config.error().notes.push_back("adapter " + quote(folder, 1000));
    return std::move(config.error());
  }
  auto index = open_checkpoint(folder + "/adapter_model.safetensors");
  if (!index) return std::move(index.error());

  Adapter out;
  out.folder_ = folder;
  out.data_ = std::make_shared<CheckpointData>(std::make_shared<const CheckpointIndex>(std::move(*index)), access);
  const CheckpointIndex& tensors = out.data_->index();
  const auto refuse = [&](const char* kind, std::string what, std::string help = {}) {
    return Error{kind, "adapter_model.safetensors: " + std::move(what), {"adapter " + quote(folder, 1000)}, std::move(help)};
  };

  struct Pair {
    const TensorInfo *a = nullptr, *b = nullptr;
  };
  std::map<std::pair<std::string, bool>, Pair> pairs;      // by module, and whether it is an embedding's
  for (const TensorInfo& t : tensors.tensors()) {
    std::string why;
    const auto part = part_of(t.name, why);
    if (!part) return refuse("adapter-tensor", "tensor " + quote(t.name) + ": " + why);
    if (!is_float(t.encoding))
      return refuse("adapter-tensor",
                    "tensor " + quote(t.name) + " is " + std::string(name(t.encoding)) + ", which stands for no real numbers");
    const bool embedding = part->kind == Part::Kind::embedding_a || part->kind == Part::Kind::embedding_b;
    Pair& pair = pairs[{part->module, embedding}];
    if (part->kind == Part::Kind::a || part->kind == Part::Kind::embedding_a) pair.a = &t;
    else if (part->kind == Part::Kind::whole) out.changes_.push_back({part->module, nullptr, &t, 1, false, t.shape});
    else pair.b = &t;
    if (part->kind == Part::Kind::whole) pairs.erase({part->module, embedding});
  }
  std::set<std::string> used;
  for (const auto& [key, pair] : pairs) {
    const auto& [module, embedding] = key;
    if (pair.a == nullptr || pair.b == nullptr)
      return refuse("adapter-tensor", "of " + quote(module) + " it has " + (pair.a != nullptr ? "A and no B" : "B and no A"),
                    "the file is not whole; download or write it again");
    const TensorShape &a = pair.a->shape, &b = pair.b->shape;
    if (a.size() != 2 || b.size() != 2)
      return refuse("adapter-tensor", "of " + quote(module) + " A is " + shape_text(a) + " and B is " + shape_text(b) +
                                          ": adapters of matrices are carried out");
    if (!element_count(TensorShape{b[0], a[1]}))
      return refuse("adapter-tensor", "of " + quote(module) + " B · A has more than 2^63 elements");
    const std::int64_t rank = config->rank_of(module);
    if (a[0] != rank || b[1] != rank)
      return refuse("adapter-config",
                    "of " + quote(module) + " A is " + shape_text(a) + " and B is " + shape_text(b) +
                        ", and the rank in adapter_config.json is " + std::to_string(rank),
                    "both files must come from one adapter");
    if (!config->targets_module(module))
      return refuse("adapter-config", quote(module) + " has an adapter, and `target_modules` in adapter_config.json does not name it",
                    "both files must come from one adapter");
    for (const std::string& t : config->targets)
      if (module == t || module.ends_with("." + t)) used.insert(t);
    const bool turned = embedding || config->fan_in_fan_out;
    const TensorShape shape = turned ? TensorShape{a[1], b[0]} : TensorShape{b[0], a[1]};
    out.changes_.push_back({module + ".weight", pair.a, pair.b, config->scale_of(module), turned, shape});
  }
  for (const std::string& t : config->targets)
    if (!used.contains(t))
      return refuse("adapter-config", "no tensors for " + quote(t) + ", which `target_modules` in adapter_config.json names",
                    "both files must come from one adapter");
  for (const std::string& saved : config->saved)
    if (std::none_of(out.changes_.begin(), out.changes_.end(),
                     [&](const Change& c) { return c.a == nullptr && ("." + c.tensor).find("." + saved + ".") != std::string::npos; }))
      return refuse("adapter-config", "no tensors for " + quote(saved) + ", which `modules_to_save` in adapter_config.json names",
                    "both files must come from one adapter");
  if (out.changes_.empty()) return refuse("adapter-tensor", "it holds no tensor", "the file is not whole; download or write it again");
  return out;
}

Result<std::vector<float>> Adapter::values(const Change& change) const {
  auto b = data_->read_f32(*change.b);
  if (!b || change.a == nullptr) return b;
  auto a = data_->read_f32(*change.a);
  if (!a) return a;
  const auto rank = static_cast<std::size_t>(change.a->shape[0]);
  // D[i, j] = Σ left[i, k] · right[k, j], by rows of `right`, so that the inner loop runs along memory.
  const std::size_t rows = static_cast<std::size_t>(change.shape[0]), columns = static_cast<std::size_t>(change.shape[1]);
  std::vector<float> turned;
  if (change.transposed) {                                 // (B · A)ᵀ = Aᵀ · Bᵀ
    turned.resize(columns * rank);
    for (std::size_t j = 0; j < columns; ++j)
      for (std::size_t k = 0; k < rank; ++k) turned[k * columns + j] = (*b)[j * rank + k];
  }
  const std::vector<float>& right = change.transposed ? turned : *a;
  std::vector<float> out(rows * columns);                  // bind() has compared them with the model's
  const auto scale = static_cast<float>(change.scale);
  for (std::size_t i = 0; i < rows; ++i) {
    float* to = out.data() + i * columns;
    for (std::size_t k = 0; k < rank; ++k) {
      const float x = change.transposed ? (*a)[k * rows + i] : (*b)[i * rank + k];
      const float* from = right.data() + k * columns;
      for (std::size_t j = 0; j < columns; ++j) to[j] += x * from[j];
    }
    for (std::size_t j = 0; j < columns; ++j) to[j] *= scale;
  }
  return out;
}

Result<AdapterMerge> AdapterMerge::bind(std::vector<Adapter> adapters, const std::vector<MappingWeight>& weights, const MappingRules& rules,
                                        const Mapping& mapping) {
  // The weights that each tensor of a safetensors checkpoint is part of, by any alternative of a `one_of`.
  struct Place {
    std::size_t weight, input;
    std::shared_ptr<const TransformPlan> plan;
    std::size_t pick;
    TensorShape shape;
  };
  std::map<std::string, std::vector<Place>> places;
  WeightRules names(rules, weights);
  std::vector<std::string> all;
  const auto collect = [&] {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Wanted w = names.wanted(weights[i]);
      if (!w.wrong.empty()) continue;
      for (std::size_t k = 0; k < w.file.size(); ++k) {
        auto& at = places[w.file[k]];
        if (std::any_of(at.begin(), at.end(), [&](const Place& p) { return p.weight == i; })) continue;
        at.push_back({i, k, w.plan, w.pick, w.plan ? w.plan->file()[k] : weights[i].shape});
      }
    }
  };
  collect();
  for (std::size_t set = 0; set < rules.sets.size(); ++set)
    for (std::size_t a = 1; a < rules.sets[set].alternatives.size(); ++a) {
      names.chosen[set] = static_cast<int>(a);
      collect();
      names.chosen[set] = 0;
    }
  for (const auto& [name, at] : places) all.push_back(name);

  AdapterMerge out;
  out.of_.resize(weights.size());
  std::vector<std::string> problems;
  std::map<const TransformPlan*, std::shared_ptr<const TransformPlan>> moves;
  const NearNames near(all);
  for (std::size_t n = 0; n < adapters.size(); ++n) {
    const auto adapter = std::make_shared<const Adapter>(std::move(adapters[n]));
    out.adapters_.push_back(adapter);
    std::vector<std::string> unknown, merged, replaced;
    for (const Adapter::Change& c : adapter->changes()) {
      const auto found = places.find(c.tensor);
      if (found == places.end()) {
        unknown.push_back(c.tensor);
        continue;
      }
      for (const Place& p : found->second) {
        if (p.shape != c.shape) {
          problems.push_back(printable(c.tensor) + ": the adapter's is " + shape_text(c.shape) + ", the model's " + shape_text(p.shape) +
                             (weights[p.weight].where.empty() ? "" : ", declared at " + weights[p.weight].where));
          continue;
        }
        const WeightSource& source = mapping.sources[p.weight];
        for (std::size_t other = 0; other < weights.size(); ++other) {
          const WeightSource& s = mapping.sources[other];
          if (other == p.weight || (s.kind != WeightSource::Kind::alias && source.kind != WeightSource::Kind::alias)) continue;
          if (s.parts.empty() || source.parts.empty() || s.parts[0].tensor != source.parts[0].tensor) continue;
          problems.push_back(printable(weights[p.weight].name) + " is one tensor with " + printable(weights[other].name) +
                             " in this checkpoint: a change of one would be a change of both");
        }
        Use use{n, &c, p.input, nullptr, p.pick};
        if (p.plan && c.a == nullptr) {
          use.plan = p.plan;
          if (use.plan->file().size() > 1) {
            problems.push_back(printable(c.tensor) + " takes the place of one of several tensors that make " +
                               printable(weights[p.weight].name) + ", which is not carried out");
            continue;
          }
        } else if (p.plan) {
          std::shared_ptr<const TransformPlan>& known = moves[p.plan.get()];
          if (!known) {
            auto made = moves_of(*p.plan);
            if (!made) return std::move(made.error());
            known = std::move(*made);
          }
          use.plan = known;
        }
        out.of_[p.weight].push_back(std::move(use));
      }
      (c.a != nullptr ? merged : replaced).push_back(c.tensor);
    }
    for (const NamePattern& group : group_names(unknown)) {
      std::vector<std::string> here;
      for (std::size_t m : group.members) here.push_back(unknown[m]);
      const auto meant = near.instead_of(here);
      problems.push_back(printable(group.text) + ": the adapter changes it, and the model has no such tensor" +
                         (meant ? "; did you mean " + *meant + "?" : ""));
    }
    for (const std::string& line : name_lines(merged, 6)) out.notes_.push_back("merged from " + printable(adapter->folder()) + ": " + line);
    for (const std::string& line : name_lines(replaced, 6))
      out.notes_.push_back("taken whole from " + printable(adapter->folder()) + ": " + line);
  }
  if (problems.empty()) return out;
  Error e{"adapter",
          "an adapter does not fit the model: " + counted(problems.size(), "problem"),
          {},
          "an adapter fits the model that it was trained on"};
  const std::size_t shown = std::min<std::size_t>(problems.size(), 40);
  e.notes.assign(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(shown));
  if (shown < problems.size()) e.notes.push_back("… and " + counted(problems.size() - shown, "more problem"));
  return e;
}

Result<HostArray> AdapterMerge::apply(std::size_t weight, const HostArray& base) const {
  auto wide = cast(base, DType::f32);
  if (!wide) return wide;
  std::vector<float> sum(wide->bytes.size() / sizeof(float));
  std::memcpy(sum.data(), wide->bytes.data(), wide->bytes.size());

  // Changes of the tensors that one plan makes the weight of go through it together: its moves are linear.
  std::shared_ptr<const TransformPlan> plan;
  std::size_t pick = 0;
  std::vector<std::vector<float>> inputs;
  const auto through = [&]() -> Result<std::vector<float>> {
    std::vector<HostArray> file;
    for (std::size_t k = 0; k < plan->file().size(); ++k) {
      inputs[k].resize(static_cast<std::size_t>(element_count(plan->file()[k]).value_or(0)));
      file.push_back(array_of(inputs[k], plan->file()[k]));
    }
    auto made = to_model(*plan, std::move(file));
    if (!made) return std::move(made.error());
    const HostArray& picked = (*made)[pick];
    std::vector<float> values(picked.bytes.size() / sizeof(float));
    std::memcpy(values.data(), picked.bytes.data(), picked.bytes.size());
    plan = nullptr;
    return values;
  };
  const auto add = [&](const std::vector<float>& values) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  };
  const auto flush = [&]() -> Status {
    if (!plan) return {};
    auto values = through();
    if (!values) return std::move(values.error());
    add(*values);
    return {};
  };
  for (const Use& use : of_[weight]) {
    if (use.plan != plan)
      if (Status s = flush(); !s) return std::move(s.error());
    auto values = adapters_[use.adapter]->values(*use.change);
    if (!values) return std::move(values.error());
    if (!use.plan) {
      if (use.change->a == nullptr) sum = std::move(*values);
      else add(*values);
      continue;
    }
    if (!plan) {
      plan = use.plan;
      pick = use.pick;
      inputs.assign(plan->file().size(), {});
    }
    if (use.change->a == nullptr) {
      inputs[use.input] = std::move(*values);
      auto whole = through();
      if (!whole) return std::move(whole.error());
      sum = std::move(*whole);
      continue;
    }
    std::vector<float>& to = inputs[use.input];
    if (to.empty()) to = std::move(*values);
    else
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += (*values)[i];
  }
  if (Status s = flush(); !s) return std::move(s.error());
  const HostArray made = array_of(sum, base.shape);
  const auto plain = dtype_of(base.encoding);
  const bool narrow = plain && (*plain == DType::f16 || *plain == DType::bf16);
  return narrow ? cast(made, *plain) : made;
}

}  // namespace modelc
