#include "codegen/driver/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "codegen/driver/pipeline.h"
#include "frontend/graph/members.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/weight_data.h"
#include "runtime/sampler/random.h"

namespace modelc::driver {

namespace eval = graph::eval;

namespace {

Error problem(const std::string& message) { return Error{"test", message, {}, {}}; }

double largest(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (std::isnan(d) && !(std::isnan(a[i]) && std::isnan(b[i]))) return INFINITY;
    if (!std::isnan(d)) most = std::max(most, d);
  }
  return most;
}

std::vector<float> reals(const eval::Array& a) {
  if (is_float(a.dtype)) return a.reals;
  return {a.integers.begin(), a.integers.end()};
}

// Rows of a padded file that count.
std::vector<float> kept_rows(const std::vector<float>& all, std::size_t rows, const std::vector<std::size_t>& kept) {
  const std::size_t width = rows > 0 ? all.size() / rows : 0;
  std::vector<float> out;
  for (std::size_t r : kept) out.insert(out.end(), all.begin() + static_cast<std::ptrdiff_t>(r * width), all.begin() + static_cast<std::ptrdiff_t>((r + 1) * width));
  return out;
}

}  // namespace

Reference::Reference(const graph::Module& module, std::shared_ptr<const CheckpointIndex> checkpoint, Mapping mapping)
    : module_(module), weights_(mapping_weights(module)), mapping_(std::move(mapping)), data_(std::make_shared<CheckpointData>(std::move(checkpoint))) {
  for (std::size_t i = 0; i < weights_.size(); ++i) by_name_.emplace(weights_[i].name, i);
}

graph::eval::Evaluator Reference::evaluator() {
  return eval::Evaluator(module_, [this](const std::string& name, const graph::WeightDecl&) -> std::optional<std::vector<float>> {
    const auto at = by_name_.find(name);
    if (at == by_name_.end()) return std::nullopt;
    const WeightSource& source = mapping_.sources[at->second];
    if (source.kind == WeightSource::Kind::default_value) return std::nullopt;
    auto values = read_weight_f32(*data_, mapping_, source, weights_[at->second].shape);
    if (values) return std::move(*values);
    failed_ = name + ": " + values.error().text();
    return std::nullopt;
  });
}

const graph::Function* Reference::forward() const {
  for (const graph::Function& f : module_.of(module_.root).functions)
    if (f.name == "forward") return &f;
  return nullptr;
}

Result<std::string> Reference::expect(const std::string& path, double within) {
  auto opened = open_checkpoint(path);
  if (!opened) return std::move(opened.error());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  CheckpointData expected(index);
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
    if (first == nullptr || first->shape.empty() || first->shape.size() > 2) return problem(path + " holds no input of forward as [batch, seq] or [seq]");
    const std::int64_t sequences = first->shape.size() == 2 ? first->shape[0] : 1, seq = first->shape.back();
    rows = static_cast<std::size_t>(sequences * seq);
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

  std::string wrong;
  std::size_t compared = 0;
  for (const TensorInfo& t : index->tensors()) {
    if (std::find(given.begin(), given.end(), t.name) != given.end()) continue;
    const auto out = std::find_if(outputs->begin(), outputs->end(), [&](const eval::Output& o) { return o.name == t.name; });
    std::vector<float> have;
    if (out != outputs->end()) have = reals(out->value);
    else if (const auto stage = stages.find(t.name); stage != stages.end()) have = stage->second;
    else return problem(path + " holds " + quote(t.name) + ", which is no output and no stage of the model");
    auto want = dtype_of(t.encoding) && is_float(*dtype_of(t.encoding)) ? expected.read_f32(t) : Result<std::vector<float>>(std::vector<float>());
    if (!want) return std::move(want.error());
    if (!dtype_of(t.encoding) || !is_float(*dtype_of(t.encoding))) {
      auto whole = expected.read_i64(t);
      if (!whole) return std::move(whole.error());
      want = std::vector<float>(whole->begin(), whole->end());
    }
    const bool padded_rows = batched && kept.size() != rows && rows > 0 && want->size() % rows == 0 && want->size() != have.size();
    const double d = largest(padded_rows ? kept_rows(*want, rows, kept) : *want, have);
    ++compared;
    if (!(d <= within)) wrong += fmt::format("{}{}: differs by {} (allowed {})", wrong.empty() ? "" : "\n", t.name, shortest(d), shortest(within));
  }
  if (compared == 0) return problem(path + " holds nothing to compare");
  return wrong;
}

namespace {

// The token at a place depends on the place alone, so that every way of feeding a sequence feeds the same.
std::int64_t token(std::int64_t sequence, std::int64_t position, std::int64_t vocabulary) {
  Random random(1 + static_cast<std::uint64_t>(sequence) * 1'000'003 + static_cast<std::uint64_t>(position));
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(vocabulary));
}

}  // namespace

// The inputs of an entry in a run: for the one sequence that the run is of, the same numbers in every run.
Result<std::map<std::string, eval::Input>> Reference::entry_inputs(const graph::Function& entry, const eval::Evaluator& e) const {
  std::map<std::string, eval::Input> inputs;
  for (const graph::Parameter& p : entry.inputs) {
    const graph::Type& type = entry.values[p.value.index].type;
    const std::string of = "`" + p.name + "` of the entry `" + entry.name + "`";
    if (type.kind == graph::TypeKind::sequences) {
      inputs.emplace(p.name, e.sequences({0}));
      continue;
    }
    if (type.kind == graph::TypeKind::batch) return problem(of + " is a Batch: a run names entries that take a Sequences");
    if (p.default_value) continue;
    eval::Shape shape;
    std::int64_t count = 1;
    for (const graph::DimId d : type.shape) {
      auto size = module_.dims.value(d);
      if (!size && module_.dims.text(d) == "batch") size = 1;
      if (!size) return problem(of + " has the axis " + module_.dims.text(d) + ", whose size a run does not say");
      constexpr std::int64_t most = std::int64_t{1} << 28;
      if (*size > most / count) return problem(of + " is too large for a run");
      count *= *size;
      shape.push_back(*size);
    }
    eval::Array a = eval::zeros(type.dtype, std::move(shape));
    Random random(7);
    if (is_float(type.dtype)) {
      for (float& v : a.reals) v = static_cast<float>(2 * random.uniform() - 1);
    } else {
      const std::int64_t bound = type.index_bound ? module_.dims.value(*type.index_bound).value_or(2) : 2;
      for (std::int64_t& v : a.integers)
        v = type.dtype == DType::boolean ? 1 : static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(bound));
    }
    inputs.emplace(p.name, std::move(a));
  }
  return inputs;
}

// A model over [batch, seq] with a mask: sequences padded to the longest. Gives the first result's rows that are no padding.
Result<std::vector<float>> Reference::padded(const std::vector<std::int64_t>& lengths, std::int64_t first, const graph::Function& f) {
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  const std::int64_t seq = *std::max_element(lengths.begin(), lengths.end());
  std::map<std::string, eval::Input> inputs;
  bool tokens = false;
  for (const graph::Parameter& p : f.inputs) {
    const graph::Type& type = f.values[p.value.index].type;
    if (type.shape.size() != 2) return problem("`" + p.name + "`: runs feed inputs of shape [batch, seq]");
    eval::Array a = eval::zeros(type.dtype, {sequences, seq});
    const bool mask = type.dtype == DType::boolean;
    if (!mask && p.default_value) continue;
    if (is_float(type.dtype)) return problem("`" + p.name + "`: runs feed tokens and a mask");
    const std::int64_t vocabulary = type.index_bound ? module_.dims.value(*type.index_bound).value_or(2) : 2;
    for (std::int64_t s = 0; s < sequences; ++s)
      for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(s)]; ++i)
        a.integers[static_cast<std::size_t>(s * seq + i)] = mask ? 1 : token(first + s, i, vocabulary);
    tokens = tokens || !mask;
    inputs.emplace(p.name, std::move(a));
  }
  if (!tokens) return problem("forward takes no tokens");
  auto outputs = evaluator().run("forward", inputs);
  if (!failed_.empty()) return problem(failed_);
  if (!outputs) return std::move(outputs.error());
  const eval::Array& result = outputs->front().value;
  const std::vector<float> all = reals(result);
  if (result.shape.size() < 2 || result.shape[0] != sequences || result.shape[1] != seq) return all;
  std::vector<std::size_t> kept;
  for (std::int64_t s = 0; s < sequences; ++s)
    for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(s)]; ++i) kept.push_back(static_cast<std::size_t>(s * seq + i));
  return kept_rows(all, static_cast<std::size_t>(sequences * seq), kept);
}

Result<std::vector<float>> Reference::run(const std::string& text) {
  const graph::Function* f = forward();
  if (f == nullptr) return problem("there is no forward");
  std::string ids, at;
  std::int64_t vocabulary = 0;
  for (const graph::Parameter& p : f->inputs) {
    const graph::Type& type = f->values[p.value.index].type;
    if (type.kind == graph::TypeKind::batch) at = p.name;
    else if (ids.empty() && type.index_bound) {
      ids = p.name;
      vocabulary = module_.dims.value(*type.index_bound).value_or(0);
    } else if (!p.default_value && !at.empty()) return problem("`" + p.name + "`: runs feed tokens alone");
  }
  eval::Evaluator e = evaluator();
  std::vector<float> all;
  std::map<std::int64_t, std::int64_t> position;             // of each sequence, also where no state counts it
  const auto step = [&](const std::vector<eval::Evaluator::Next>& next) -> Status {
    auto batch = e.batch(next, eval::Outputs::all);
    if (!batch) return std::move(batch.error());
    std::vector<std::int64_t> tokens;
    for (const auto& n : next)
      for (std::int64_t k = 0; k < n.tokens; ++k) tokens.push_back(token(n.slot, position[n.slot]++, vocabulary));
    const auto count = static_cast<std::int64_t>(tokens.size());
    auto outputs = e.run("forward", {{ids, eval::index_array({count}, std::move(tokens))}, {at, std::move(*batch)}});
    if (!failed_.empty()) return problem(failed_);
    if (!outputs) return std::move(outputs.error());
    const std::vector<float> values = reals(outputs->front().value);
    all.insert(all.end(), values.begin(), values.end());
    return {};
  };
  const std::vector<std::string_view> parts = split(text, '+');
  for (std::string_view part : parts) {
    part = trim(part);
    const std::size_t open = part.find('(');
    const std::string kind(trim(part.substr(0, open)));
    if (open == std::string_view::npos) {
      const graph::Function* entry = graph::find_function(module_.of(module_.root), kind);
      if (entry == nullptr || entry->kind != graph::FunctionKind::entry)
        return problem("`" + kind + "` is no entry of the model; runs are entries by name, prefill(n), decode(n), batch(a, b, …), alone(a, b, …)");
      auto inputs = entry_inputs(*entry, e);
      if (!inputs) return std::move(inputs.error());
      auto outputs = e.run(kind, *inputs);
      if (!failed_.empty()) return problem(failed_);
      if (!outputs) return std::move(outputs.error());
      continue;
    }
    std::vector<std::int64_t> counts;
    bool good = open != std::string_view::npos && part.back() == ')';
    if (good)
      for (std::string_view n : split(part.substr(open + 1, part.size() - open - 2), ',')) {
        const auto v = parse_int(trim(n));
        good = good && v && *v >= 1 && *v <= 1'000'000;
        if (good) counts.push_back(*v);
      }
    const bool many = kind == "batch" || kind == "alone", one = kind == "prefill" || kind == "decode";
    if (!good || (!many && !one) || (one && counts.size() != 1))
      return problem("`" + std::string(part) + "` is not a run that is carried out: prefill(n), decode(n), batch(a, b, …), alone(a, b, …)");
    if (many && parts.size() > 1) return problem("`" + text + "`: batch and alone stand by themselves");
    if (at.empty()) {
      if (!many) return problem("`" + std::string(part) + "`: forward takes no Batch, so it has no prefill and no decode");
      if (kind == "batch") return padded(counts, 0, *f);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        auto rows = padded({counts[i]}, static_cast<std::int64_t>(i), *f);
        if (!rows) return rows;
        all.insert(all.end(), rows->begin(), rows->end());
      }
      return all;
    }
    if (ids.empty() || vocabulary < 1) return problem("forward takes no tokens: runs are for models that do");
    if (kind == "batch") {
      std::vector<eval::Evaluator::Next> next;
      for (std::size_t i = 0; i < counts.size(); ++i) next.push_back({static_cast<std::int64_t>(i), counts[i]});
      if (Status s = step(next); !s) return std::move(s.error());
    } else if (kind == "alone") {
      for (std::size_t i = 0; i < counts.size(); ++i)
        if (Status s = step({{static_cast<std::int64_t>(i), counts[i]}}); !s) return std::move(s.error());
    } else {
      const std::int64_t calls = kind == "decode" ? counts[0] : 1, tokens = kind == "decode" ? 1 : counts[0];
      for (std::int64_t i = 0; i < calls; ++i)
        if (Status s = step({{0, tokens}}); !s) return std::move(s.error());
    }
  }
  return all;
}

Result<std::string> Reference::same(const std::vector<std::string>& runs, double within) {
  auto first = run(runs[0]);
  if (!first) return std::move(first.error());
  std::string wrong;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto other = run(runs[i]);
    if (!other) return std::move(other.error());
    if (other->size() != first->size()) return problem("`" + runs[0] + "` and `" + runs[i] + "` do not cover the same positions");
    const double d = largest(*first, *other);
    if (!(d <= within)) wrong += fmt::format("{}{} and {} differ by {} (allowed {})", wrong.empty() ? "" : "\n", runs[0], runs[i], shortest(d), shortest(within));
  }
  return wrong;
}

}  // namespace modelc::driver
