// The C API on a small model with random weights: results as in C++, every error, structs of other sizes, threads, cancelling.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/c/modelc.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "runtime/c/model_type.h"
#include "runtime/generate/generator.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

extern "C" std::size_t size_in_c(int which);

namespace {

const modelc_model_type type{&handwritten::llama_factory};

struct Folder {
  TemporaryFolder folder;
  Folder() { write_checkpoint(folder, random_weights()); }
};

// One letter a token, so that ids are easy to say.
void add_tokenizer(const TemporaryFolder& folder) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,";
  JsonObject vocabulary;
  for (std::size_t i = 0; i < letters.size(); ++i) vocabulary.set(letters.substr(i, 1), static_cast<std::int64_t>(i));
  const std::string text = R"({"version": "1.0", "pre_tokenizer": {"type": "FixedLength", "length": 1}, "decoder": {"type": "Fuse"},
    "model": {"type": "WordLevel", "unk_token": ".", "vocab": )" +
                           dump(vocabulary) + "}}";
  folder.write("tokenizer.json", text);
  folder.write("chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
}

struct Caught {
  modelc_error* e = nullptr;
  ~Caught() { modelc_error_free(e); }
  std::string kind() const { return modelc_error_kind(e); }
  std::string text() const { return modelc_error_text(e); }
};

modelc_model* load(const std::string& path, const modelc_load_options* options = nullptr) {
  modelc_model* m = nullptr;
  Caught error;
  const modelc_status s = modelc_load(&type, path.c_str(), options, &m, &error.e);
  if (s != MODELC_OK) FAIL(error.text());
  return m;
}

modelc_session* session_of(modelc_model* m, std::int64_t capacity = 0) {
  modelc_session* s = nullptr;
  REQUIRE(modelc_session_new(m, capacity, &s, nullptr) == MODELC_OK);
  return s;
}

struct Seen {
  std::vector<std::int32_t> ids;
  std::string text;
  modelc_session* cancel = nullptr;                        // after three tokens
};
std::int32_t see(void* user, std::int32_t id, const char* text, std::size_t bytes) {
  Seen& s = *static_cast<Seen*>(user);
  if (id >= 0) s.ids.push_back(id);
  s.text.append(text, bytes);
  if (s.cancel != nullptr && s.ids.size() == 3) modelc_cancel(s.cancel);
  return 1;
}

std::vector<std::int32_t> generated(modelc_session* s, const std::vector<std::int32_t>& prompt, std::int64_t n, std::uint64_t seed = 0,
                                    float temperature = 0) {
  Seen seen;
  modelc_generate_options o = MODELC_INIT(modelc_generate_options);
  o.max_tokens = n;
  o.seed = seed;
  o.temperature = temperature;
  o.on_token = see;
  o.user = &seen;
  Caught error;
  if (modelc_generate(s, prompt.data(), prompt.size(), &o, nullptr, &error.e) != MODELC_OK) FAIL(error.text());
  return seen.ids;
}

}  // namespace

TEST_CASE("C and C++ see the same structs") {
  CHECK(size_in_c(0) == sizeof(modelc_load_options));
  CHECK(size_in_c(1) == sizeof(modelc_model_info));
  CHECK(size_in_c(2) == sizeof(modelc_generate_options));
  CHECK(size_in_c(3) == sizeof(modelc_generate_result));
  CHECK(std::string(modelc_version()).find('.') != std::string::npos);
}

TEST_CASE("what is generated is what C++ generates, and a session goes on where it was") {
  const Folder f;
  modelc_model* m = load(f.folder.path());
  modelc_model_info info = MODELC_INIT(modelc_model_info);
  REQUIRE(modelc_describe(m, &info, nullptr) == MODELC_OK);
  CHECK(std::string(info.name) == "Llama");
  CHECK(info.vocabulary == 64);
  CHECK(info.context == 64);
  CHECK(info.parameters > 0);
  CHECK(info.tokenizer == 0);

  const auto llama = random_llama();
  auto state = good(llama->new_state());
  GenerateOptions options;
  options.max_tokens = 12;
  options.sampler.temperature = 1;
  options.sampler.seed = 5;
  const auto prompt = random_tokens(6);
  const auto wanted = good(generate(*llama, *state, 0, prompt, options)).tokens;
  modelc_session* s = session_of(m);
  CHECK(generated(s, prompt, 12, 5, 1) == wanted);

  // 6 + 12 tokens, the last of which no step has read.
  modelc_generate_options o = MODELC_INIT(modelc_generate_options);
  o.max_tokens = 1;
  modelc_generate_result r = MODELC_INIT(modelc_generate_result);
  REQUIRE(modelc_generate(s, &wanted.back(), 1, &o, &r, nullptr) == MODELC_OK);
  CHECK(r.length == 18);
  CHECK(r.tokens == 1);
  CHECK(r.finish == MODELC_FINISH_LENGTH);
  CHECK(modelc_session_truncate(s, 6) == 6);
  CHECK(modelc_session_truncate(s, 0) == 0);
  CHECK(generated(s, prompt, 12, 5, 1) == wanted);

  // Logits of the prompt: as C++ gives them, into a buffer that is asked for first.
  modelc_session_truncate(s, 0);
  std::size_t count = 0;
  CHECK(modelc_logits(s, prompt.data(), prompt.size(), nullptr, 0, &count, nullptr) == MODELC_TOO_SMALL);
  REQUIRE(count == 64);
  std::vector<float> logits(count);
  REQUIRE(modelc_logits(s, prompt.data(), prompt.size(), logits.data(), count, &count, nullptr) == MODELC_OK);
  auto again = good(llama->new_state());
  const Segment segment{0, 6};
  const auto row = good(llama->forward(*again, prompt, good(Batch::make(*again, {&segment, 1}, Outputs::last))));
  CHECK(std::memcmp(logits.data(), row.data(), 64 * sizeof(float)) == 0);

  modelc_model_free(m);                                    // the session keeps it
  modelc_session_truncate(s, 0);
  CHECK(generated(s, prompt, 12, 5, 1) == wanted);
  modelc_session_free(s);
}

TEST_CASE("texts, chats and stop strings") {
  const Folder f;
  add_tokenizer(f.folder);
  modelc_model* m = load(f.folder.path());
  std::size_t count = 0;
  CHECK(modelc_encode(m, "abc", 3, 1, nullptr, 0, &count, nullptr) == MODELC_TOO_SMALL);
  CHECK(count == 3);
  std::int32_t ids[3] = {};
  REQUIRE(modelc_encode(m, "abc", 3, 1, ids, 3, &count, nullptr) == MODELC_OK);
  CHECK(ids[2] == 2);
  char text[3] = {};
  REQUIRE(modelc_decode(m, ids, 3, text, 3, &count, nullptr) == MODELC_OK);
  CHECK(std::string(text, count) == "abc");
  CHECK(modelc_encode(m, nullptr, 0, 1, nullptr, 0, &count, nullptr) == MODELC_OK);
  CHECK(count == 0);
  const modelc_message messages[] = {{"system", "b"}, {"user", "a"}};
  REQUIRE(modelc_encode_chat(m, messages, 2, ids, 3, &count, nullptr) == MODELC_OK);
  CHECK(count == 2);
  CHECK(ids[0] == 1);

  modelc_session* s = session_of(m);
  Seen all;
  modelc_generate_options o = MODELC_INIT(modelc_generate_options);
  o.max_tokens = 20;
  o.on_token = see;
  o.user = &all;
  REQUIRE(modelc_generate(s, ids, 2, &o, nullptr, nullptr) == MODELC_OK);
  CHECK(all.text.size() == 20);
  modelc_session_truncate(s, 0);
  const std::string stop = all.text.substr(7, 2);
  const char* stops[] = {stop.c_str()};
  Seen some;
  o.user = &some;
  o.stop = stops;
  o.stop_count = 1;
  modelc_generate_result r = MODELC_INIT(modelc_generate_result);
  REQUIRE(modelc_generate(s, ids, 2, &o, &r, nullptr) == MODELC_OK);
  CHECK(r.finish == MODELC_FINISH_STOP_STRING);
  CHECK(some.text == all.text.substr(0, all.text.find(stop)));
  CHECK(r.tokens == static_cast<std::int64_t>(some.text.size()));
  modelc_session_free(s);
  modelc_model_free(m);
}

TEST_CASE("errors are values with a kind") {
  const Folder f;
  {
    Caught e;
    modelc_model* m = nullptr;
    CHECK(modelc_load(&type, "/nowhere/at/all", nullptr, &m, &e.e) == MODELC_ERROR);
    CHECK(m == nullptr);
    CHECK(contains(e.text(), "/nowhere/at/all"));
  }
  {
    Caught e;
    modelc_model* m = nullptr;
    CHECK(modelc_load(nullptr, f.folder.path().c_str(), nullptr, &m, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "argument");
    CHECK(modelc_load(&type, nullptr, nullptr, &m, nullptr) == MODELC_ERROR);   // no one asks for the text
    CHECK(modelc_load(&type, f.folder.path().c_str(), nullptr, nullptr, nullptr) == MODELC_ERROR);
  }
  {
    Caught e;
    modelc_model* m = nullptr;
    modelc_load_options o = MODELC_INIT(modelc_load_options);
    o.isa = "abacus";
    CHECK(modelc_load(&type, f.folder.path().c_str(), &o, &m, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "isa-unknown");
  }
  {
    Caught e;
    modelc_model* m = nullptr;
    modelc_load_options o = MODELC_INIT(modelc_load_options);
    o.mode = "swift";
    CHECK(modelc_load(&type, f.folder.path().c_str(), &o, &m, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "argument");
    o.mode = "fast";
    modelc_model_free(load(f.folder.path(), &o));
  }
  for (const auto& [device, kind] : {std::pair("lm_head=tpu,cpu", "device-name"), std::pair("lm_haed=cpu,cpu", "placement")}) {
    Caught e;
    modelc_model* m = nullptr;
    modelc_load_options o = MODELC_INIT(modelc_load_options);
    o.device = device;
    CHECK(modelc_load(&type, f.folder.path().c_str(), &o, &m, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == kind);
    o.device = "model.layers[0..1]=cpu,lm_head=cpu,cpu";
    modelc_model_free(load(f.folder.path(), &o));
  }
  modelc_model* m = load(f.folder.path());
  {
    Caught e;
    std::size_t count = 7;
    CHECK(modelc_encode(m, "abc", 3, 1, nullptr, 0, &count, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "no-tokenizer");
  }
  modelc_session* s = session_of(m, 10);
  {
    Caught e;
    const std::int32_t outside = 64;
    CHECK(modelc_generate(s, &outside, 1, nullptr, nullptr, &e.e) == MODELC_ERROR);
    CHECK(contains(e.text(), "64"));
  }
  {
    Caught e;
    CHECK(modelc_generate(s, nullptr, 0, nullptr, nullptr, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "empty-prompt");
  }
  {
    Caught e;
    const auto long_one = random_tokens(11);
    CHECK(modelc_generate(s, long_one.data(), 11, nullptr, nullptr, &e.e) == MODELC_ERROR);
    CHECK(e.kind() == "context");
  }
  for (int which = 0; which < 3; ++which) {
    Caught e;
    const auto prompt = random_tokens(2);
    modelc_generate_options o = MODELC_INIT(modelc_generate_options);
    if (which == 0) o.temperature = std::numeric_limits<float>::quiet_NaN();
    if (which == 1) o.max_tokens = -1;
    if (which == 2) o.top_k = -1;
    CHECK(modelc_generate(s, prompt.data(), 2, &o, nullptr, &e.e) == MODELC_ERROR);
    CHECK_FALSE(e.text().empty());
  }
  modelc_session_free(s);
  modelc_session_free(nullptr);
  modelc_model_free(m);
  modelc_model_free(nullptr);
}

TEST_CASE("structs of an older and of a newer header") {
  const Folder f;
  // Older: it ends behind `threads`; what follows in memory is not looked at.
  modelc_load_options old = MODELC_INIT(modelc_load_options);
  old.size = offsetof(modelc_load_options, isa);
  old.isa = reinterpret_cast<const char*>(std::uintptr_t{16});
  modelc_model_free(load(f.folder.path(), &old));
  modelc_load_options unset{};
  modelc_model* m = nullptr;
  Caught e;
  CHECK(modelc_load(&type, f.folder.path().c_str(), &unset, &m, &e.e) == MODELC_ERROR);
  CHECK(e.kind() == "struct-size");
  // Newer: fields that are not known here are fine while they are 0.
  struct {
    modelc_load_options known;
    std::int64_t more;
  } newer{MODELC_INIT(modelc_load_options), 0};
  newer.known.size = sizeof(newer);
  modelc_model_free(load(f.folder.path(), &newer.known));
  newer.more = 1;
  Caught later;
  CHECK(modelc_load(&type, f.folder.path().c_str(), &newer.known, &m, &later.e) == MODELC_ERROR);
  CHECK(later.kind() == "struct-size");
  // What comes out goes no further than the caller's struct.
  m = load(f.folder.path());
  modelc_model_info info = MODELC_INIT(modelc_model_info);
  info.size = offsetof(modelc_model_info, vocabulary);
  info.vocabulary = -7;
  REQUIRE(modelc_describe(m, &info, nullptr) == MODELC_OK);
  CHECK(info.context == 64);
  CHECK(info.vocabulary == -7);
  modelc_model_free(m);
}

TEST_CASE("cancelling: from the callback, from another thread, before the call; one call and not the next") {
  const Folder f;
  modelc_model* m = load(f.folder.path());
  modelc_session* s = session_of(m);
  const auto prompt = random_tokens(4);
  Seen seen;
  seen.cancel = s;
  modelc_generate_options o = MODELC_INIT(modelc_generate_options);
  o.max_tokens = 40;
  o.on_token = see;
  o.user = &seen;
  modelc_generate_result r = MODELC_INIT(modelc_generate_result);
  REQUIRE(modelc_generate(s, prompt.data(), 4, &o, &r, nullptr) == MODELC_OK);
  CHECK(r.finish == MODELC_FINISH_CANCELLED);
  CHECK(r.tokens == 3);
  modelc_session_truncate(s, 0);
  modelc_cancel(s);
  REQUIRE(modelc_generate(s, prompt.data(), 4, &o, &r, nullptr) == MODELC_OK);
  CHECK(r.finish == MODELC_FINISH_CANCELLED);
  CHECK(r.tokens == 0);
  CHECK(generated(s, prompt, 10).size() == 10);

  // A thread that would go on for ever but for the other one: the session is emptied and begun anew until it is cancelled.
  std::atomic<bool> begun{false}, ended{false};
  std::thread worker([&] {
    modelc_generate_options forever = MODELC_INIT(modelc_generate_options);
    forever.max_tokens = 50;
    forever.ignore_eos = 1;
    do {
      modelc_session_truncate(s, 0);
      if (modelc_generate(s, prompt.data(), 4, &forever, &r, nullptr) != MODELC_OK) break;
      begun = true;
    } while (r.finish != MODELC_FINISH_CANCELLED);
    ended = true;
  });
  while (!begun && !ended) std::this_thread::yield();
  while (!ended) modelc_cancel(s);                         // again, as one may come when a call is already at its end
  worker.join();
  CHECK(r.finish == MODELC_FINISH_CANCELLED);
  modelc_session_free(s);
  modelc_model_free(m);
}

TEST_CASE("several threads on one model, and several models: each gets what it would get alone") {
  const Folder f;
  modelc_load_options options = MODELC_INIT(modelc_load_options);
  options.threads = 2;
  modelc_model* m = load(f.folder.path(), &options);
  modelc_model* other = load(f.folder.path(), &options);
  constexpr unsigned count = 6;
  std::vector<std::vector<std::int32_t>> wanted(count), found(count);
  for (unsigned i = 0; i < count; ++i) {
    modelc_session* s = session_of(m);
    wanted[i] = generated(s, random_tokens(3 + i, i), 24, i, 1);
    modelc_session_free(s);
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      modelc_session* s = nullptr;
      if (modelc_session_new(i % 3 == 0 ? other : m, 0, &s, nullptr) != MODELC_OK) return;
      const auto prompt = random_tokens(3 + i, i);
      Seen seen;
      modelc_generate_options o = MODELC_INIT(modelc_generate_options);
      o.max_tokens = 24;
      o.seed = i;
      o.temperature = 1;
      o.on_token = see;
      o.user = &seen;
      if (modelc_generate(s, prompt.data(), prompt.size(), &o, nullptr, nullptr) == MODELC_OK) found[i] = seen.ids;
      modelc_session_free(s);
    });
  for (std::thread& t : threads) t.join();
  for (unsigned i = 0; i < count; ++i) CHECK(found[i] == wanted[i]);
  modelc_model_free(m);
  modelc_model_free(other);
}
