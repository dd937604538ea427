#include "runtime/tokenizer/gguf_ids.h"

namespace modelc {
namespace {

// Texts whose ids tell one way of cutting from another.
constexpr const char* probes[] = {
    "",
    "Hello, world!",
    " two  spaces   three\n\n\ttab\r\nend ",
    "I'm you're WE'LL they'd it's DON'T",
    "1 22 333 4444 55555 1234567890 3.14159e-10",
    "camelCaseWord SCREAMING_SNAKE kebab-case snake_case http://example.org/a?b=c&d=%20",
    "naïve café Ångström ﬁ ½ ① Ⅳ e\xCC\x81",
    "Привет, мир! Как дела?",
    "你好，世界。今天天气很好",
    "こんにちは、カタカナ 漢字",
    "안녕하세요 세계",
    "مرحبا بالعالم ١٢٣",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "😀👩‍👩‍👧‍👦🇩🇪 ✓ → ∑∫",
    "for (int i = 0; i < 10; ++i) { a[i] += \"x\\n\"; }  // done",
    "((([[[{{{}}}]]])))!!!???...---===",
    "\xC2\xA0nbsp\xE2\x80\x89thin\xE3\x80\x80wide",
};

}  // namespace

std::optional<std::string> text_with_other_ids(const Tokenizer& before, const Tokenizer& after) {
  const auto differs = [&](const std::string& text) {
    for (const bool special : {true, false}) {
      const auto a = before.encode(text, special), b = after.encode(text, special);
      if (bool(a) != bool(b) || (a && *a != *b)) return true;
    }
    return false;
  };
  for (const char* text : probes)
    if (differs(text)) return text;
  // Runs, which vocabularies have tokens for, and which go on beyond the longest of them.
  for (const char sign : {' ', '\n', '\t', '-', '='})
    for (std::size_t length = 2; length <= 70; ++length) {
      const std::string run(length, sign);
      for (const std::string& text : {run, "a" + run + "b"})
        if (differs(text)) return text;
    }
  for (std::int32_t id = 0; id < before.id_end(); ++id) {
    const std::int32_t one[] = {id};
    std::string text = before.decode(one, false);
    if (differs(text)) return text;
  }
  return std::nullopt;
}

}  // namespace modelc
