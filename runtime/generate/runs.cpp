// Runs of a language model that must agree: prefill against decode, a batch against each of its sequences alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/generate/compare.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/sampler/random.h"

namespace modelc {

namespace {

struct Run {
  std::string kind;
  std::vector<std::int64_t> counts;
};

Error bad_run(const std::string& text) {
  return Error{"run", "`" + text + "` is not a run", {}, "a run is prefill(n), decode(n), batch(a, b, …) or alone(a, b, …), joined by +"};
}

Result<std::vector<Run>> parse_runs(const std::string& text) {
  std::vector<Run> runs;
  for (std::string_view part : split(text, '+')) {
    part = trim(part);
    const std::size_t open = part.find('(');
    if (open == std::string_view::npos || part.empty() || part.back() != ')') return bad_run(std::string(part));
    Run run;
    run.kind = std::string(trim(part.substr(0, open)));
    for (std::string_view n : split(part.substr(open + 1, part.size() - open - 2), ',')) {
      const auto value = parse_int(trim(n));
      if (!value || *value < 1 || *value > 1'000'000) return bad_run(std::string(part));
      run.counts.push_back(*value);
    }
    const bool one = run.kind == "prefill" || run.kind == "decode", many = run.kind == "batch" || run.kind == "alone";
    if ((!one && !many) || (one && run.counts.size() != 1)) return bad_run(std::string(part));
    runs.push_back(std::move(run));
  }
  for (const Run& r : runs)
    if (runs.size() > 1 && (r.kind == "batch" || r.kind == "alone"))
      return Error{"run", "`" + text + "`: batch and alone stand by themselves", {}, ""};
  return runs;
}

class Runner {
 public:
  Runner(Model& model, std::uint64_t seed) : model_(model), seed_(seed) {}

  Result<std::vector<float>> run(const std::vector<Run>& runs) {
    const Run& first = runs.front();
    const bool many = first.kind == "batch" || first.kind == "alone";
    const std::int64_t sequences = many ? static_cast<std::int64_t>(first.counts.size()) : 1;
    std::int64_t longest = 0;
    if (many) longest = *std::max_element(first.counts.begin(), first.counts.end());
    else for (const Run& r : runs) longest += r.counts[0];
    auto state = model_.new_state({.sequences = static_cast<int>(sequences), .capacity = longest});
    if (!state) return std::move(state.error());
    fed_.assign(static_cast<std::size_t>(sequences), 0);
    std::vector<float> logits;
    if (first.kind == "batch") {
      std::vector<Segment> segments;
      for (std::size_t i = 0; i < first.counts.size(); ++i) segments.push_back({static_cast<int>(i), first.counts[i]});
      if (auto s = step(**state, segments, logits); !s) return std::move(s.error());
    } else if (first.kind == "alone") {
      for (std::size_t i = 0; i < first.counts.size(); ++i)
        if (auto s = step(**state, {{static_cast<int>(i), first.counts[i]}}, logits); !s) return std::move(s.error());
    } else {
      for (const Run& r : runs) {
        const std::int64_t calls = r.kind == "decode" ? r.counts[0] : 1, tokens = r.kind == "decode" ? 1 : r.counts[0];
        for (std::int64_t i = 0; i < calls; ++i)
          if (auto s = step(**state, {{0, tokens}}, logits); !s) return std::move(s.error());
      }
    }
    return logits;
  }

 private:
  Status step(State& state, const std::vector<Segment>& segments, std::vector<float>& to) {
    auto batch = Batch::make(state, segments, Outputs::all);
    if (!batch) return std::move(batch.error());
    std::vector<std::int32_t> ids;
    for (const Segment& s : segments)
      for (std::int64_t i = 0; i < s.tokens; ++i) ids.push_back(token(s.sequence, fed_[static_cast<std::size_t>(s.sequence)]++));
    auto rows = model_.logits(state, *batch, ids);
    if (!rows) return std::move(rows.error());
    to.insert(to.end(), rows->begin(), rows->end());
    return {};
  }
  // The token at a place depends on the place alone, so that every way of feeding a sequence feeds the same.
  std::int32_t token(std::int64_t sequence, std::int64_t position) const {
    Random random(seed_ + static_cast<std::uint64_t>(sequence) * 1'000'003 + static_cast<std::uint64_t>(position));
    return static_cast<std::int32_t>(random.next() % static_cast<std::uint64_t>(*model_.vocabulary()));
  }

  Model& model_;
  std::uint64_t seed_;
  // Tokens given to each sequence: of a model without state the sequences stay empty.
  std::vector<std::int64_t> fed_;
};

}  // namespace

Result<std::vector<float>> run_logits(Model& model, const std::string& text, std::uint64_t seed) {
  if (!model.vocabulary())
    return Error{"not-a-language-model", std::string(model.name()) + " does not map tokens to logits: runs are for those that do", {}, ""};
  auto runs = parse_runs(text);
  if (!runs) return std::move(runs.error());
  return Runner(model, seed).run(*runs);
}

Result<double> compare_runs(Model& model, const std::vector<std::string>& runs, std::uint64_t seed) {
  if (runs.size() < 2) return Error{"run", "two runs at least are compared", {}, ""};
  auto first = run_logits(model, runs[0], seed);
  if (!first) return std::move(first.error());
  double largest = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    auto other = run_logits(model, runs[i], seed);
    if (!other) return std::move(other.error());
    if (other->size() != first->size())
      return Error{"run", "`" + runs[0] + "` and `" + runs[i] + "` do not cover the same positions", {}, ""};
    largest = std::max(largest, compare(runs[i], *first, *other).max_abs);
  }
  return largest;
}

}  // namespace modelc
