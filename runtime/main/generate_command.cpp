// Generates and streams text (or token ids), then says how long it took.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include <atomic>

#include "runtime/base/strings.h"
#include "runtime/chat/chat.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/text.h"
#include "runtime/main/options.h"
#include "runtime/tokenizer/gguf_writer.h"
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
    case Finish::callback: return "the end of its output";
  }
  return "";
}

double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// A reader that has gone away wanted no more: nothing is said, and the status is what its signal would have left. What
// else keeps the output from being written is an error.
int cannot_write(int why) {
  if (why == EPIPE) return 128 + SIGPIPE;
  return fail({"output", std::string("the output cannot be written: ") + std::strerror(why), {}, ""});
}

// The ids of a message, with the system's before it, as the checkpoint's chat template writes them.
Result<std::vector<std::int32_t>> chat_prompt(const Options& o, const CheckpointIndex& checkpoint, const Tokenizer& tokenizer) {
  auto format = ChatFormat::of(checkpoint);
  if (!format) return std::move(format.error());
  if (!*format)
    return Error{"no-chat-template",
                 o.checkpoint.front() + " has no chat template, so --chat has no meaning",
                 {},
                 "chat_template.jinja or `chat_template` in tokenizer_config.json gives one; --prompt takes the text as it stands"};
  JsonArray messages;
  if (o.system) messages.push_back(chat_message("system", *o.system));
  messages.push_back(chat_message("user", *o.chat));
  auto text = (*format)->text(messages);
  if (!text) return std::move(text.error());
  return tokenizer.encode(*text, false);  // the template has said which special tokens there are
}

JsonObject json_of(const GenerateResult& result, const std::string& text, bool has_text) {
  JsonObject j;
  if (has_text) j.set("text", Json(text));
  JsonArray list;
  for (std::int32_t id : result.tokens) list.push_back(Json(std::int64_t{id}));
  j.set("tokens", Json(std::move(list)));
  j.set("finish", Json(reason(result.finish)));
  return j;
}

void add_figures(JsonObject& j, const GenerateResult& result, double load_seconds, Mode mode, std::int64_t answers) {
  j.set("mode", Json(name(mode)));
  j.set("prompt_tokens", Json(result.prompt_tokens));
  j.set("load_seconds", Json(load_seconds));
  j.set("first_token_seconds", Json(result.first_token_seconds));
  j.set("prefill_tokens_per_second", Json(rate(static_cast<double>(result.prompt_tokens * answers), result.prefill_seconds)));
  j.set("decode_tokens_per_second", Json(rate(static_cast<double>(result.decode_steps * answers), result.decode_seconds)));
}

// Several answers at once: each printed whole, in order, as they end at different times.
int several(const Options& o, const Loaded& loaded, State& state, const Tokenizer* tokenizer, const std::vector<std::int32_t>& prompt,
            const GenerateOptions& options) {
  const auto count = static_cast<std::size_t>(o.answers);
  std::vector<Prompt> prompts;
  std::vector<TextStream> streams;
  std::vector<std::string> texts(count);
  for (std::size_t i = 0; i < count; ++i) {
    prompts.push_back({static_cast<int>(i), prompt, o.sampler.seed + i});
    streams.emplace_back(tokenizer, o.stop);
  }
  auto results = generate_batch(*loaded.model, state, prompts, options, [&](std::size_t i, std::int32_t id) {
    texts[i] += streams[i].push(id);
    return !streams[i].stopped();
  });
  if (!results) return fail(results.error());
  std::size_t tokens = 0;
  std::string out;
  JsonArray answers;
  for (std::size_t i = 0; i < count; ++i) {
    GenerateResult& r = (*results)[i];
    if (!streams[i].stopped()) texts[i] += streams[i].finish();
    if (streams[i].stopped()) {
      r.finish = Finish::stop_string;
      r.tokens.resize(streams[i].tokens());
    }
    tokens += r.tokens.size();
    if (o.json) {
      answers.push_back(Json(json_of(r, texts[i], tokenizer != nullptr)));
    } else if (tokenizer != nullptr && !o.show_tokens) {
      out += (i == 0 ? "" : "\n") + o.prompt.value_or("") + texts[i] + "\n";
    } else {
      for (std::size_t t = 0; t < r.tokens.size(); ++t) out += (t == 0 ? "" : ",") + std::to_string(r.tokens[t]);
      out += "\n";
    }
  }
  const GenerateResult& first = results->front();
  const double load_seconds = loaded.model->load_report().seconds;
  if (o.json) {
    JsonObject j;
    j.set("answers", Json(std::move(answers)));
    add_figures(j, first, load_seconds, loaded.mode, o.answers);
    out = dump(Json(std::move(j))) + "\n";
  }
  errno = 0;
  if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0) return cannot_write(errno ? errno : EIO);
  if (!o.json)
    std::fprintf(
        stderr,
        "\n%lld prompt tokens, %d answers of %zu tokens together%s\nload %.3f s, first token %.3f s; decode %.1f tokens/s, mode %s\n",
        static_cast<long long>(first.prompt_tokens), o.answers, tokens,
        first.finish == Finish::cancelled ? "; stopped by an interrupt" : "", load_seconds, first.first_token_seconds,
        rate(static_cast<double>(tokens), first.decode_seconds), name(loaded.mode));
  return 0;
}

}  // namespace

int run_generate(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  Model& model = *loaded->model;

  // Ids in and ids out need none: a tokenizer that is not carried out is then no obstacle.
  const bool ids_alone = o.tokens && o.show_tokens && !o.json && o.stop.empty();
  std::optional<Tokenizer> tokenizer;
  if (!ids_alone && !loaded->checkpoint->tokenizer_json.empty()) {
    auto t = Tokenizer::load(loaded->checkpoint->tokenizer_json);
    if (!t) return fail(t.error());
    tokenizer.emplace(std::move(*t));
  } else if (!ids_alone && loaded->checkpoint->metadata && has_gguf_tokenizer(*loaded->checkpoint->metadata)) {
    auto t = Tokenizer::from_metadata(*loaded->checkpoint->metadata, o.checkpoint.front());
    if (!t) return fail(t.error());
    tokenizer.emplace(std::move(*t));
  }
  if (tokenizer)
    for (const std::string& warning : tokenizer->warnings()) std::fprintf(stderr, "note: %s\n", warning.c_str());
  std::vector<std::int32_t> prompt;
  if (!tokenizer && (o.prompt || o.chat || !o.stop.empty()))
    return fail({"no-tokenizer",
                 o.checkpoint.front() + " has no tokenizer, so " +
                     (o.prompt ? "--prompt"
                      : o.chat ? "--chat"
                               : "--stop") +
                     " has no meaning",
                 {},
                 "put its tokenizer.json beside the weights, or give token ids: --tokens 1,2,3"});
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
  state_options.sequences = o.answers;
  state_options.capacity = model.context() > 0 ? std::min(model.context(), wanted) : wanted;
  auto state = model.new_state(state_options);
  if (!state) return fail(state.error());

  std::signal(SIGINT, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
  if (o.answers > 1) {
    const int status = several(o, *loaded, **state, tokenizer ? &*tokenizer : nullptr, prompt, options);
    if (status == 0 && hook.finish)
      if (auto s = hook.finish(); !s) return fail(s.error());
    return status;
  }
  const bool text = tokenizer && !o.show_tokens && !o.json;
  TextStream stream(tokenizer ? &*tokenizer : nullptr, o.stop);
  std::string whole;
  int unwritten = 0;                                       // the errno of the first write that failed
  const auto put = [&](const std::string& piece) {
    if (piece.empty() || unwritten != 0) return unwritten == 0;
    errno = 0;
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size() || std::fflush(stdout) != 0) unwritten = errno ? errno : EIO;
    return unwritten == 0;
  };
  if (text && o.prompt) put(*o.prompt);
  std::vector<std::int32_t> ids;
  std::size_t shown = 0;
  const auto show = [&](const std::string& piece) {
    whole += piece;
    if (o.json) return true;
    if (text) return put(piece);
    std::string list;
    for (; shown < stream.tokens(); ++shown) list += (shown == 0 ? "" : ",") + std::to_string(ids[shown]);
    return put(list);
  };
  auto result = generate(model, **state, 0, prompt, options, [&](std::int32_t id) {
    ids.push_back(id);
    return show(stream.push(id)) && !stream.stopped();
  });
  if (!result) return fail(result.error());
  if (!stream.stopped()) show(stream.finish());
  if (stream.stopped()) {
    result->finish = Finish::stop_string;
    result->tokens.resize(stream.tokens());
  }
  if (hook.finish)
    if (auto s = hook.finish(); !s) return fail(s.error());

  const double load_seconds = model.load_report().seconds;
  const double prefill = rate(static_cast<double>(result->prompt_tokens), result->prefill_seconds);
  const double decode = rate(static_cast<double>(result->decode_steps), result->decode_seconds);
  if (o.json) {
    JsonObject j = json_of(*result, whole, tokenizer.has_value());
    add_figures(j, *result, load_seconds, loaded->mode, 1);
    put(dump(Json(std::move(j))) + "\n");
    return unwritten == 0 ? 0 : cannot_write(unwritten);
  }
  put("\n");
  if (unwritten != 0) return cannot_write(unwritten);
  std::fprintf(stderr,
               "\n%lld prompt tokens, %zu generated; stopped by %s\n"
               "load %.3f s, first token %.3f s; prefill %.1f tokens/s, decode %.1f tokens/s, mode %s\n",
               static_cast<long long>(result->prompt_tokens), result->tokens.size(), reason(result->finish), load_seconds,
               result->first_token_seconds, prefill, decode, name(loaded->mode));
  return 0;
}

}  // namespace modelc::main_program
