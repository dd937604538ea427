// Generates and streams text (or token ids), then says how long it took.
#include <csignal>
#include <cstdio>
#include <unistd.h>

#include <atomic>

#include "runtime/base/strings.h"
#include "runtime/chat/chat.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/text.h"
#include "runtime/main/options.h"
#include "runtime/tokenizer/tokenizer.h"

namespace modelc::main_program {

namespace {

std::atomic<bool> interrupted{false};
void on_interrupt(int) {
  if (interrupted.exchange(true)) _exit(130);              // the second time at once
}

const char* reason(Finish f) {
  switch (f) {
    case Finish::length: return "the number of tokens asked for";
    case Finish::stop_string: return "a string of --stop";
    case Finish::stop_token: return "the token that ends a text";
    case Finish::context: return "the end of the context";
    case Finish::cancelled: return "an interrupt";
    case Finish::callback: return "the output was closed";
  }
  return "";
}

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// The ids of a message, with the system's before it, as the checkpoint's chat template writes them.
Result<std::vector<std::int32_t>> chat_prompt(const Options& o, const CheckpointIndex& checkpoint, const Tokenizer& tokenizer) {
  auto format = ChatFormat::of(checkpoint);
  if (!format) return std::move(format.error());
  if (!*format)
    return Error{"no-chat-template", o.checkpoint.front() + " has no chat template, so --chat has no meaning", {},
                 "chat_template.jinja or `chat_template` in tokenizer_config.json gives one; --prompt takes the text as it stands"};
  JsonArray messages;
  if (o.system) messages.push_back(chat_message("system", *o.system));
  messages.push_back(chat_message("user", *o.chat));
  auto text = (*format)->text(messages);
  if (!text) return std::move(text.error());
  return tokenizer.encode(*text, false);  // the template has said which special tokens there are
}

}  // namespace

int run_generate(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  Model& model = *loaded->model;

  std::optional<Tokenizer> tokenizer;
  if (!loaded->checkpoint->tokenizer_json.empty()) {
    auto t = Tokenizer::load(loaded->checkpoint->tokenizer_json);
    if (!t) return fail(t.error());
    tokenizer.emplace(std::move(*t));
  } else if (loaded->checkpoint->metadata && loaded->checkpoint->metadata->contains("tokenizer.ggml.model")) {
    auto t = Tokenizer::from_metadata(*loaded->checkpoint->metadata, o.checkpoint.front());
    if (!t) return fail(t.error());
    tokenizer.emplace(std::move(*t));
  }
  std::vector<std::int32_t> prompt;
  if (!tokenizer && (o.prompt || o.chat || !o.stop.empty()))
    return fail({"no-tokenizer", o.checkpoint.front() + " has no tokenizer, so " +
                                     (o.prompt ? "--prompt" : o.chat ? "--chat" : "--stop") + " has no meaning",
                 {}, "--tokens 1,2,3 gives token ids"});
  if (o.tokens) {
    prompt = *o.tokens;
  } else {
    auto ids = o.chat ? chat_prompt(o, *loaded->checkpoint, *tokenizer) : tokenizer->encode(*o.prompt);
    if (!ids) return fail(ids.error());
    prompt = std::move(*ids);
  }

  GenerateOptions options;
  options.max_tokens = o.count;
  options.sampler = o.sampler;
  options.cancel = &interrupted;
  if (!o.ignore_eos) {
    auto stop = stop_tokens_of(*loaded->checkpoint);
    if (!stop) return fail(stop.error());
    options.stop_tokens = std::move(*stop);
  }
  PrintHook hook;
  if (o.trace_all) {
    hook = make_print_hook({.filter = o.trace, .export_path = o.export_path, .out = stderr});
    model.add_layer_hook(hook.hook);
  }

  StateOptions state_options;
  const std::int64_t wanted = static_cast<std::int64_t>(prompt.size()) + std::max<std::int64_t>(o.count, 1);
  state_options.capacity = model.context() > 0 ? std::min(model.context(), wanted) : wanted;
  auto state = model.new_state(state_options);
  if (!state) return fail(state.error());

  std::signal(SIGINT, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  const bool text = tokenizer && !o.show_tokens && !o.json;
  std::optional<StreamingDecoder> decoder;
  if (tokenizer) decoder.emplace(*tokenizer);
  StopFinder stop(o.stop);
  std::string whole;
  bool first = true;
  const auto put = [&](const std::string& piece) {
    if (piece.empty()) return true;
    return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
  };
  if (text && o.prompt) put(*o.prompt);
  auto result = generate(model, **state, 0, prompt, options, [&](std::int32_t id) {
    const std::string piece = stop.push(decoder ? decoder->push(id) : "");
    whole += piece;
    const bool more = o.json || put(text ? piece : (first ? "" : ",") + std::to_string(id));
    first = false;
    return more && !stop.found();
  });
  if (!result) return fail(result.error());
  if (decoder) {
    std::string rest = stop.push(decoder->finish());
    rest += stop.finish();
    whole += rest;
    if (text) put(rest);
  }
  if (stop.found()) result->finish = Finish::stop_string;
  if (hook.finish)
    if (auto s = hook.finish(); !s) return fail(s.error());

  const double load_seconds = model.load_report().seconds;
  const double prefill = rate(static_cast<double>(result->prompt_tokens), result->prefill_seconds);
  const double decode = rate(static_cast<double>(result->decode_steps), result->decode_seconds);
  if (o.json) {
    JsonObject j;
    if (tokenizer) j.set("text", Json(whole));
    JsonArray ids;
    for (std::int32_t id : result->tokens) ids.push_back(Json(std::int64_t{id}));
    j.set("tokens", Json(std::move(ids)));
    j.set("finish", Json(reason(result->finish)));
    j.set("prompt_tokens", Json(result->prompt_tokens));
    j.set("load_seconds", Json(load_seconds));
    j.set("first_token_seconds", Json(result->first_token_seconds));
    j.set("prefill_tokens_per_second", Json(prefill));
    j.set("decode_tokens_per_second", Json(decode));
    put(dump(Json(std::move(j))) + "\n");
    return 0;
  }
  put("\n");
  std::fprintf(stderr,
               "\n%lld prompt tokens, %zu generated; stopped by %s\n"
               "load %.3f s, first token %.3f s; prefill %.1f tokens/s, decode %.1f tokens/s\n",
               static_cast<long long>(result->prompt_tokens), result->tokens.size(), reason(result->finish), load_seconds,
               result->first_token_seconds, prefill, decode);
  return 0;
}

}  // namespace modelc::main_program
