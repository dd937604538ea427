// info: the model's modules and weights as loaded. bench: how fast prefill and decode are.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <sys/resource.h>

#include "runtime/base/strings.h"
#include "runtime/generate/compare.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/main/options.h"

namespace modelc::main_program {

int run_info(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  Model& m = *loaded->model;
  const LoadReport& r = m.load_report();
  if (o.json) {
    JsonObject j;
    j.set("model", Json(m.name()));
    j.set("device", Json(m.device().description()));
    j.set("context", Json(m.context()));
    j.set("weights", Json(r.weights));
    j.set("parameters", Json(r.parameters));
    j.set("bytes", Json(r.bytes));
    JsonArray list;
    for (const NamedParameter& p : m.parameters()) {
      JsonObject w;
      w.set("name", Json(p.name));
      w.set("shape", Json(p.weight->spec.shape.text()));
      w.set("source", Json(p.weight->source));
      list.push_back(Json(std::move(w)));
    }
    j.set("tensors", Json(std::move(list)));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
    return 0;
  }
  std::printf("%s on %s: %lld weights, %s parameters, %s; context %lld\n", m.name(), m.device().description().c_str(),
              static_cast<long long>(r.weights), grouped(r.parameters).c_str(), human_bytes(static_cast<std::uint64_t>(r.bytes)).c_str(),
              static_cast<long long>(m.context()));
  for (const NamedParameter& p : m.parameters())
    std::printf("  %s %s  %s\n", p.name.c_str(), p.weight->spec.shape.text().c_str(), p.weight->source.c_str());
  return 0;
}

namespace {

struct Figures {
  std::vector<double> values;
  double at(double share) const { return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)]; }
};

}  // namespace

int run_bench(const Options& o, const ModelFactory& factory) {
  using Clock = std::chrono::steady_clock;
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  Model& m = *loaded->model;
  const auto vocabulary = m.vocabulary();
  if (!vocabulary) return fail({"not-a-language-model", "bench measures models from tokens to logits", {}, ""});
  const std::int64_t wanted = std::max(o.bench_context, o.bench_prompt + o.bench_tokens);
  if (m.context() > 0 && wanted > m.context())
    return fail({"context", "-p " + std::to_string(o.bench_prompt) + " and -n " + std::to_string(o.bench_tokens) + " need " +
                                std::to_string(wanted) + " positions, and the model's context is " + std::to_string(m.context()),
                 {}, "fewer tokens of either"});
  auto state = m.new_state({.sequences = 1, .capacity = wanted});
  if (!state) return fail(state.error());
  std::vector<std::int32_t> prompt(static_cast<std::size_t>(o.bench_prompt));
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>((i * 7919 + 13) % static_cast<std::size_t>(*vocabulary));

  const auto step = [&](std::span<const std::int32_t> ids) -> Result<double> {
    const auto start = Clock::now();
    const std::array<Segment, 1> segment = {{{0, static_cast<std::int64_t>(ids.size())}}};
    auto batch = Batch::make(**state, segment, Outputs::last);
    if (!batch) return std::move(batch.error());
    auto logits = m.logits(**state, *batch, ids);
    if (!logits) return std::move(logits.error());
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Figures prefill, decode;
  for (std::int64_t r = 0; r < o.bench_repeat + 1; ++r) {  // the first is not counted
    (*state)->clear();
    double seconds = 0;
    for (std::size_t at = 0; at < prompt.size(); at += 512) {
      auto t = step(std::span(prompt).subspan(at, std::min<std::size_t>(512, prompt.size() - at)));
      if (!t) return fail(t.error());
      seconds += *t;
    }
    double decoding = 0;
    for (std::int64_t i = 0; i < o.bench_tokens; ++i) {
      const std::array<std::int32_t, 1> id = {prompt[static_cast<std::size_t>(i) % prompt.size()]};
      auto t = step(id);
      if (!t) return fail(t.error());
      decoding += *t;
    }
    if (r == 0) continue;
    prefill.values.push_back(static_cast<double>(o.bench_prompt) / seconds);
    decode.values.push_back(static_cast<double>(o.bench_tokens) / decoding);
  }
  std::sort(prefill.values.begin(), prefill.values.end());
  std::sort(decode.values.begin(), decode.values.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double peak = static_cast<double>(usage.ru_maxrss) * 1024;
  if (o.json) {
    const auto figures = [](const Figures& f) {
      JsonObject j;
      j.set("median", Json(f.at(0.5)));
      j.set("min", Json(f.values.front()));
      j.set("max", Json(f.values.back()));
      return Json(std::move(j));
    };
    JsonObject j;
    j.set("device", Json(m.device().description()));
    j.set("prompt_tokens", Json(o.bench_prompt));
    j.set("tokens", Json(o.bench_tokens));
    j.set("prefill_tokens_per_second", figures(prefill));
    j.set("decode_tokens_per_second", figures(decode));
    j.set("load_seconds", Json(m.load_report().seconds));
    j.set("peak_bytes", Json(peak));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
    return 0;
  }
  std::printf("%s on %s, %lld repetitions\n", m.name(), m.device().description().c_str(), static_cast<long long>(o.bench_repeat));
  std::printf("prefill of %lld  %9.1f tokens/s (%.1f to %.1f)\n", static_cast<long long>(o.bench_prompt), prefill.at(0.5),
              prefill.values.front(), prefill.values.back());
  std::printf("decode of %lld   %9.1f tokens/s (%.1f to %.1f)\n", static_cast<long long>(o.bench_tokens), decode.at(0.5),
              decode.values.front(), decode.values.back());
  std::printf("load %.3f s, peak memory %s, weights %s\n", m.load_report().seconds, human_bytes(static_cast<std::uint64_t>(peak)).c_str(),
              human_bytes(static_cast<std::uint64_t>(m.load_report().bytes)).c_str());
  return 0;
}

}  // namespace modelc::main_program
