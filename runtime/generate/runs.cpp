// Runs of a model that must agree: prefill against decode, a batch against each of its sequences alone, entries first.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/device/port_dims.h"
#include "runtime/generate/compare.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/sampler/random.h"

namespace modelc {

namespace {

Error problem(const std::string& message, std::string help = "") { return Error{"run", message, {}, std::move(help)}; }

// "prefill(12)", "heard(frames:20)", "encode"
struct Run {
  std::string kind;
  std::vector<std::pair<std::string, std::int64_t>> sizes;             // with the name that stands before it
  bool many() const { return kind == "batch" || kind == "alone"; }
  bool one() const { return kind == "prefill" || kind == "decode"; }
};

Result<std::vector<Run>> parse_runs(const std::string& text) {
  std::vector<Run> runs;
  for (std::string_view part : split(text, '+')) {
    part = trim(part);
    const auto bad = [&] {
      return problem("`" + std::string(part) + "` is not a run",
                     "a run is prefill(n), decode(n), batch(a, b, …), alone(a, b, …), or an entry, joined by +");
    };
    const std::size_t open = part.find('(');
    if (part.empty() || (open != std::string_view::npos && part.back() != ')')) return bad();
    Run run;
    run.kind = std::string(trim(part.substr(0, open)));
    if (open != std::string_view::npos && part.size() > open + 2)
      for (std::string_view n : split(part.substr(open + 1, part.size() - open - 2), ',')) {
        const std::size_t colon = n.find(':');
        const auto value = parse_int(trim(n.substr(colon == std::string_view::npos ? 0 : colon + 1)));
        if (!value || *value < 1 || *value > 1'000'000) return bad();
        run.sizes.emplace_back(colon == std::string_view::npos ? "" : trim(n.substr(0, colon)), *value);
      }
    if ((run.many() && run.sizes.empty()) || (run.one() && run.sizes.size() != 1)) return bad();
    runs.push_back(std::move(run));
  }
  for (const Run& r : runs)
    if (runs.size() > 1 && r.many()) return problem("`" + text + "`: batch and alone stand by themselves");
  return runs;
}

void add(std::vector<float>& to, const HostTensor& t) {
  if (t.dtype == DType::f32) {
    to.insert(to.end(), t.as<float>().begin(), t.as<float>().end());
  } else if (t.dtype == DType::i32) {
    for (const std::int32_t v : t.as<std::int32_t>()) to.push_back(static_cast<float>(v));
  } else {
    for (const std::byte b : t.data) to.push_back(static_cast<float>(b));
  }
}

class Runner {
 public:
  Runner(Model& model, std::uint64_t seed, const RunInputs& given) : model_(model), seed_(seed), given_(given) {}

  Result<std::vector<float>> run(const std::string& text) {
    auto runs = parse_runs(text);
    if (!runs) return std::move(runs.error());
    forward_ = find("forward");
    if (forward_ == nullptr) return problem(std::string(model_.name()) + " has no entry forward");
    if (Status s = make_state(*runs); !s) return std::move(s.error());
    std::vector<float> all, of_entries;
    bool forwards = false;
    for (const Run& r : *runs) {
      forwards = forwards || r.many() || r.one();
      Status s = r.many() || r.one() ? forward(r, all) : entry(r, of_entries);
      if (!s) return std::move(s.error());
    }
    if (!forwards && of_entries.empty()) return problem("`" + text + "` gives nothing to compare: its entries have no results");
    return forwards ? all : of_entries;
  }

 private:
  const EntryDesc* find(const std::string& name) const {
    for (const EntryDesc& e : model_.entries())
      if (name == e.name) return &e;
    return nullptr;
  }

  // One for the whole run, as large as its tokens need. A model whose functions take inputs alone has none.
  Status make_state(const std::vector<Run>& runs) {
    const bool none =
        std::all_of(model_.entries().begin(), model_.entries().end(), [](const EntryDesc& e) { return e.at == CallAt::none; });
    std::int64_t longest = 0, sum = 0, sequences = 1;
    for (const Run& r : runs) {
      if (r.many()) sequences = static_cast<std::int64_t>(r.sizes.size());
      for (const auto& [name, n] : r.sizes) {
        longest = std::max(longest, n);
        sum += n;
      }
    }
    fed_.assign(static_cast<std::size_t>(sequences), 0);
    if (none) return {};
    auto state = model_.new_state(
        {.sequences = static_cast<int>(sequences), .capacity = std::max<std::int64_t>(runs.front().many() ? longest : sum, 1)});
    if (!state) return std::move(state.error());
    state_ = std::move(*state);
    return {};
  }

  Status forward(const Run& r, std::vector<float>& to) {
    if (forward_->at == CallAt::none) {
      if (!r.many()) return problem("`" + r.kind + "`: forward takes no Batch, so it has no prefill and no decode");
      if (r.kind == "batch") return padded(r.sizes, 0, to);
      for (std::size_t i = 0; i < r.sizes.size(); ++i)
        if (Status s = padded({r.sizes[i]}, i, to); !s) return s;
      return {};
    }
    if (forward_->at == CallAt::sequences) return problem("`" + r.kind + "`: forward takes no tokens");
    std::vector<std::vector<Segment>> calls;
    if (r.kind == "batch") {
      calls.emplace_back();
      for (std::size_t i = 0; i < r.sizes.size(); ++i) calls[0].push_back({static_cast<int>(i), r.sizes[i].second});
    } else if (r.kind == "alone") {
      for (std::size_t i = 0; i < r.sizes.size(); ++i) calls.push_back({{static_cast<int>(i), r.sizes[i].second}});
    } else {
      const bool decode = r.kind == "decode";
      const std::int64_t n = r.sizes[0].second;
      calls.assign(static_cast<std::size_t>(decode ? n : 1), {{0, decode ? 1 : n}});
    }
    for (const auto& segments : calls)
      if (Status s = step(*forward_, segments, to); !s) return s;
    return {};
  }

  Status entry(const Run& r, std::vector<float>& to) {
    const EntryDesc* e = find(r.kind);
    if (e == nullptr || e == forward_)
      return problem("`" + r.kind + "` is no entry of " + model_.name(),
                     "a run is prefill(n), decode(n), batch(a, b, …), alone(a, b, …), or an entry, joined by +");
    if (e->at == CallAt::batch) {
      if (r.sizes.size() != 1) return problem("`" + r.kind + "` takes a Batch: a run says how many tokens, as in `" + r.kind + "(5)`");
      return step(*e, {{0, r.sizes[0].second}}, to);
    }
    auto inputs = entry_inputs(*e, r);
    if (!inputs) return std::move(inputs.error());
    Result<std::map<std::string, HostTensor>> outputs = problem("");
    if (e->at == CallAt::sequences) {
      const int slot = 0;
      auto at = Sequences::make(*state_, std::span(&slot, 1));
      if (!at) return std::move(at.error());
      outputs = model_.call(e->name, state_.get(), *at, *inputs);
    } else {
      outputs = model_.call(e->name, state_.get(), *inputs);
    }
    if (!outputs) return std::move(outputs.error());
    for (const PortDesc& p : e->outputs) add(to, outputs->at(p.name));
    return {};
  }

  // New tokens for sequences, through a function that takes a Batch and them.
  Status step(const EntryDesc& e, const std::vector<Segment>& segments, std::vector<float>& to) {
    const PortDesc* port = nullptr;
    for (const PortDesc& p : e.inputs) {
      if (port == nullptr && p.dtype == DType::i32 && p.index_bound > 0) port = &p;
      else if (!p.default_value) return problem(std::string("`") + p.name + "`: runs feed tokens alone");
    }
    if (port == nullptr) return problem(std::string(e.name) + " takes no tokens: runs are for functions that do");
    auto batch = Batch::make(*state_, segments, Outputs::all);
    if (!batch) return std::move(batch.error());
    std::vector<std::int32_t> ids;
    for (const Segment& s : segments)
      for (std::int64_t i = 0; i < s.tokens; ++i) {
        auto id = token(*port, s.sequence, fed_[static_cast<std::size_t>(s.sequence)]++);
        if (!id) return std::move(id.error());
        ids.push_back(*id);
      }
    if (&e == model_.language_entry()) {                     // what `run` calls
      auto rows = model_.logits(*state_, *batch, ids);
      if (!rows) return std::move(rows.error());
      to.insert(to.end(), rows->begin(), rows->end());
      return {};
    }
    const Shape shape{std::array{static_cast<std::int64_t>(ids.size())}};
    auto outputs = model_.call(e.name, state_.get(), *batch, {{port->name, HostTensor::of(std::span<const std::int32_t>(ids), shape)}});
    if (!outputs) return std::move(outputs.error());
    if (!e.outputs.empty()) add(to, outputs->at(e.outputs[0].name));
    return {};
  }

  // forward over [batch, seq] with a mask: sequences padded to the longest. Gives the first result, of a result by token
  // the rows that are no padding.
  Status padded(const std::vector<std::pair<std::string, std::int64_t>>& lengths, std::size_t first, std::vector<float>& to) {
    const auto sequences = static_cast<std::int64_t>(lengths.size());
    std::int64_t seq = 0;
    for (const auto& [name, n] : lengths) seq = std::max(seq, n);
    std::map<std::string, HostTensor> inputs;
    const Shape shape{std::array{sequences, seq}};
    bool tokens = false;
    for (const PortDesc& p : forward_->inputs) {
      const bool mask = p.dtype == DType::boolean;
      auto dims = parse_port_shape(p.shape, model_.axes());
      if (!dims) return std::move(dims.error());
      if (dims->size() != 2) return problem(std::string("`") + p.name + "`: runs feed inputs of shape [batch, seq]");
      if (!mask && p.default_value) continue;
      if (!mask && (p.dtype != DType::i32 || p.index_bound < 1))
        return problem(std::string("`") + p.name + "`: runs feed tokens and a mask");
      std::vector<std::int32_t> values(static_cast<std::size_t>(sequences * seq));
      for (std::int64_t s = 0; s < sequences; ++s)
        for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(s)].second; ++i) {
          auto id = mask ? Result<std::int32_t>(1) : token(p, static_cast<int>(first) + static_cast<int>(s), i);
          if (!id) return std::move(id.error());
          values[static_cast<std::size_t>(s * seq + i)] = *id;
        }
      inputs[p.name] = mask ? flags(values, shape) : HostTensor::of(std::span<const std::int32_t>(values), shape);
      tokens = tokens || !mask;
    }
    if (!tokens) return problem("forward takes no tokens");
    auto outputs = model_.call("forward", nullptr, inputs);
    if (!outputs) return std::move(outputs.error());
    const HostTensor& result = outputs->at(forward_->outputs[0].name);
    std::vector<float> all;
    add(all, result);
    const std::span<const std::int64_t> dims = result.shape.axes();
    if (dims.size() < 2 || dims[0] != sequences || dims[1] != seq) {
      to.insert(to.end(), all.begin(), all.end());
      return {};
    }
    const std::size_t width = all.size() / static_cast<std::size_t>(sequences * seq);
    for (std::int64_t s = 0; s < sequences; ++s) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s * seq) * width);
      const auto rows = static_cast<std::size_t>(lengths[static_cast<std::size_t>(s)].second);
      to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(rows * width));
    }
    return {};
  }

  static HostTensor flags(const std::vector<std::int32_t>& values, const Shape& shape) {
    HostTensor t{DType::boolean, shape, {}};
    for (const std::int32_t v : values) t.data.push_back(static_cast<std::byte>(v != 0));
    return t;
  }

  // Of an entry that takes Sequences or inputs alone: what is given, or numbers by chance, the same in every run.
  Result<std::map<std::string, HostTensor>> entry_inputs(const EntryDesc& e, const Run& r) const {
    const auto axes = model_.axes();
    std::vector<int> order;                                  // run-time axes, as the inputs have them one after another
    std::map<std::string, std::vector<PortDim>> shapes;
    for (const PortDesc& p : e.inputs) {
      auto dims = parse_port_shape(p.shape, axes);
      if (!dims) return std::move(dims.error());
      for (const PortDim& d : *dims)
        if (const auto axis = d.axis(); axis && *axis != batch_axis && std::find(order.begin(), order.end(), *axis) == order.end())
          order.push_back(*axis);
      shapes[p.name] = std::move(*dims);
    }
    StepSizes sizes;
    sizes.size[batch_axis] = 1;
    std::uint32_t said = 1U << batch_axis;
    for (std::size_t i = 0; i < r.sizes.size(); ++i) {
      int axis = i < order.size() ? order[i] : -1;
      for (const int a : order)
        if (!r.sizes[i].first.empty() && r.sizes[i].first == axes[static_cast<std::size_t>(a)].name) axis = a;
      if (axis < 0 || (said >> axis & 1U) != 0) return problem("`" + r.kind + "` has no further axis whose size a run could say");
      sizes.size[static_cast<std::size_t>(axis)] = r.sizes[i].second;
      said |= 1U << axis;
    }
    std::map<std::string, HostTensor> inputs;
    for (const PortDesc& p : e.inputs) {
      if (const auto at = given_.find(p.name); at != given_.end()) {
        inputs[p.name] = at->second;
        if (p.dtype == DType::boolean) {
          const auto values = at->second.as<std::int32_t>();
          inputs[p.name] = flags({values.begin(), values.end()}, at->second.shape);
        }
        continue;
      }
      if (p.default_value) continue;
      std::vector<std::int64_t> shape;
      std::int64_t count = 1;
      for (const PortDim& d : shapes[p.name]) {
        const auto size = (d.axes() & ~said) == 0 ? d.value(sizes) : std::nullopt;
        if (!size || *size < 1)
          return problem(std::string("`") + p.name + "` of `" + e.name + "` has the axis " + d.text() +
                         ", whose size the run does not say");
        if (*size > (std::int64_t{1} << 28) / count) return problem(std::string("`") + p.name + "` is too large for a run");
        count *= *size;
        shape.push_back(*size);
      }
      Random random(7);
      const Shape made{std::span<const std::int64_t>(shape)};
      if (p.dtype == DType::f32) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& v : values) v = static_cast<float>(2 * random.uniform() - 1);
        inputs[p.name] = HostTensor::of(std::span<const float>(values), made);
        continue;
      }
      const std::int64_t bound = p.index_bound > 0 ? p.index_bound : 2;
      std::vector<std::int32_t> values(static_cast<std::size_t>(count), 1);
      for (std::int32_t& v : values)
        if (p.dtype != DType::boolean) v = static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(bound));
      inputs[p.name] = p.dtype == DType::boolean ? flags(values, made) : HostTensor::of(std::span<const std::int32_t>(values), made);
    }
    return inputs;
  }

  // A given one; else by chance: it depends on the place alone, so that every way of feeding a sequence feeds the same.
  Result<std::int32_t> token(const PortDesc& port, int sequence, std::int64_t position) const {
    if (const auto at = given_.find(port.name); at != given_.end()) {
      const auto dims = at->second.shape.axes();
      const std::int64_t sequences = dims.size() == 2 ? dims[0] : 1, length = dims.empty() ? 0 : dims.back();
      if (at->second.dtype != DType::i32 || sequence >= sequences || position >= length)
        return problem(std::string("the given `") + port.name + "` has no token " + std::to_string(position) + " of sequence " +
                       std::to_string(sequence));
      return at->second.as<std::int32_t>()[static_cast<std::size_t>(sequence * length + position)];
    }
    Random random(seed_ + static_cast<std::uint64_t>(sequence) * 1'000'003 + static_cast<std::uint64_t>(position));
    return static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(port.index_bound));
  }

  Model& model_;
  std::uint64_t seed_;
  const RunInputs& given_;
  const EntryDesc* forward_ = nullptr;
  std::unique_ptr<State> state_;
  // Tokens given to each sequence: of a model without state the sequences stay empty.
  std::vector<std::int64_t> fed_;
};

}  // namespace

Result<std::vector<float>> run_results(Model& model, const std::string& text, std::uint64_t seed, const RunInputs& given) {
  return Runner(model, seed, given).run(text);
}

Result<double> compare_runs(Model& model, const std::vector<std::string>& runs, std::uint64_t seed, const RunInputs& given) {
  if (runs.size() < 2) return problem("two runs at least are compared");
  auto first = run_results(model, runs[0], seed, given);
  if (!first) return std::move(first.error());
  double largest = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto other = run_results(model, runs[i], seed, given);
    if (!other) return std::move(other.error());
    if (other->size() != first->size()) return problem("`" + runs[0] + "` and `" + runs[i] + "` do not cover the same positions");
    largest = std::max(largest, compare(runs[i], *first, *other).max_abs);
  }
  return largest;
}

}  // namespace modelc
