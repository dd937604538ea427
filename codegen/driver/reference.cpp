#include "codegen/driver/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "codegen/driver/pipeline.h"
#include "codegen/driver/reference_parts.h"
#include "frontend/graph/members.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/weight_data.h"

namespace modelc::driver {

namespace eval = graph::eval;

namespace {

// A weight of integers that f32 has all of.
Result<std::vector<float>> whole_numbers(CheckpointData& data, const Mapping& mapping, const WeightSource& source,
                                         const TensorShape& shape) {
  auto x = read_weight(data, mapping, source, shape);
  if (!x) return std::move(x.error());
  std::vector<float> values;
  for (const std::byte b : x->bytes) {
    if (x->encoding == Encoding::u8) values.push_back(static_cast<float>(b));
    else if (x->encoding == Encoding::i8) values.push_back(static_cast<float>(static_cast<std::int8_t>(b)));
    else return problem("weights stored as " + std::string(name(x->encoding)) + " are not evaluated yet: of integers those of 8 bits are");
  }
  return values;
}

}  // namespace

graph::Precision fast_precision(const graph::Module& module) {
  graph::Precision out = graph::precision_of(module);
  const auto of_caches = [](const graph::PolicyRule& r) { return !r.pattern && r.target == "cache"; };
  if (std::none_of(module.policy.begin(), module.policy.end(), of_caches)) out.cache = DType::f16;
  return out;
}

Reference::Reference(const graph::Module& module, std::shared_ptr<const CheckpointIndex> checkpoint, Mapping mapping,
                     graph::Precision precision)
    : module_(module),
      weights_(mapping_weights(module)),
      mapping_(std::move(mapping)),
      data_(std::make_shared<CheckpointData>(std::move(checkpoint))),
      precision_(std::move(precision)) {
  for (std::size_t i = 0; i < weights_.size(); ++i) by_name_.emplace(weights_[i].name, i);
}

graph::eval::Evaluator Reference::evaluator() {
  eval::Evaluator made(module_, [this](const std::string& name, const graph::WeightDecl& decl) -> std::optional<std::vector<float>> {
    const auto at = by_name_.find(name);
    if (at == by_name_.end()) return std::nullopt;
    const WeightSource& source = mapping_.sources[at->second];
    if (source.kind == WeightSource::Kind::default_value) return std::nullopt;
    auto values = is_float(decl.type.dtype) ? read_weight_f32(*data_, mapping_, source, weights_[at->second].shape)
                                            : whole_numbers(*data_, mapping_, source, weights_[at->second].shape);
    if (values) return std::move(*values);
    failed_ = name + ": " + values.error().text();
    return std::nullopt;
  });
  made.set_precision(precision_);
  return made;
}

const graph::Function* Reference::forward() const {
  for (const graph::Function& f : module_.of(module_.root).functions)
    if (f.name == "forward") return &f;
  return nullptr;
}

struct Reference::Computed {
  std::shared_ptr<const CheckpointIndex> index;            // of the file
  std::vector<eval::Output> outputs;
  std::map<std::string, std::vector<float>> stages;        // those that the file names
  std::vector<std::string> given;                          // the file's tensors that are no results
  bool batched = false;                                    // then: rows of the padded file, and those that count
  std::size_t rows = 0;
  std::vector<std::size_t> kept;
  std::vector<std::int64_t> lead;                          // [batch, seq], or [seq]
};

Result<Reference::Computed> Reference::compute_file(const std::string& path) {
  auto opened = open_checkpoint(path);
  if (!opened) return std::move(opened.error());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  CheckpointData expected(index);
  Computed computed;
  computed.index = index;
  const graph::Function* f = forward();
  if (f == nullptr) return problem("there is no forward");

  // Sequences without their padding, where the model takes a Batch.
  bool batched = false;
  for (const graph::Parameter& p : f->inputs) batched = batched || f->values[p.value.index].type.kind == graph::TypeKind::batch;
  std::vector<std::size_t> kept;
  std::size_t rows = 0;
  std::vector<eval::Evaluator::Next> next;
  if (batched) {
    const TensorInfo* first = nullptr;
    for (const graph::Parameter& p : f->inputs)
      if (const TensorInfo* t = index->find(p.name)) first = first != nullptr ? first : t;
    if (first == nullptr || first->shape.empty() || first->shape.size() > 2)
      return problem(path + " holds no input of forward as [batch, seq] or [seq]");
    const std::int64_t sequences = first->shape.size() == 2 ? first->shape[0] : 1, seq = first->shape.back();
    rows = static_cast<std::size_t>(sequences * seq);
    computed.lead = first->shape;
    std::vector<std::int64_t> mask(rows, 1);
    if (const TensorInfo* m = index->find("attention_mask")) {
      auto values = expected.read_i64(*m);
      if (!values) return std::move(values.error());
      if (values->size() != rows) return problem(path + ": attention_mask has another shape than " + first->name);
      mask = std::move(*values);
    }
    for (std::int64_t s = 0; s < sequences; ++s) {
      std::int64_t tokens = 0;
      for (std::int64_t i = 0; i < seq; ++i)
        if (mask[static_cast<std::size_t>(s * seq + i)] != 0) {
          kept.push_back(static_cast<std::size_t>(s * seq + i));
          ++tokens;
        }
      next.push_back({s, tokens});
    }
  }
  eval::Evaluator e = evaluator();
  std::map<std::string, std::vector<float>> stages;
  e.set_trace([&](const std::string& name, const eval::Array& value) {
    if (index->find(name) != nullptr) stages[name] = reals(value);
  });
  std::map<std::string, eval::Input> inputs;
  std::vector<std::string> given = {"attention_mask", "position_ids"};
  // Entries whose inputs the file holds run before forward, in the order of the text: what they leave in the states is
  // what forward reads.
  std::vector<eval::Output> before;
  for (const graph::Function& entry : module_.of(module_.root).functions) {
    if (entry.kind != graph::FunctionKind::entry || !batched) continue;
    std::map<std::string, eval::Input> held;
    bool all = false, missing = false;
    for (const graph::Parameter& p : entry.inputs) {
      const graph::Type& type = entry.values[p.value.index].type;
      if (type.kind == graph::TypeKind::sequences) {
        std::vector<std::int64_t> slots;
        for (const auto& n : next) slots.push_back(n.slot);
        held.emplace(p.name, e.sequences(std::move(slots)));
        continue;
      }
      const TensorInfo* t = type.kind == graph::TypeKind::tensor ? index->find(p.name) : nullptr;
      if (t == nullptr) {
        missing = missing || !p.default_value;
        continue;
      }
      eval::Array a = eval::zeros(type.dtype, t->shape);
      if (is_float(type.dtype)) {
        auto values = expected.read_f32(*t);
        if (!values) return std::move(values.error());
        a.reals = std::move(*values);
      } else {
        auto values = expected.read_i64(*t);
        if (!values) return std::move(values.error());
        a.integers = std::move(*values);
      }
      all = true;
      held.emplace(p.name, std::move(a));
    }
    if (!all || missing) continue;
    for (const auto& [name, value] : held) given.push_back(name);
    auto made = e.run(entry.name, held);
    if (!failed_.empty()) return problem(failed_);
    if (!made) return std::move(made.error());
    std::move(made->begin(), made->end(), std::back_inserter(before));
  }
  for (const graph::Parameter& p : f->inputs) {
    const graph::Type& type = f->values[p.value.index].type;
    if (type.kind == graph::TypeKind::batch) {
      auto batch = e.batch(next, eval::Outputs::all);
      if (!batch) return std::move(batch.error());
      inputs.emplace(p.name, std::move(*batch));
      continue;
    }
    const TensorInfo* t = index->find(p.name);
    if (t == nullptr) {
      if (!p.default_value) return problem(path + " holds no input " + p.name);
      continue;
    }
    given.push_back(p.name);
    eval::Array a = eval::zeros(type.dtype, t->shape);
    if (is_float(type.dtype)) {
      auto values = expected.read_f32(*t);
      if (!values) return std::move(values.error());
      a.reals = batched ? kept_rows(*values, rows, kept) : std::move(*values);
    } else {
      auto values = expected.read_i64(*t);
      if (!values) return std::move(values.error());
      a.integers = std::move(*values);
      if (batched && a.integers.size() == rows) {
        std::vector<std::int64_t> ids;
        for (std::size_t r : kept) ids.push_back(a.integers[r]);
        a.integers = std::move(ids);
      }
    }
    if (batched) {
      std::vector<std::int64_t> shape(t->shape.begin() + (t->shape.size() >= 2 ? 2 : 1), t->shape.end());
      shape.insert(shape.begin(), static_cast<std::int64_t>(kept.size()));
      a.shape = std::move(shape);
    }
    inputs.emplace(p.name, std::move(a));
  }
  auto outputs = e.run("forward", inputs);
  if (!failed_.empty()) return problem(failed_);
  if (!outputs) return std::move(outputs.error());
  std::move(before.begin(), before.end(), std::back_inserter(*outputs));
  computed.outputs = std::move(*outputs);
  computed.stages = std::move(stages);
  computed.given = std::move(given);
  computed.batched = batched;
  computed.rows = rows;
  computed.kept = std::move(kept);
  return computed;
}

Result<Numbers> Reference::compute(const std::string& path) {
  auto computed = compute_file(path);
  if (!computed) return std::move(computed.error());
  Numbers results;
  for (eval::Output& o : computed->outputs) {
    if (computed->batched && !o.value.shape.empty() && o.value.shape[0] == static_cast<std::int64_t>(computed->rows) &&
        computed->kept.size() == computed->rows) {
      std::vector<std::int64_t> shape = computed->lead;
      shape.insert(shape.end(), o.value.shape.begin() + 1, o.value.shape.end());
      o.value.shape = std::move(shape);
    }
    results.emplace_back(o.name, std::move(o.value));
  }
  return results;
}

Result<std::string> Reference::expect(const std::string& path, double within) {
  auto computed = compute_file(path);
  if (!computed) return std::move(computed.error());
  const auto& [index, results, stages, given, batched, rows, kept, lead] = *computed;
  const std::vector<eval::Output>* outputs = &results;
  CheckpointData expected(index);
  std::string wrong;
  std::size_t compared = 0;
  for (const TensorInfo& t : index->tensors()) {
    if (std::find(given.begin(), given.end(), t.name) != given.end()) continue;
    const auto out = std::find_if(outputs->begin(), outputs->end(), [&](const eval::Output& o) { return o.name == t.name; });
    std::vector<float> have;
    if (out != outputs->end()) have = reals(out->value);
    else if (const auto stage = stages.find(t.name); stage != stages.end()) have = stage->second;
    else return problem(path + " holds " + quote(t.name) + ", which is no output and no stage of the model");
    auto want =
        dtype_of(t.encoding) && is_float(*dtype_of(t.encoding)) ? expected.read_f32(t) : Result<std::vector<float>>(std::vector<float>());
    if (!want) return std::move(want.error());
    if (!dtype_of(t.encoding) || !is_float(*dtype_of(t.encoding))) {
      auto whole = expected.read_i64(t);
      if (!whole) return std::move(whole.error());
      want = std::vector<float>(whole->begin(), whole->end());
    }
    const bool padded_rows = batched && kept.size() != rows && rows > 0 && want->size() % rows == 0 && want->size() != have.size();
    const double d = largest(padded_rows ? kept_rows(*want, rows, kept) : *want, have);
    ++compared;
    if (!(d <= within))
      wrong += fmt::format("{}{}: differs by {} (allowed {})", wrong.empty() ? "" : "\n", t.name, shortest(d), shortest(within));
  }
  if (compared == 0) return problem(path + " holds nothing to compare");
  return wrong;
}

}  // namespace modelc::driver
