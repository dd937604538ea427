// Reference: the runs of `same`.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/driver/reference.h"
#include "codegen/driver/reference_parts.h"
#include "frontend/diagnostics/diagnostics.h"
#include "frontend/graph/members.h"
#include "runtime/base/strings.h"
#include "runtime/sampler/random.h"

namespace modelc::driver {

namespace eval = graph::eval;

const eval::Array* Reference::given(const std::string& name) const {
  if (given_ != nullptr)
    for (const auto& [given, value] : *given_)
      if (given == name) return &value;
  return nullptr;
}

// By chance: it depends on the place alone, so that every way of feeding a sequence feeds the same.
Result<std::int64_t> Reference::token(const std::string& name, std::int64_t sequence, std::int64_t position,
                                      std::int64_t vocabulary) const {
  if (const eval::Array* a = given(name)) {
    const std::int64_t sequences = a->shape.size() == 2 ? a->shape[0] : 1, length = a->shape.back();
    if (sequence >= sequences || position >= length)
      return problem(fmt::format("`input {}` has {} of {} each, and a run asks for token {} of sequence {}", name,
                                 counted(static_cast<std::size_t>(sequences), "sequence"), length, position, sequence));
    return a->integers[static_cast<std::size_t>(sequence * length + position)];
  }
  Random random(1 + static_cast<std::uint64_t>(sequence) * 1'000'003 + static_cast<std::uint64_t>(position));
  return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(vocabulary));
}

// The inputs of an entry in a run: for the one sequence that the run is of, the same numbers in every run.
Result<std::map<std::string, eval::Input>> Reference::entry_inputs(const graph::Function& entry, const eval::Evaluator& e,
                                                                   const std::vector<std::string_view>& sizes) const {
  std::map<std::string, eval::Input> inputs;
  // The run-time axes, as the inputs have them one after another, and what the run says of them.
  std::vector<std::string> axes;
  for (const graph::Parameter& p : entry.inputs)
    for (const graph::DimId d : entry.values[p.value.index].type.shape) {
      const std::string text = module_.dims.text(d);
      if (module_.dims.find_axis(text) && text != "batch" && std::find(axes.begin(), axes.end(), text) == axes.end()) axes.push_back(text);
    }
  std::map<std::string, std::int64_t> said{{"batch", 1}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t colon = sizes[i].find(':');
    const std::string axis = colon != std::string_view::npos ? std::string(trim(sizes[i].substr(0, colon)))
                             : i < axes.size()               ? axes[i]
                                                             : "";
    const auto size = parse_int(trim(sizes[i].substr(colon == std::string_view::npos ? 0 : colon + 1)));
    if (std::find(axes.begin(), axes.end(), axis) == axes.end() || !said.emplace(axis, size.value_or(0)).second)
      return problem("`" + entry.name + "(" + std::string(sizes[i]) +
                     ")`: " + (axes.empty() ? "the entry has no axis whose size a run could say" : "its axes are " + join(axes, ", ")));
    if (!size || *size < 1 || *size > 1'000'000) return problem("`" + entry.name + "`: " + axis + " is a size from 1 to 1000000");
  }
  // None where an axis that the run does not say makes a difference.
  const auto size_of = [&](graph::DimId d) -> std::optional<std::int64_t> {
    std::optional<std::int64_t> results[2];
    for (int way = 0; way < 2; ++way) {
      std::vector<std::int64_t> axis_sizes;
      for (const auto& axis : module_.dims.axes()) {
        const auto at = said.find(axis.name);
        axis_sizes.push_back(at != said.end() ? at->second : way == 0 ? 1 : 1'000'003);
      }
      results[way] = module_.dims.evaluate(d, axis_sizes);
    }
    return results[0] == results[1] ? results[0] : std::nullopt;
  };
  for (const graph::Parameter& p : entry.inputs) {
    const graph::Type& type = entry.values[p.value.index].type;
    const std::string of = "`" + p.name + "` of the entry `" + entry.name + "`";
    if (type.kind == graph::TypeKind::sequences) {
      inputs.emplace(p.name, e.sequences({0}));
      continue;
    }
    if (const eval::Array* numbers = given(p.name)) {
      inputs.emplace(p.name, *numbers);
      continue;
    }
    if (p.default_value) continue;
    eval::Shape shape;
    std::int64_t count = 1;
    for (const graph::DimId d : type.shape) {
      const auto size = size_of(d);
      if (!size)
        return problem(of + " has the axis " + module_.dims.text(d) + ", whose size the run does not say: `" + entry.name + "(20)`");
      if (*size < 1) return problem(of + ": " + module_.dims.text(d) + " is " + std::to_string(*size));
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
      for (std::int64_t i = 0; i < lengths[static_cast<std::size_t>(s)]; ++i) {
        const Result<std::int64_t> id = mask ? std::int64_t{1} : token(p.name, first + s, i, vocabulary);
        if (!id) return id.error();
        a.integers[static_cast<std::size_t>(s * seq + i)] = *id;
      }
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
  // The input that takes tokens, and the Batch, of forward or of an entry.
  struct Feed {
    std::string ids, at;
    std::int64_t vocabulary = 0;
  };
  const auto feed_of = [&](const graph::Function& function) -> Result<Feed> {
    Feed feed;
    std::string other;
    for (const graph::Parameter& p : function.inputs) {
      const graph::Type& type = function.values[p.value.index].type;
      if (type.kind == graph::TypeKind::batch) feed.at = p.name;
      else if (feed.ids.empty() && type.index_bound) {
        feed.ids = p.name;
        feed.vocabulary = module_.dims.value(*type.index_bound).value_or(0);
      } else if (!p.default_value) other = p.name;
    }
    if (!feed.at.empty() && !other.empty()) return problem("`" + other + "`: runs feed tokens alone");
    return feed;
  };
  auto feed = feed_of(*f);
  if (!feed) return std::move(feed.error());
  eval::Evaluator e = evaluator();
  std::vector<float> all, of_entries;
  bool forwards = false;
  std::map<std::int64_t, std::int64_t> position;             // of each sequence, also where no state counts it
  const auto step = [&](const graph::Function& function, const Feed& fed, const std::vector<eval::Evaluator::Next>& next,
                        std::vector<float>& to) -> Status {
    if (fed.ids.empty() || fed.vocabulary < 1) return problem(function.name + " takes no tokens: runs are for functions that do");
    auto batch = e.batch(next, eval::Outputs::all);
    if (!batch) return std::move(batch.error());
    std::vector<std::int64_t> tokens;
    for (const auto& n : next)
      for (std::int64_t k = 0; k < n.tokens; ++k) {
        auto id = token(fed.ids, n.slot, position[n.slot]++, fed.vocabulary);
        if (!id) return std::move(id.error());
        tokens.push_back(*id);
      }
    const auto count = static_cast<std::int64_t>(tokens.size());
    auto outputs = e.run(function.name, {{fed.ids, eval::index_array({count}, std::move(tokens))}, {fed.at, std::move(*batch)}});
    if (!failed_.empty()) return problem(failed_);
    if (!outputs) return std::move(outputs.error());
    if (outputs->empty()) return {};
    const std::vector<float> values = reals(outputs->front().value);
    to.insert(to.end(), values.begin(), values.end());
    return {};
  };
  const std::vector<std::string_view> parts = split(text, '+');
  for (std::string_view part : parts) {
    part = trim(part);
    const std::size_t open = part.find('(');
    const std::string kind(trim(part.substr(0, open)));
    std::vector<std::string_view> written;
    if (open != std::string_view::npos && part.back() == ')' && part.size() > open + 2)
      written = split(part.substr(open + 1, part.size() - open - 2), ',');
    const bool many = kind == "batch" || kind == "alone", one = kind == "prefill" || kind == "decode";
    if (!many && !one) {
      const graph::Function* entry = graph::find_function(module_.of(module_.root), kind);
      if (entry == nullptr || entry->kind != graph::FunctionKind::entry) {
        std::vector<std::string> names = {"prefill", "decode", "batch", "alone"};
        for (const graph::Function& other : module_.of(module_.root).functions)
          if (other.kind == graph::FunctionKind::entry) names.push_back(other.name);
        const std::string near = diag::did_you_mean(kind, names);
        return problem("`" + kind + "` is no entry of the model" + (near.empty() ? "" : ": " + near) +
                       "; runs are entries by name, prefill(n), decode(n), batch(a, b, …), alone(a, b, …)");
      }
      auto fed = feed_of(*entry);
      if (!fed) return std::move(fed.error());
      if (!fed->at.empty()) {
        const auto count = written.size() == 1 ? parse_int(trim(written[0])) : std::nullopt;
        if (!count || *count < 1 || *count > 1'000'000)
          return problem("`" + std::string(part) + "`: the entry takes a Batch, and a run says how many tokens: `" + kind + "(5)`");
        if (Status s = step(*entry, *fed, {{0, *count}}, of_entries); !s) return std::move(s.error());
        continue;
      }
      auto inputs = entry_inputs(*entry, e, written);
      if (!inputs) return std::move(inputs.error());
      auto outputs = e.run(kind, *inputs);
      if (!failed_.empty()) return problem(failed_);
      if (!outputs) return std::move(outputs.error());
      for (const eval::Output& o : *outputs) {
        const std::vector<float> values = reals(o.value);
        of_entries.insert(of_entries.end(), values.begin(), values.end());
      }
      continue;
    }
    forwards = true;
    std::vector<std::int64_t> counts;
    for (std::string_view n : written) {
      const auto v = parse_int(trim(n));
      if (v && *v >= 1 && *v <= 1'000'000) counts.push_back(*v);
    }
    if (counts.empty() || counts.size() != written.size() || (one && counts.size() != 1))
      return problem("`" + std::string(part) + "` is not a run that is carried out: prefill(n), decode(n), batch(a, b, …), alone(a, b, …)");
    if (many && parts.size() > 1) return problem("`" + text + "`: batch and alone stand by themselves");
    if (feed->at.empty()) {
      if (!many) return problem("`" + std::string(part) + "`: forward takes no Batch, so it has no prefill and no decode");
      if (kind == "batch") return padded(counts, 0, *f);
      for (std::size_t i = 0; i < counts.size(); ++i) {
        auto rows = padded({counts[i]}, static_cast<std::int64_t>(i), *f);
        if (!rows) return rows;
        all.insert(all.end(), rows->begin(), rows->end());
      }
      return all;
    }
    std::vector<std::vector<eval::Evaluator::Next>> calls;
    if (kind == "batch") {
      calls.emplace_back();
      for (std::size_t i = 0; i < counts.size(); ++i) calls[0].push_back({static_cast<std::int64_t>(i), counts[i]});
    } else if (kind == "alone") {
      for (std::size_t i = 0; i < counts.size(); ++i) calls.push_back({{static_cast<std::int64_t>(i), counts[i]}});
    } else {
      calls.assign(static_cast<std::size_t>(kind == "decode" ? counts[0] : 1), {{0, kind == "decode" ? 1 : counts[0]}});
    }
    for (const auto& next : calls)
      if (Status s = step(*f, *feed, next, all); !s) return std::move(s.error());
  }
  if (!forwards && of_entries.empty()) return problem("`" + text + "` gives nothing to compare: its entries have no results");
  return forwards ? all : of_entries;
}

Result<std::string> Reference::same(const std::vector<std::string>& runs, double within, const Numbers& given) {
  given_ = &given;
  auto first = run(runs[0]);
  if (!first) return std::move(first.error());
  std::string wrong;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto other = run(runs[i]);
    if (!other) return std::move(other.error());
    if (other->size() != first->size()) return problem("`" + runs[0] + "` and `" + runs[i] + "` do not cover the same positions");
    const double d = largest(*first, *other);
    if (!(d <= within))
      wrong +=
          fmt::format("{}{} and {} differ by {} (allowed {})", wrong.empty() ? "" : "\n", runs[0], runs[i], shortest(d), shortest(within));
  }
  return wrong;
}

}  // namespace modelc::driver
