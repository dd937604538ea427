// Generation on a small model with random weights: several sequences at once, every end, stop strings, the README's example.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/generate/text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "readme_example.h"
#include "runtime/generate/compare.h"
#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

// One letter a token.
const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,";

Tokenizer letter_tokenizer() {
  JsonObject vocabulary;
  for (std::size_t i = 0; i < letters.size(); ++i) vocabulary.set(letters.substr(i, 1), static_cast<std::int64_t>(i));
  const std::string text = R"({"version": "1.0", "pre_tokenizer": {"type": "FixedLength", "length": 1}, "decoder": {"type": "Fuse"},
    "model": {"type": "WordLevel", "unk_token": ".", "vocab": )" +
                           dump(vocabulary) + "}}";
  return good(Tokenizer::parse(text));
}

GenerateOptions up_to(std::int64_t tokens, float temperature = 0) {
  GenerateOptions o;
  o.max_tokens = tokens;
  o.sampler.temperature = temperature;
  return o;
}

std::vector<std::int32_t> alone(Model& model, const std::vector<std::int32_t>& prompt, GenerateOptions options, std::uint64_t seed) {
  auto state = good(model.new_state());
  options.sampler.seed = seed;
  return good(generate(model, *state, 0, prompt, options)).tokens;
}

}  // namespace

TEST_CASE("several sequences at once give what each gives alone") {
  const auto llama = random_llama();
  const std::vector<Prompt> prompts = {{2, random_tokens(5, 1), 11}, {0, random_tokens(9, 2), 12}, {1, random_tokens(1, 3), 13}};
  for (const float temperature : {0.0F, 1.0F}) {
    GenerateOptions options = up_to(12, temperature);
    options.chunk = 4;
    auto state = good(llama->new_state({.sequences = 3}));
    std::vector<std::vector<std::int32_t>> called(3);
    const auto results = good(generate_batch(*llama, *state, prompts, options, [&](std::size_t i, std::int32_t id) {
      called[i].push_back(id);
      return i != 2 || called[2].size() < 5;               // the third wants five
    }));
    for (std::size_t i = 0; i < 3; ++i) {
      auto wanted = alone(*llama, prompts[i].tokens, options, prompts[i].seed);
      CHECK(wanted.size() == 12);
      if (i == 2) wanted.resize(5);
      CHECK(results[i].tokens == wanted);
      CHECK(called[i] == wanted);
      CHECK(results[i].finish == (i == 2 ? Finish::callback : Finish::length));
      CHECK(results[i].prompt_tokens == static_cast<std::int64_t>(prompts[i].tokens.size()));
    }
  }
}

TEST_CASE("runs feed the tokens that are given, and else those of the seed") {
  const auto llama = random_llama();
  const auto results = [&](const std::string& runs, std::uint64_t seed, const RunInputs& given = {}) {
    return good(run_results(*llama, runs, seed, given));
  };
  CHECK(results("prefill(3)", 1) != results("prefill(3)", 2));
  const std::vector<std::int32_t> ids = {5, 0, 63, 1, 2, 3};
  const auto of = [&](Shape shape) { return RunInputs{{"input_ids", HostTensor::of(std::span<const std::int32_t>(ids), shape)}}; };
  const RunInputs one = of({6}), two = of({2, 3});
  CHECK(results("prefill(6)", 1, one) == results("prefill(6)", 2, one));
  CHECK(results("prefill(6)", 1, one) != results("prefill(6)", 1));
  // A row of the second table is a sequence of its own, which the first is the beginning of.
  const std::vector<float> whole = results("prefill(3)", 1, one), rows = results("batch(3, 1)", 1, two);
  REQUIRE(rows.size() == 4 * 64);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(rows[i] == doctest::Approx(whole[i]).epsilon(1e-4));
  CHECK(good(compare_runs(*llama, {"prefill(6)", "prefill(2)+decode(4)"}, 1, one)) < 1e-4);
  CHECK(good(compare_runs(*llama, {"prefill(3)", "prefill(2)+prefill(1)"}, 1, two)) < 1e-4);
  for (const char* wrong : {"prefill(7)", "batch(1, 1)"}) CHECK(!run_results(*llama, wrong, 1, one));
  CHECK(run_results(*llama, "forwards(2)", 1).error().message == "`forwards` is no entry of Llama");
  CHECK(run_results(*llama, "prefill(0)", 1).error().help.find("or an entry") != std::string::npos);
}

TEST_CASE("every way to end") {
  const auto llama = random_llama();
  const std::vector<std::int32_t> prompt = random_tokens(4);
  const std::vector<std::int32_t> all = alone(*llama, prompt, up_to(10), 0);
  {
    GenerateOptions o = up_to(10);
    o.stop_tokens = {all[6]};
    auto state = good(llama->new_state());
    const auto r = good(generate(*llama, *state, 0, prompt, o));
    CHECK(r.finish == Finish::stop_token);
    const auto first = std::find(all.begin(), all.end(), all[6]);
    CHECK(r.tokens == std::vector<std::int32_t>(all.begin(), first));
  }
  {
    auto state = good(llama->new_state({.sequences = 1, .capacity = 7}));
    const auto r = good(generate(*llama, *state, 0, prompt, up_to(10)));
    CHECK(r.finish == Finish::context);
    CHECK(r.tokens == std::vector<std::int32_t>(all.begin(), all.begin() + 4));  // the last one needs no place
    const auto again = generate(*llama, *state, 0, prompt, up_to(10));
    REQUIRE(!again);
    CHECK(again.error().kind == "context");
    CHECK(again.error().message == "the prompt has 4 tokens, and 0 of 7 positions are free");
  }
  {
    std::atomic<bool> cancel{false};
    GenerateOptions o = up_to(10);
    o.cancel = &cancel;
    auto state = good(llama->new_state());
    int count = 0;
    const auto r = good(generate(*llama, *state, 0, prompt, o, [&](std::int32_t) {
      if (++count == 3) cancel = true;
      return true;
    }));
    CHECK(r.finish == Finish::cancelled);
    CHECK(r.tokens.size() == 3);
    const auto before = good(generate(*llama, *state, 0, prompt, o));
    CHECK(before.finish == Finish::cancelled);
    CHECK(before.tokens.empty());
  }
  auto state = good(llama->new_state());
  CHECK(generate(*llama, *state, 0, {}, up_to(1)).error().kind == "empty-prompt");
  GenerateOptions wrong = up_to(1);
  wrong.sampler.top_p = 2;
  CHECK(generate(*llama, *state, 0, prompt, wrong).error().kind == "sampler-option");
  CHECK(good(generate(*llama, *state, 0, prompt, up_to(0))).tokens.empty());
}

TEST_CASE("stop strings, also across tokens, and no beginning of one") {
  const auto llama = random_llama();
  const Tokenizer tokenizer = letter_tokenizer();
  const std::vector<std::int32_t> prompt = random_tokens(6);
  const std::string all = tokenizer.decode(alone(*llama, prompt, up_to(16), 0));
  REQUIRE(all.size() == 16);
  TextOptions options;
  options.tokens = up_to(16);
  for (const std::string& stop : {all.substr(5, 4), all.substr(0, 1), all.substr(12, 4), all.substr(8, 3) + "#", std::string("#")}) {
    CAPTURE(stop);
    options.stop = {"##", stop};
    auto state = good(llama->new_state());
    std::string given;
    const auto r = good(generate_text(*llama, *state, tokenizer, prompt, options, [&](int, std::string_view piece) {
      given += piece;
      CHECK(given.find(stop) == std::string::npos);
      return true;
    }));
    const std::size_t at = all.find(stop);
    CHECK(r[0].text == all.substr(0, at));
    CHECK(given == r[0].text);
    CHECK(tokenizer.decode(r[0].tokens.tokens) == r[0].text);  // a letter a token: none of them is in the stop string
    CHECK(r[0].finish() == (at == std::string::npos ? Finish::length : Finish::stop_string));
  }
  options.stop.clear();
  options.count = 2;
  options.tokens.sampler.temperature = 1;
  options.tokens.sampler.seed = 5;
  auto state = good(llama->new_state({.sequences = 2}));
  const auto two = good(generate_text(*llama, *state, tokenizer, prompt, options));
  CHECK(two[0].text == tokenizer.decode(alone(*llama, prompt, up_to(16, 1), 5)));
  CHECK(two[1].text == tokenizer.decode(alone(*llama, prompt, up_to(16, 1), 6)));
  options.count = 3;
  CHECK(generate_text(*llama, *state, tokenizer, prompt, options).error().message == "asked for 3 answers, and the state has 2 sequences");
}

TEST_CASE("a stop finder holds back what may begin a stop string, and nothing else") {
  StopFinder finder({"END", "Ex", ""});
  CHECK(finder.push("aE") == "a");
  CHECK(finder.push("N") == "");
  CHECK(finder.push("E") == "EN");
  CHECK(finder.push("y") == "Ey");
  CHECK(finder.push("zEN") == "z");
  CHECK(finder.push("Dq") == "");
  CHECK(finder.found());
  CHECK(finder.push("more") == "");
  StopFinder open({"END"});
  CHECK(open.push("xEN") == "x");
  CHECK(open.finish() == "EN");
  // Against looking at the whole text after each letter.
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stop(1 + random() % 3);
    for (std::string& s : stop)
      for (std::size_t n = 1 + random() % 4; n > 0; --n) s += static_cast<char>('a' + random() % 2);
    std::string text;
    for (std::size_t n = random() % 24; n > 0; --n) text += static_cast<char>('a' + random() % 2);
    std::string wanted = text;
    bool ends = false;
    for (std::size_t end = 1; end <= text.size() && !ends; ++end)
      for (const std::string& s : stop)
        if (std::string_view(text).substr(0, end).ends_with(s)) {
          // Of several that end here the longest begins first.
          const std::string before = text.substr(0, end - s.size());
          if (!ends || before.size() < wanted.size()) wanted = before;
          ends = true;
        }
    StopFinder by_letter(stop);
    std::string given;
    for (const char c : text) given += by_letter.push(std::string_view(&c, 1));
    const bool found = by_letter.found();
    given += by_letter.finish();
    CHECK(given == wanted);
    CHECK(found == ends);
  }
}

TEST_CASE("tokens go out with their text, and not where they reach into a stop string") {
  const Tokenizer tokenizer = letter_tokenizer();
  const auto ids = good(tokenizer.encode("abcabd"));
  TextStream stream(&tokenizer, {"abd"});
  std::vector<std::size_t> counts;
  for (const std::int32_t id : ids) {
    static_cast<void>(stream.push(id));
    counts.push_back(stream.tokens());
  }
  CHECK(counts == std::vector<std::size_t>{0, 0, 3, 3, 3, 3});
  CHECK(stream.stopped());
  TextStream open(&tokenizer, {"abd"});
  CHECK(open.push(ids[0]).empty());
  CHECK(open.tokens() == 0);
  CHECK(open.finish() == "a");
  CHECK(open.tokens() == 1);
  TextStream none(nullptr, {});
  CHECK(none.push(7).empty());
  CHECK(none.tokens() == 1);
}

TEST_CASE("the README's example") {
  const auto llama = random_llama();
  const Tokenizer tokenizer = letter_tokenizer();
  std::atomic<bool> interrupted{false};
  std::ostringstream out;
  const auto text = answer(*llama, CheckpointIndex(), tokenizer, "Hello", interrupted, out);
  REQUIRE_MESSAGE(text, text.error().text());
  CHECK(text->size() == 16);
  CHECK(out.str() == *text);
}
