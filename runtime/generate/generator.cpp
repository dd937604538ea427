#include "runtime/generate/generator.h"

#include <algorithm>
#include <array>
#include <chrono>

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
  const auto vocabulary = model.vocabulary();
  if (!vocabulary)
    return Error{"not-a-language-model", std::string(model.name()) + " does not map tokens to logits, so it cannot generate text",
                 {}, "verify and the C++ API call any model"};
  if (prompt.empty()) return Error{"empty-prompt", "the prompt holds no token", {}, "give a text, or --tokens"};
  auto sampler = Sampler::create(options.sampler);
  if (!sampler) return std::move(sampler.error());

  const Stopwatch total;
  GenerateResult result;
  result.prompt_tokens = static_cast<std::int64_t>(prompt.size());
  const std::int64_t room = state.capacity() - state.length(sequence);
  if (state.capacity() > 0 && result.prompt_tokens > room)
    return Error{"context", "the prompt has " + std::to_string(prompt.size()) + " tokens, and " + std::to_string(room) + " of " +
                                std::to_string(state.capacity()) + " positions are free",
                 {}, "shorten it, or give the state more positions (the model's context is " +
                         std::to_string(model.context()) + ")"};

  std::vector<std::int32_t> history(prompt.begin(), prompt.end());
  const std::int64_t chunk = std::max<std::int64_t>(1, options.chunk);
  std::span<const float> logits;
  for (std::size_t at = 0; at < prompt.size();) {
    if (is_cancelled(options)) {
      result.finish = Finish::cancelled;
      return result;
    }
    const auto n = std::min(static_cast<std::size_t>(chunk), prompt.size() - at);
    const std::array<Segment, 1> segment = {{{sequence, static_cast<std::int64_t>(n)}}};
    auto batch = Batch::make(state, segment, Outputs::last);
    if (!batch) return std::move(batch.error());
    auto row = model.logits(state, *batch, prompt.subspan(at, n));
    if (!row) return std::move(row.error());
    logits = *row;
    at += n;
  }
  result.prefill_seconds = total.seconds();

  const Stopwatch* decode = nullptr;
  std::optional<Stopwatch> decoding;
  while (true) {
    if (options.max_tokens <= static_cast<std::int64_t>(result.tokens.size())) break;
    auto token = sampler->sample(logits, history);
    if (!token) return std::move(token.error());
    if (!decode) {
      result.first_token_seconds = total.seconds();
      decode = &decoding.emplace();
    }
    if (std::find(options.stop_tokens.begin(), options.stop_tokens.end(), *token) != options.stop_tokens.end()) {
      result.finish = Finish::stop_token;
      break;
    }
    result.tokens.push_back(*token);
    history.push_back(*token);
    if (on_token && !on_token(*token)) {
      result.finish = Finish::callback;
      break;
    }
    if (is_cancelled(options)) {
      result.finish = Finish::cancelled;
      break;
    }
    if (options.max_tokens <= static_cast<std::int64_t>(result.tokens.size())) break;
    if (state.capacity() > 0 && state.length(sequence) >= state.capacity()) {
      result.finish = Finish::context;
      break;
    }
    const std::array<Segment, 1> segment = {{{sequence, 1}}};
    auto batch = Batch::make(state, segment, Outputs::last);
    if (!batch) return std::move(batch.error());
    const std::array<std::int32_t, 1> ids = {*token};
    auto row = model.logits(state, *batch, ids);
    if (!row) return std::move(row.error());
    logits = *row;
    ++result.decode_steps;
  }
  if (decode) result.decode_seconds = decode->seconds();
  return result;
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
  if (checkpoint.config) {
    const Json* eos = checkpoint.config->root.find("eos_token_id");
    if (eos && !eos->is_null())
      if (auto s = add_ids(*eos, "config.json", ids); !s) return std::move(s.error());
  }
  return ids;
}

}  // namespace modelc
