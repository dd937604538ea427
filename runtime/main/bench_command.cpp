// bench: how fast prefill and decode are, beside what this machine can do at most, measured in the same run.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>

#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/device/limits.h"
#include "runtime/device/meter.h"
#include "runtime/generate/compare.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/main/options.h"
#include "runtime/main/profile.h"

namespace modelc::main_program {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

constexpr std::size_t chunk = 512;                         // tokens of the prompt in one call, as generate's

struct Figures {
  std::vector<double> values;                              // ascending once sorted
  void sort() { std::sort(values.begin(), values.end()); }
  double median() const { return values[values.size() / 2]; }
};

// What one repetition does.
class Run {
 public:
  Run(Model& model, State& state, std::int64_t prompt, std::int64_t tokens, std::int64_t vocabulary)
      : model_(model), state_(state), tokens_(tokens), prompt_(static_cast<std::size_t>(prompt)) {
    for (std::size_t i = 0; i < prompt_.size(); ++i)
      prompt_[i] = static_cast<std::int32_t>((i * 7919 + 13) % static_cast<std::size_t>(vocabulary));
  }
  // Seconds of the prompt from an empty state, and of the tokens after it.
  Result<double> prefill() {
    state_.clear();
    const auto begin = Clock::now();
    for (std::size_t at = 0; at < prompt_.size(); at += chunk)
      if (Status s = step(std::span(prompt_).subspan(at, std::min(chunk, prompt_.size() - at))); !s) return std::move(s.error());
    return since(begin);
  }
  Result<double> decode() {
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < tokens_; ++i) {
      const std::array<std::int32_t, 1> id = {prompt_[static_cast<std::size_t>(i) % prompt_.size()]};
      if (Status s = step(id); !s) return std::move(s.error());
    }
    return since(begin);
  }

 private:
  Status step(std::span<const std::int32_t> ids) {
    const std::array<Segment, 1> segment = {{{0, static_cast<std::int64_t>(ids.size())}}};
    auto batch = Batch::make(state_, segment, Outputs::last);
    if (!batch) return std::move(batch.error());
    auto logits = model_.logits(state_, *batch, ids);
    if (!logits) return std::move(logits.error());
    return {};
  }
  Model& model_;
  State& state_;
  std::int64_t tokens_;
  std::vector<std::int32_t> prompt_;
};

// Of two measurements of the same limits what each reached at best: a neighbour on the machine only takes.
DeviceLimits best_of(DeviceLimits a, const DeviceLimits& b) {
  for (std::size_t i = 0; i < a.by_threads.size() && i < b.by_threads.size(); ++i) {
    LimitsOfThreads& to = a.by_threads[i];
    to.read_bytes_per_second = std::max(to.read_bytes_per_second, b.by_threads[i].read_bytes_per_second);
    for (std::size_t k = 0; k < to.flops.size() && k < b.by_threads[i].flops.size(); ++k)
      to.flops[k].second = std::max(to.flops[k].second, b.by_threads[i].flops[k].second);
    for (std::size_t k = 0; k < to.narrow.size() && k < b.by_threads[i].narrow.size(); ++k)
      to.narrow[k].second = std::max(to.narrow[k].second, b.by_threads[i].narrow[k].second);
  }
  return a;
}

// The device's own instruction set and threads, or the best where its set has no measurement.
double peak_of(const DeviceLimits& l, std::string& isa) {
  double best = 0;
  if (l.by_threads.empty()) return best;
  for (const auto& [name, flops] : l.by_threads.back().flops) {
    if (name == l.isa) return isa = name, flops;
    if (flops > best) best = flops, isa = name;
  }
  return best;
}

std::vector<Tensor> weights_of(Model& m) {
  std::vector<Tensor> all;
  std::vector<std::pair<const Buffer*, std::int64_t>> seen;
  for (const NamedParameter& p : m.parameters())
    for (const RowBlock& b : p.weight->matrix.blocks) {
      const std::pair<const Buffer*, std::int64_t> place{b.data.buffer, b.data.offset};
      if (std::find(seen.begin(), seen.end(), place) != seen.end()) continue;     // the same weight by another name
      seen.push_back(place);
      Tensor t = b.data;
      t.dtype = DType::u8;
      t.shape = {b.rows * b.row_bytes};
      all.push_back(t);
    }
  return all;
}

struct Outcome {
  Mode mode = Mode::exact;
  Figures prefill, decode;                                 // tokens a second
  double first_token = 0;                                  // seconds from the start of the load to the first logits
  double peak_bytes = 0;
  std::int64_t state_bytes = 0;
  DeviceLimits limits;
  Profile prefill_profile, decode_profile;
};

Json figures_json(const Figures& f) {
  JsonObject j;
  j.set("median", Json(f.median()));
  j.set("min", Json(f.values.front()));
  j.set("max", Json(f.values.back()));
  return Json(std::move(j));
}

Json profile_json(const Profile& p) {
  JsonArray rows;
  for (const ProfileRow& r : p.rows) {
    JsonObject j;
    j.set("module", Json(r.module));
    j.set("of", Json(r.of));
    j.set("operation", Json(r.kind));
    j.set("calls", Json(r.calls));
    j.set("seconds", Json(r.seconds));
    j.set("operations", Json(r.flops));
    j.set("bytes", Json(r.bytes));
    rows.push_back(Json(std::move(j)));
  }
  return Json(std::move(rows));
}

void print_json(const Options& o, Model& m, const Outcome& r) {
  JsonObject j;
  j.set("model", Json(m.name()));
  j.set("device", Json(m.device().description()));
  j.set("mode", Json(name(r.mode)));
  j.set("repetitions", Json(o.bench_repeat));
  j.set("prompt_tokens", Json(o.bench_prompt));
  j.set("tokens", Json(o.bench_tokens));
  j.set("prefill_tokens_per_second", figures_json(r.prefill));
  j.set("decode_tokens_per_second", figures_json(r.decode));
  j.set("load_seconds", Json(m.load_report().seconds));
  j.set("first_token_seconds", Json(r.first_token));
  j.set("peak_bytes", Json(r.peak_bytes));
  j.set("weight_bytes", Json(m.load_report().bytes));
  j.set("state_bytes", Json(r.state_bytes));
  const double prefill_flops = r.prefill_profile.flops / static_cast<double>(o.bench_prompt) * r.prefill.median();
  const double decode_bytes = r.decode_profile.bytes / static_cast<double>(o.bench_tokens) * r.decode.median();
  j.set("prefill_operations_per_second", Json(prefill_flops));
  j.set("decode_bytes_per_second", Json(decode_bytes));
  std::string isa;
  const double peak = peak_of(r.limits, isa);
  JsonArray list;
  for (const LimitsOfThreads& l : r.limits.by_threads) {
    JsonObject one, flops;
    one.set("threads", Json(std::int64_t{l.threads}));
    one.set("read_bytes_per_second", Json(l.read_bytes_per_second));
    for (const auto& [name, value] : l.flops) flops.set(name, Json(value));
    one.set("f32_operations_per_second", Json(std::move(flops)));
    JsonObject narrow;
    for (const auto& [name, value] : l.narrow) narrow.set(name, Json(value));
    one.set("narrow_operations_per_second", Json(std::move(narrow)));
    list.push_back(Json(std::move(one)));
  }
  j.set("limits", Json(std::move(list)));
  if (peak > 0) j.set("prefill_share_of_arithmetic", Json(prefill_flops / peak));
  if (!r.limits.by_threads.empty() && r.limits.by_threads.back().read_bytes_per_second > 0)
    j.set("decode_share_of_read", Json(decode_bytes / r.limits.by_threads.back().read_bytes_per_second));
  if (!o.bench_profile.empty()) {
    j.set("prefill_profile", profile_json(r.prefill_profile));
    j.set("decode_profile", profile_json(r.decode_profile));
  }
  std::printf("%s\n", dump(Json(std::move(j))).c_str());
}

void print_limits(const DeviceLimits& limits) {
  if (limits.by_threads.empty()) return;
  std::printf("\n%-32s", "limits of this machine");
  for (const LimitsOfThreads& l : limits.by_threads) std::printf("%16s", counted(static_cast<std::uint64_t>(l.threads), "thread").c_str());
  std::printf("\n%-32s", ("read of " + human_bytes(static_cast<std::uint64_t>(limits.bytes_read)) + " of weights").c_str());
  for (const LimitsOfThreads& l : limits.by_threads) std::printf("%11.1f GB/s", l.read_bytes_per_second / 1e9);
  std::printf("\n");
  for (std::size_t i = 0; i < limits.by_threads[0].flops.size(); ++i) {
    std::printf("%-32s", ("f32 multiply-adds, " + limits.by_threads[0].flops[i].first).c_str());
    for (const LimitsOfThreads& l : limits.by_threads) std::printf("%8.0f GFLOP/s", l.flops[i].second / 1e9);
    std::printf("\n");
  }
  for (std::size_t i = 0; i < limits.by_threads[0].narrow.size(); ++i) {
    std::printf("%-32s", limits.by_threads[0].narrow[i].first.c_str());
    for (const LimitsOfThreads& l : limits.by_threads) std::printf("%8.0f GOP/s  ", l.narrow[i].second / 1e9);
    std::printf("\n");
  }
}

void print_profile(const Profile& p) {
  std::printf("\n%s: %.2f ms in all operations\n", p.title.c_str(), p.seconds * 1e3);
  for (const ProfileRow& r : p.rows) {
    std::printf("  %9.3f ms %5.1f %%  %-10s %s", r.seconds * 1e3, p.seconds > 0 ? 100 * r.seconds / p.seconds : 0, r.kind.c_str(),
                r.label().c_str());
    if (r.flops > 0) std::printf("  %.1f GFLOP/s", r.flops / r.seconds / 1e9);
    if (r.bytes > 0) std::printf("  %.1f GB/s", r.bytes / r.seconds / 1e9);
    std::printf("\n");
  }
}

void print_text(const Options& o, Model& m, const Outcome& r) {
  std::printf("%s on %s, mode %s: medians of %s\n\n", m.name(), m.device().description().c_str(), name(r.mode),
              counted(static_cast<std::uint64_t>(o.bench_repeat), "repetition").c_str());
  std::string isa;
  const double peak = peak_of(r.limits, isa);
  const double read = r.limits.by_threads.empty() ? 0 : r.limits.by_threads.back().read_bytes_per_second;
  const double prefill_flops = r.prefill_profile.flops / static_cast<double>(o.bench_prompt) * r.prefill.median();
  const double decode_bytes = r.decode_profile.bytes / static_cast<double>(o.bench_tokens) * r.decode.median();
  std::printf("prefill of %-8lld %9.1f tokens/s (%.1f to %.1f)   %8.1f GFLOP/s", static_cast<long long>(o.bench_prompt), r.prefill.median(),
              r.prefill.values.front(), r.prefill.values.back(), prefill_flops / 1e9);
  if (peak > 0) std::printf(", %.2f of the f32 multiply-adds of %s", prefill_flops / peak, isa.c_str());
  std::printf("\ndecode of %-9lld %9.1f tokens/s (%.1f to %.1f)   %8.1f GB/s", static_cast<long long>(o.bench_tokens), r.decode.median(),
              r.decode.values.front(), r.decode.values.back(), decode_bytes / 1e9);
  if (read > 0) std::printf(", %.2f of the read", decode_bytes / read);
  std::printf("\nload %.3f s, first token after %.3f s (load and prompt); weights %s, state %s, peak memory %s\n", m.load_report().seconds,
              r.first_token, human_bytes(static_cast<std::uint64_t>(m.load_report().bytes)).c_str(),
              human_bytes(static_cast<std::uint64_t>(r.state_bytes)).c_str(),
              human_bytes(static_cast<std::uint64_t>(r.peak_bytes)).c_str());
  print_limits(r.limits);
  if (o.bench_profile.empty()) return;
  print_profile(r.prefill_profile);
  print_profile(r.decode_profile);
}

}  // namespace

int run_bench(const Options& o, const ModelFactory& factory) {
  Options options = o;
  std::shared_ptr<MeterDevice> meter;
  options.load.around = [&meter](std::shared_ptr<Device> device) { return meter = std::make_shared<MeterDevice>(std::move(device)); };
  const auto begin = Clock::now();
  auto loaded = load(options, factory);
  if (!loaded) return 1;
  Model& m = *loaded->model;
  const auto vocabulary = m.vocabulary();
  if (!vocabulary) return fail({"not-a-language-model", "bench measures models from tokens to logits", {}, ""});
  const std::int64_t wanted = std::max(o.bench_context, o.bench_prompt + o.bench_tokens);
  if (m.context() > 0 && wanted > m.context())
    return fail({"context",
                 "-p " + std::to_string(o.bench_prompt) + " and -n " + std::to_string(o.bench_tokens) + " need " + std::to_string(wanted) +
                     " positions, and the model's context is " + std::to_string(m.context()),
                 {},
                 "fewer tokens of either"});
  auto state = m.new_state({.sequences = 1, .capacity = wanted});
  if (!state) return fail(state.error());
  Run run(m, **state, o.bench_prompt, o.bench_tokens, *vocabulary);
  Outcome r;
  r.mode = loaded->mode;

  // Once to warm up, which is also what a first call takes; once to see what the work is.
  if (auto t = run.prefill(); !t) return fail(t.error());
  r.first_token = since(begin);
  if (auto t = run.decode(); !t) return fail(t.error());
  meter->know(m, **state);
  meter->start();
  if (auto t = run.prefill(); !t) return fail(t.error());
  r.prefill_profile =
      make_profile("prefill of " + counted(static_cast<std::uint64_t>(o.bench_prompt), "token"), o.bench_prompt, meter->take());
  meter->start();
  if (auto t = run.decode(); !t) return fail(t.error());
  r.decode_profile =
      make_profile("decode of " + counted(static_cast<std::uint64_t>(o.bench_tokens), "token"), o.bench_tokens, meter->take());

  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  r.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  r.state_bytes = (*state)->bytes();
  const std::vector<Tensor> weights = weights_of(m);
  // The machine's limits are the CPU's, where it is what computes.
  const bool on_cpu = std::all_of(weights.begin(), weights.end(), [](const Tensor& t) { return t.host<std::byte>() != nullptr; });
  if (on_cpu) r.limits = measure_cpu_limits(weights, o.load.cpu);
  for (std::int64_t i = 0; i < o.bench_repeat; ++i) {
    auto prefill = run.prefill();
    if (!prefill) return fail(prefill.error());
    auto decode = run.decode();
    if (!decode) return fail(decode.error());
    r.prefill.values.push_back(static_cast<double>(o.bench_prompt) / *prefill);
    r.decode.values.push_back(static_cast<double>(o.bench_tokens) / *decode);
  }
  if (on_cpu) r.limits = best_of(std::move(r.limits), measure_cpu_limits(weights, o.load.cpu));
  r.prefill.sort();
  r.decode.sort();

  if (!o.bench_profile.empty()) {
    std::string isa;
    const ProfileLimits limits{r.limits.by_threads.empty() ? 0 : r.limits.by_threads.back().read_bytes_per_second, peak_of(r.limits, isa)};
    const std::string svg =
        profile_svg(std::string(m.name()) + " on " + m.device().description(), {r.prefill_profile, r.decode_profile}, limits);
    if (auto s = write_file(o.bench_profile, svg, Flush::none); !s) return fail(s.error());
  }
  if (o.json) print_json(o, m, r);
  else print_text(o, m, r);
  return 0;
}

}  // namespace modelc::main_program
