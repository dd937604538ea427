// The C API on the C++ one: handles, copies of structs by their size, errors as handles. No exception leaves a function.
#include "runtime/c/modelc.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/build_info.h"
#include "runtime/base/strings.h"
#include "runtime/c/model_type.h"
#include "runtime/chat/chat.h"
#include "runtime/checkpoint/open.h"
#include "runtime/device/place_text.h"
#include "runtime/generate/generator.h"
#include "runtime/generate/text.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/tokenizer/tokenizer.h"

struct modelc_error {
  std::string kind, text;
};

namespace {

using modelc::Error;
using modelc::Result;

struct Loaded {
  std::string name, device;
  std::unique_ptr<modelc::Model> model;
  std::optional<modelc::Tokenizer> tokenizer;
  std::optional<modelc::ChatFormat> chat;
  std::vector<std::int32_t> stop_tokens;
};

}  // namespace

struct modelc_model {
  std::shared_ptr<Loaded> loaded;
};

struct modelc_session {
  std::shared_ptr<Loaded> loaded;                          // before the state, which is freed first
  std::unique_ptr<modelc::State> state;
  std::atomic<bool> cancelled{false};
};

namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "modelc_cancel may be called by a signal handler");

modelc_status failed(const Error& e, modelc_error** error) {
  if (error != nullptr) *error = new modelc_error{e.kind, e.text()};
  return MODELC_ERROR;
}

// Calls f; what it throws becomes an error. Without memory even for that the status alone says it.
template <class F> modelc_status guarded(modelc_error** error, F&& f) {
  try {
    try {
      return f();
    } catch (const std::bad_alloc&) { return failed({"out-of-memory", "out of memory", {}, ""}, error); } catch (const std::exception& e) {
      return failed({"internal", std::string("internal error: ") + e.what(), {}, ""}, error);
    }
  } catch (...) { return MODELC_ERROR; }
}

Error null_argument(const char* function, const char* name) {
  return {"argument", std::string(function) + ": " + name + " is NULL", {}, ""};
}

// The caller's struct, whichever header it was compiled against, as ours: fields that it does not have are 0. A larger one
// must not ask for what is not known here.
template <class S> modelc::Status adopt(const S* given, const char* name, S& options) {
  options = S{};
  if (given == nullptr) return {};
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size))
    return Error{
        "struct-size", std::string(name) + ".size is " + std::to_string(size), {}, "begin with `= MODELC_INIT(" + std::string(name) + ")`"};
  std::memcpy(&options, given, std::min(size, sizeof(S)));
  for (std::size_t at = sizeof(S); at < size; ++at)
    if (reinterpret_cast<const unsigned char*>(given)[at] != 0)
      return Error{"struct-size",
                   std::string(name) + " has fields that modelc " + modelc::runtime_version + " does not know, and one is set",
                   {},
                   "link a newer runtime, or leave them 0"};
  options.size = sizeof(S);
  return {};
}

// Writes as much of `from` as the caller's struct has.
template <class S> modelc::Status give(S from, S* to, const char* name) {
  std::size_t size = 0;
  std::memcpy(&size, to, sizeof(size));
  if (size < sizeof(size))
    return Error{
        "struct-size", std::string(name) + ".size is " + std::to_string(size), {}, "begin with `= MODELC_INIT(" + std::string(name) + ")`"};
  from.size = size;
  std::memcpy(to, &from, std::min(size, sizeof(S)));
  return {};
}

// A list to the caller's buffer, as the head of the header says.
template <class T, class List> modelc_status copy_out(const List& from, T* to, std::size_t capacity, std::size_t* count) {
  if (count != nullptr) *count = from.size();
  if (from.size() > capacity || (to == nullptr && !from.empty())) return MODELC_TOO_SMALL;
  std::copy(from.begin(), from.end(), to);
  return MODELC_OK;
}

Error no_tokenizer(const Loaded& m) {
  return {"no-tokenizer",
          "the checkpoint of " + m.name + " has no tokenizer",
          {},
          "put its tokenizer.json beside the weights, or use token ids"};
}

Result<std::shared_ptr<Loaded>> load(const modelc::ModelFactory& factory, const std::string& path, const modelc::LoadOptions& options) {
  auto checkpoint = modelc::open_checkpoint(path);
  if (!checkpoint) return std::move(checkpoint.error());
  auto loaded = std::make_shared<Loaded>();
  auto model = factory.load(*checkpoint, options);
  if (!model) return std::move(model.error());
  loaded->model = std::move(*model);
  loaded->name = loaded->model->name();
  loaded->device = loaded->model->device().description();
  if (!checkpoint->tokenizer_json.empty()) {
    auto t = modelc::Tokenizer::load(checkpoint->tokenizer_json);
    if (!t) return std::move(t.error());
    loaded->tokenizer.emplace(std::move(*t));
  } else if (checkpoint->metadata && checkpoint->metadata->contains("tokenizer.ggml.model")) {
    auto t = modelc::Tokenizer::from_metadata(*checkpoint->metadata, path);
    if (!t) return std::move(t.error());
    loaded->tokenizer.emplace(std::move(*t));
  }
  auto chat = modelc::ChatFormat::of(*checkpoint);
  if (!chat) return std::move(chat.error());
  loaded->chat = std::move(*chat);
  auto stop = modelc::stop_tokens_of(*checkpoint);
  if (!stop) return std::move(stop.error());
  loaded->stop_tokens = std::move(*stop);
  return loaded;
}

modelc_finish finish_of(modelc::Finish f) {
  switch (f) {
    case modelc::Finish::length: return MODELC_FINISH_LENGTH;
    case modelc::Finish::stop_token: return MODELC_FINISH_STOP_TOKEN;
    case modelc::Finish::stop_string: return MODELC_FINISH_STOP_STRING;
    case modelc::Finish::context: return MODELC_FINISH_CONTEXT;
    case modelc::Finish::cancelled: return MODELC_FINISH_CANCELLED;
    case modelc::Finish::callback: return MODELC_FINISH_CALLBACK;
  }
  return MODELC_FINISH_LENGTH;
}

Result<modelc::GenerateResult> generate(modelc_session& s, std::span<const std::int32_t> prompt, const modelc_generate_options& o) {
  Loaded& m = *s.loaded;
  std::vector<std::string> stop;
  for (std::size_t i = 0; i < o.stop_count; ++i) {
    if (o.stop == nullptr || o.stop[i] == nullptr) return null_argument("modelc_generate", "a string of stop");
    stop.emplace_back(o.stop[i]);
  }
  if (!stop.empty() && !m.tokenizer) return no_tokenizer(m);
  modelc::GenerateOptions options;
  if (o.max_tokens < 0) return Error{"argument", "max_tokens is " + std::to_string(o.max_tokens), {}, "0 takes 128"};
  if (o.max_tokens > 0) options.max_tokens = o.max_tokens;
  options.sampler.temperature = o.temperature;
  options.sampler.top_k = o.top_k;
  if (o.top_p != 0) options.sampler.top_p = o.top_p;
  options.sampler.min_p = o.min_p;
  if (o.repetition_penalty != 0) options.sampler.repetition_penalty = o.repetition_penalty;
  options.sampler.seed = o.seed;
  options.cancel = &s.cancelled;
  if (o.ignore_eos == 0) options.stop_tokens = m.stop_tokens;

  modelc::TextStream stream(m.tokenizer ? &*m.tokenizer : nullptr, stop);
  const auto tell = [&](std::int32_t id, const std::string& piece) {
    return o.on_token == nullptr || o.on_token(o.user, id, piece.data(), piece.size()) != 0;
  };
  bool closed = false;
  auto result = modelc::generate(*m.model, *s.state, 0, prompt, options, [&](std::int32_t id) {
    closed = !tell(id, stream.push(id));
    return !closed && !stream.stopped();
  });
  if (!result) return std::move(result.error());
  if (!stream.stopped() && !closed)
    if (const std::string rest = stream.finish(); !rest.empty()) tell(-1, rest);
  if (stream.stopped()) {
    result->finish = modelc::Finish::stop_string;
    result->tokens.resize(stream.tokens());
  }
  return result;
}

}  // namespace

extern "C" {

const char* modelc_version(void) { return modelc::runtime_version; }

const char* modelc_error_text(const modelc_error* error) { return error != nullptr ? error->text.c_str() : ""; }
const char* modelc_error_kind(const modelc_error* error) { return error != nullptr ? error->kind.c_str() : ""; }
void modelc_error_free(modelc_error* error) { delete error; }

modelc_status modelc_load(const modelc_model_type* type, const char* checkpoint, const modelc_load_options* options, modelc_model** model,
                          modelc_error** error) {
  return guarded(error, [&] {
    if (type == nullptr || type->factory == nullptr) return failed(null_argument("modelc_load", "type"), error);
    if (checkpoint == nullptr) return failed(null_argument("modelc_load", "checkpoint"), error);
    if (model == nullptr) return failed(null_argument("modelc_load", "model"), error);
    modelc_load_options o;
    if (auto s = adopt(options, "modelc_load_options", o); !s) return failed(s.error(), error);
    modelc::LoadOptions load_options;
    if (o.threads < 0 || o.threads > 1024)
      return failed({"argument", "threads is " + std::to_string(o.threads) + ", expected 0 to 1024", {}, "0 takes one a core"}, error);
    load_options.cpu.threads = o.threads;
    if (o.isa != nullptr) load_options.cpu.isa = o.isa;
    load_options.no_mmap = o.no_mmap != 0;
    load_options.strict = o.no_strict == 0;
    load_options.auto_cast = o.auto_cast != 0;
    if (o.device != nullptr) {
      auto place = modelc::read_placement(o.device);
      if (!place) return failed(place.error(), error);
      load_options.place = std::move(*place);
    }
    const std::string mode = o.mode != nullptr ? o.mode : "exact";
    if (mode != "exact" && mode != "fast")
      return failed({"argument", "mode is " + modelc::quote(mode) + ", expected exact or fast", {}, "NULL is exact"}, error);
    load_options.mode = mode == "fast" ? modelc::Mode::fast : modelc::Mode::exact;
    auto loaded = load(*type->factory, checkpoint, load_options);
    if (!loaded) return failed(loaded.error(), error);
    *model = new modelc_model{std::move(*loaded)};
    return MODELC_OK;
  });
}

void modelc_model_free(modelc_model* model) { delete model; }

modelc_status modelc_describe(const modelc_model* model, modelc_model_info* info, modelc_error** error) {
  return guarded(error, [&] {
    if (model == nullptr || info == nullptr) return failed(null_argument("modelc_describe", model == nullptr ? "model" : "info"), error);
    const Loaded& m = *model->loaded;
    const modelc::LoadReport& report = m.model->load_report();
    modelc_model_info i{};
    i.name = m.name.c_str();
    i.device = m.device.c_str();
    i.context = m.model->context();
    i.vocabulary = m.model->vocabulary().value_or(0);
    i.parameters = report.parameters;
    i.bytes = report.bytes;
    i.load_seconds = report.seconds;
    i.tokenizer = m.tokenizer ? 1 : 0;
    i.chat_template = m.chat ? 1 : 0;
    if (auto s = give(i, info, "modelc_model_info"); !s) return failed(s.error(), error);
    return MODELC_OK;
  });
}

modelc_status modelc_encode(const modelc_model* model, const char* text, size_t bytes, int32_t special, int32_t* ids, size_t capacity,
                            size_t* count, modelc_error** error) {
  return guarded(error, [&] {
    if (model == nullptr) return failed(null_argument("modelc_encode", "model"), error);
    if (text == nullptr && bytes > 0) return failed(null_argument("modelc_encode", "text"), error);
    const Loaded& m = *model->loaded;
    if (!m.tokenizer) return failed(no_tokenizer(m), error);
    auto list = m.tokenizer->encode(bytes > 0 ? std::string_view(text, bytes) : std::string_view(), special != 0);
    if (!list) return failed(list.error(), error);
    return copy_out(*list, ids, capacity, count);
  });
}

modelc_status modelc_decode(const modelc_model* model, const int32_t* ids, size_t id_count, char* text, size_t capacity, size_t* count,
                            modelc_error** error) {
  return guarded(error, [&] {
    if (model == nullptr) return failed(null_argument("modelc_decode", "model"), error);
    if (ids == nullptr && id_count > 0) return failed(null_argument("modelc_decode", "ids"), error);
    const Loaded& m = *model->loaded;
    if (!m.tokenizer) return failed(no_tokenizer(m), error);
    return copy_out(m.tokenizer->decode({ids, id_count}), text, capacity, count);
  });
}

modelc_status modelc_encode_chat(const modelc_model* model, const modelc_message* messages, size_t message_count, int32_t* ids,
                                 size_t capacity, size_t* count, modelc_error** error) {
  return guarded(error, [&] {
    if (model == nullptr) return failed(null_argument("modelc_encode_chat", "model"), error);
    if (messages == nullptr && message_count > 0) return failed(null_argument("modelc_encode_chat", "messages"), error);
    const Loaded& m = *model->loaded;
    if (!m.tokenizer) return failed(no_tokenizer(m), error);
    if (!m.chat)
      return failed({"no-chat-template",
                     "the checkpoint of " + m.name + " has no chat template",
                     {},
                     "chat_template.jinja beside the weights gives one; modelc_encode takes a text as it stands"},
                    error);
    modelc::JsonArray list;
    for (size_t i = 0; i < message_count; ++i) {
      if (messages[i].role == nullptr || messages[i].content == nullptr)
        return failed(null_argument("modelc_encode_chat", "a message's role or content"), error);
      list.push_back(modelc::chat_message(messages[i].role, messages[i].content));
    }
    auto text = m.chat->text(list);
    if (!text) return failed(text.error(), error);
    auto encoded = m.tokenizer->encode(*text, false);      // the template has said which special tokens there are
    if (!encoded) return failed(encoded.error(), error);
    return copy_out(*encoded, ids, capacity, count);
  });
}

modelc_status modelc_session_new(modelc_model* model, int64_t capacity, modelc_session** session, modelc_error** error) {
  return guarded(error, [&] {
    if (model == nullptr || session == nullptr)
      return failed(null_argument("modelc_session_new", model == nullptr ? "model" : "session"), error);
    auto state = model->loaded->model->new_state({.sequences = 1, .capacity = capacity});
    if (!state) return failed(state.error(), error);
    auto made = std::make_unique<modelc_session>();
    made->loaded = model->loaded;
    made->state = std::move(*state);
    *session = made.release();
    return MODELC_OK;
  });
}

int64_t modelc_session_truncate(modelc_session* session, int64_t length) {
  if (session == nullptr) return 0;
  return session->state->truncate(0, std::max<int64_t>(length, 0));
}

void modelc_session_free(modelc_session* session) { delete session; }

modelc_status modelc_generate(modelc_session* session, const int32_t* prompt, size_t prompt_count, const modelc_generate_options* options,
                              modelc_generate_result* result, modelc_error** error) {
  return guarded(error, [&] {
    if (session == nullptr) return failed(null_argument("modelc_generate", "session"), error);
    if (prompt == nullptr && prompt_count > 0) return failed(null_argument("modelc_generate", "prompt"), error);
    modelc_generate_options o;
    if (auto s = adopt(options, "modelc_generate_options", o); !s) return failed(s.error(), error);
    auto made = generate(*session, {prompt, prompt_count}, o);
    session->cancelled.store(false);                       // it was meant for the call that now ends
    if (!made) return failed(made.error(), error);
    if (result == nullptr) return MODELC_OK;
    modelc_generate_result r{};
    r.finish = finish_of(made->finish);
    r.prompt_tokens = made->prompt_tokens;
    r.tokens = static_cast<int64_t>(made->tokens.size());
    r.length = session->state->length(0);
    r.prefill_seconds = made->prefill_seconds;
    r.first_token_seconds = made->first_token_seconds;
    r.decode_seconds = made->decode_seconds;
    if (auto s = give(r, result, "modelc_generate_result"); !s) return failed(s.error(), error);
    return MODELC_OK;
  });
}

void modelc_cancel(modelc_session* session) {
  if (session != nullptr) session->cancelled.store(true);
}

modelc_status modelc_logits(modelc_session* session, const int32_t* ids, size_t id_count, float* logits, size_t capacity, size_t* count,
                            modelc_error** error) {
  return guarded(error, [&] {
    if (session == nullptr) return failed(null_argument("modelc_logits", "session"), error);
    if (ids == nullptr && id_count > 0) return failed(null_argument("modelc_logits", "ids"), error);
    modelc::Model& model = *session->loaded->model;
    const auto vocabulary = static_cast<size_t>(model.vocabulary().value_or(0));
    if (count != nullptr) *count = vocabulary;
    // Asked before anything is appended, so that the call can be made again.
    if (vocabulary > 0 && (capacity < vocabulary || logits == nullptr)) return MODELC_TOO_SMALL;
    const std::array<modelc::Segment, 1> segment = {{{0, static_cast<std::int64_t>(id_count)}}};
    auto batch = modelc::Batch::make(*session->state, segment, modelc::Outputs::last);
    if (!batch) return failed(batch.error(), error);
    if (vocabulary == 0) return failed({"not-a-language-model", session->loaded->name + " does not map tokens to logits", {}, ""}, error);
    // A copy: what the call without one gives lasts until another thread's.
    const modelc::EntryDesc& entry = *model.language_entry();
    auto results =
        model.call(entry.name, session->state.get(), *batch,
                   {{entry.inputs[0].name, modelc::HostTensor::of(std::span(ids, id_count), {static_cast<std::int64_t>(id_count)})}});
    if (!results) return failed(results.error(), error);
    return copy_out(results->begin()->second.as<float>(), logits, capacity, count);
  });
}

}  // extern "C"
