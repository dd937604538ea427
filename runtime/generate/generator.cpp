#include "runtime/generate/generator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "runtime/base/json.h"

namespace modelc {

namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

bool is_cancelled(const GenerateOptions& o) { return o.cancel && o.cancel->load(std::memory_order_relaxed); }

Status add_ids(const Json& value, const std::string& file, std::vector<std::int32_t>& ids) {
  const auto add = [&](const Json& v) -> Status {
    const auto id = v.as_int();
    if (!id || *id < 0 || *id > INT32_MAX)
      return Error{"stop-tokens", "eos_token_id in " + file + ":" + std::to_string(v.line()) + " is no token id", {}, ""};
    ids.push_back(static_cast<std::int32_t>(*id));
    return {};
  };
  if (const JsonArray* list = value.as_array()) {
    for (const Json& v : *list)
      if (auto s = add(v); !s) return s;
    return {};
  }
  return add(value);
}

}  // namespace

Result<GenerateResult> generate(Model& model, State& state, int sequence, std::span<const std::int32_t> prompt,
                                const GenerateOptions& options, const std::function<bool(std::int32_t)>& on_token) {
  const std::array<Prompt, 1> one = {{{sequence, {prompt.begin(), prompt.end()}, options.sampler.seed}}};
  std::function<bool(std::size_t, std::int32_t)> each;
  if (on_token) each = [&](std::size_t, std::int32_t id) { return on_token(id); };
  auto results = generate_batch(model, state, one, options, each);
  if (!results) return std::move(results.error());
  return std::move(results->front());
}

namespace {

// A sequence under way.
struct Running {
  const Prompt* prompt;
  Sampler sampler;
  std::vector<std::int32_t> history;
  std::vector<float> logits;                               // of its next token
  bool ended = false;
};

Status check_prompt(const Prompt& prompt, const Model& model, const State& state) {
  if (prompt.tokens.empty()) return Error{"empty-prompt", "the prompt holds no token", {}, "give a text, or --tokens"};
  const std::int64_t room = state.capacity() - state.length(prompt.sequence);
  if (state.capacity() > 0 && static_cast<std::int64_t>(prompt.tokens.size()) > room)
    return Error{"context",
                 "the prompt has " + std::to_string(prompt.tokens.size()) + " tokens, and " + std::to_string(room) + " of " +
                     std::to_string(state.capacity()) + " positions are free",
                 {},
                 "shorten it, or give the state more positions (the model's context is " + std::to_string(model.context()) + ")"};
  return {};
}

// Logits of one step, copied while no other thread's call can come between: what Model::logits gives lasts only until then.
Status step(Model& model, State& state, const Batch& batch, std::span<const std::int32_t> ids, std::vector<float>& logits) {
  const EntryDesc& entry = *model.language_entry();        // generate_batch has asked
  auto results =
      model.call(entry.name, &state, batch, {{entry.inputs[0].name, HostTensor::of(ids, {static_cast<std::int64_t>(ids.size())})}});
  if (!results) return std::move(results.error());
  const auto row = results->begin()->second.as<float>();
  logits.assign(row.begin(), row.end());
  return {};
}

// The prompt in chunks; false where an interrupt came.
Result<bool> prefill(Model& model, State& state, Running& r, const GenerateOptions& options) {
  const std::span<const std::int32_t> tokens = r.prompt->tokens;
  const std::int64_t chunk = std::max<std::int64_t>(1, options.chunk);
  for (std::size_t at = 0; at < tokens.size();) {
    if (is_cancelled(options)) return false;
    const auto n = std::min(static_cast<std::size_t>(chunk), tokens.size() - at);
    const std::array<Segment, 1> segment = {{{r.prompt->sequence, static_cast<std::int64_t>(n)}}};
    auto batch = Batch::make(state, segment, Outputs::last);
    if (!batch) return std::move(batch.error());
    if (Status s = step(model, state, *batch, tokens.subspan(at, n), r.logits); !s) return std::move(s.error());
    at += n;
  }
  return true;
}

}  // namespace

Result<std::vector<GenerateResult>> generate_batch(Model& model, State& state, std::span<const Prompt> prompts,
                                                   const GenerateOptions& options,
                                                   const std::function<bool(std::size_t, std::int32_t)>& on_token) {
  const auto vocabulary = model.vocabulary();
  if (!vocabulary)
    return Error{"not-a-language-model",
                 std::string(model.name()) + " does not map tokens to logits, so it cannot generate text",
                 {},
                 "verify and the C++ API call any model"};
  std::vector<Running> running;
  for (const Prompt& prompt : prompts) {
    if (Status status = check_prompt(prompt, model, state); !status) return std::move(status.error());
    SamplerOptions of_this = options.sampler;
    of_this.seed = prompt.seed;
    auto sampler = Sampler::create(std::move(of_this));
    if (!sampler) return std::move(sampler.error());
    running.push_back({&prompt, std::move(*sampler), prompt.tokens, {}});
  }

  const Stopwatch total;
  std::vector<GenerateResult> results(prompts.size());
  bool cancelled = false;
  for (std::size_t i = 0; i < running.size() && !cancelled; ++i) {
    results[i].prompt_tokens = static_cast<std::int64_t>(prompts[i].tokens.size());
    auto whole = prefill(model, state, running[i], options);
    if (!whole) return std::move(whole.error());
    cancelled = !*whole;
  }
  const double prefill_seconds = total.seconds();
  for (GenerateResult& r : results) {
    r.prefill_seconds = prefill_seconds;
    if (cancelled) r.finish = Finish::cancelled;
  }
  if (cancelled) return results;

  std::optional<Stopwatch> decoding;
  double first_token_seconds = 0;
  std::int64_t steps = 0;
  std::vector<float> rows;                                 // logits of a step
  const auto end = [&](std::size_t i, Finish finish) {
    results[i].finish = finish;
    running[i].ended = true;
  };
  while (true) {
    // A token for each sequence, and those that go on after it.
    std::vector<Segment> segments;
    std::vector<std::int32_t> ids;
    std::vector<std::size_t> going;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Running& r = running[i];
      GenerateResult& result = results[i];
      if (r.ended) continue;
      const auto full = [&] { return options.max_tokens <= static_cast<std::int64_t>(result.tokens.size()); };
      if (full()) {
        end(i, Finish::length);
        continue;
      }
      auto token = r.sampler.sample(r.logits, r.history);
      if (!token) return std::move(token.error());
      if (!decoding) {
        first_token_seconds = total.seconds();
        decoding.emplace();
      }
      if (std::find(options.stop_tokens.begin(), options.stop_tokens.end(), *token) != options.stop_tokens.end()) {
        end(i, Finish::stop_token);
        continue;
      }
      result.tokens.push_back(*token);
      r.history.push_back(*token);
      if (on_token && !on_token(i, *token)) {
        end(i, Finish::callback);
      } else if (is_cancelled(options)) {
        end(i, Finish::cancelled);
      } else if (full()) {
        end(i, Finish::length);
      } else if (state.capacity() > 0 && state.length(r.prompt->sequence) >= state.capacity()) {
        end(i, Finish::context);
      } else {
        segments.push_back({r.prompt->sequence, 1});
        ids.push_back(*token);
        going.push_back(i);
      }
    }
    if (going.empty()) break;
    auto batch = Batch::make(state, segments, Outputs::last);
    if (!batch) return std::move(batch.error());
    if (Status s = step(model, state, *batch, ids, rows); !s) return std::move(s.error());
    ++steps;
    const std::size_t width = rows.size() / going.size();
    for (std::size_t k = 0; k < going.size(); ++k) {
      const auto row = std::span(rows).subspan(k * width, width);
      running[going[k]].logits.assign(row.begin(), row.end());
    }
  }
  const double decode_seconds = decoding ? decoding->seconds() : 0;
  for (GenerateResult& r : results) {
    r.first_token_seconds = first_token_seconds;
    r.decode_seconds = decode_seconds;
    r.decode_steps = steps;
  }
  return results;
}

Result<std::vector<std::int32_t>> stop_tokens_of(const CheckpointIndex& checkpoint) {
  std::vector<std::int32_t> ids;
  if (!checkpoint.generation_config_json.empty()) {
    auto file = read_json_file(checkpoint.generation_config_json);
    if (!file) return std::move(file.error());
    const Json* eos = file->root.find("eos_token_id");
    if (eos && !eos->is_null()) {
      if (auto s = add_ids(*eos, "generation_config.json", ids); !s) return std::move(s.error());
      return ids;
    }
  }
  if (checkpoint.metadata) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
      const auto value = checkpoint.metadata->find(key);
      const auto id = value ? value->as_int() : std::nullopt;
      if (id && *id >= 0 && *id <= INT32_MAX) ids.push_back(static_cast<std::int32_t>(*id));
    }
    return ids;
  }
  if (checkpoint.config) {
    const Json* eos = checkpoint.config->root.find("eos_token_id");
    if (eos && !eos->is_null())
      if (auto s = add_ids(*eos, "config.json", ids); !s) return std::move(s.error());
  }
  return ids;
}

}  // namespace modelc
