// The parts by themselves: splitting, merging, tables, characters.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/byte_alphabet.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/unicode.h"
#include "runtime/tokenizer/utf8.h"
#include "runtime/tokenizer/vocabulary.h"

using namespace modelc;

TEST_CASE("the behaviors of a split") {
  const std::string text = "the-final--countdown";
  std::vector<Match> dashes;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '-') dashes.push_back({i, i + 1});
  const auto split = [&](SplitBehavior behavior, bool invert = false) {
    std::vector<Match> parts;
    split_at(dashes, text.size(), behavior, invert, parts);
    std::string s;
    for (const Match& m : parts) s += text.substr(m.begin, m.end - m.begin) + "|";
    return s;
  };
  CHECK(split(SplitBehavior::removed) == "the|final|countdown|");
  CHECK(split(SplitBehavior::isolated) == "the|-|final|-|-|countdown|");
  CHECK(split(SplitBehavior::merged_with_previous) == "the-|final-|-|countdown|");
  CHECK(split(SplitBehavior::merged_with_next) == "the|-final|-|-countdown|");
  CHECK(split(SplitBehavior::contiguous) == "the|-|final|--|countdown|");
  CHECK(split(SplitBehavior::removed, true) == "-|-|-|");
  CHECK(split(SplitBehavior::merged_with_next, true) == "the-|final-|-|countdown|");
}

TEST_CASE("short and long words are merged alike") {
  // Random merges over few symbols, so that chains, ties of rank at several places and overlaps abound.
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    MergeTable merges;
    std::int32_t symbols = 3;
    for (std::uint32_t rank = 0; rank < 40; ++rank) {
      const std::int32_t left = below(static_cast<std::uint32_t>(symbols)), right = below(static_cast<std::uint32_t>(symbols));
      if (merges.find(left, right).rank != MergeTable::none) continue;
      merges.set(left, right, {(rank * 17) % 41, symbols++});
    }
    std::vector<std::int32_t> word(random() % 60);
    for (std::int32_t& s : word) s = below(3);
    std::vector<std::int32_t> a = word, b = word;
    merge_short_word(merges, a);
    merge_long_word(merges, b);
    CHECK(a == b);
  }
}

TEST_CASE("merges go by rank, then from the left") {
  MergeTable merges;
  merges.set(0, 1, {1, 10});
  merges.set(1, 1, {0, 11});
  for (const auto& merge : {merge_short_word, merge_long_word}) {
    std::vector<std::int32_t> word{0, 1, 1, 1, 1, 0, 1};
    merge(merges, word);
    CHECK(word == std::vector<std::int32_t>{0, 11, 11, 10});
    std::vector<std::int32_t> odd{1, 1, 1};
    merge(merges, odd);
    CHECK(odd == std::vector<std::int32_t>{11, 1});
  }
  merges.set(0, 1, {5, 12});  // again: the last counts
  CHECK(merges.find(0, 1).id == 12);
  CHECK(merges.find(1, 0).rank == MergeTable::none);
}

TEST_CASE("a merge table that grows") {
  MergeTable merges;
  for (std::int32_t i = 0; i < 20000; ++i) merges.set(i, i * 7 % 1000, {static_cast<std::uint32_t>(i), i + 1});
  for (std::int32_t i = 0; i < 20000; ++i) {
    REQUIRE(merges.find(i, i * 7 % 1000).id == i + 1);
    REQUIRE(merges.find(i, 1000).rank == MergeTable::none);
  }
}

TEST_CASE("vocabulary") {
  Vocabulary v;
  CHECK(v.find("a") == -1);
  CHECK(v.add("a", 3) == Vocabulary::Added::yes);
  CHECK(v.add("", 1) == Vocabulary::Added::yes);
  CHECK(v.add("a", 4) == Vocabulary::Added::token_twice);
  CHECK(v.add("b", 3) == Vocabulary::Added::id_twice);
  CHECK(v.size() == 2);
  CHECK(v.end() == 4);
  CHECK(!v.has(0));
  CHECK(!v.has(-1));
  CHECK(v.token(1).empty());
  CHECK(v.find("") == 1);
  for (std::int32_t i = 0; i < 5000; ++i) REQUIRE(v.add("token" + std::to_string(i), 10 + i) == Vocabulary::Added::yes);
  for (std::int32_t i = 0; i < 5000; ++i) {
    REQUIRE(v.find("token" + std::to_string(i)) == 10 + i);
    REQUIRE(v.token(10 + i) == "token" + std::to_string(i));
  }
  CHECK(v.find("token5000") == -1);
}

TEST_CASE("the longest key that begins first") {
  Trie trie;
  CHECK(trie.empty());
  trie.add("ab", 0);
  trie.add("abcd", 1);
  trie.add("bcde", 2);
  trie.add("ab", 3);  // there already
  trie.add("", 4);
  const auto found = trie.find("xabcxbcdeabcd", 0);
  REQUIRE(found);
  CHECK(found->begin == 1);
  CHECK(found->end == 3);
  CHECK(found->value == 0);
  CHECK(trie.find("xabcxbcdeabcd", 3)->value == 2);
  CHECK(trie.find("xabcxbcdeabcd", 9)->value == 1);
  CHECK(!trie.find("xabcxbcdeabcd", 11));
  CHECK(!trie.find("", 0));
}

TEST_CASE("the byte alphabet") {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  std::string spelled;
  byte_alphabet.append(spelled, all);
  CHECK(utf8::valid_prefix(spelled) == spelled.size());
  std::vector<char32_t> characters;
  for (std::size_t at = 0; at < spelled.size();) {
    const utf8::Character c = utf8::next(spelled, at);
    CHECK(byte_alphabet.byte[c.code] == static_cast<int>(characters.size()));
    characters.push_back(c.code);
    at += c.size;
  }
  REQUIRE(characters.size() == 256);
  CHECK(characters[' '] == 0x120);
  CHECK(characters['\n'] == 0x10A);
  CHECK(characters['A'] == 'A');
  CHECK(characters[0xAD] == 0x143);
  CHECK(characters[0xFF] == 0xFF);
  std::sort(characters.begin(), characters.end());
  CHECK(std::adjacent_find(characters.begin(), characters.end()) == characters.end());
}

TEST_CASE("normal forms") {
  using unicode::Form;
  const auto form = [](Form f, std::string text) {
    unicode::normalize(f, text);
    return text;
  };
  CHECK(form(Form::nfc, "plain ASCII") == "plain ASCII");
  CHECK(form(Form::nfc, "e\u0301\uD55C") == "\u00e9\uD55C");
  CHECK(form(Form::nfc, "\u1112\u1161\u11ab") == "\uD55C");
  CHECK(form(Form::nfd, "\u00e9\uD55C") == "e\u0301\u1112\u1161\u11ab");
  CHECK(form(Form::nfc, "q\u0307\u0323") == "q\u0323\u0307");
  CHECK(form(Form::nfc, "\u212b") == "\u00c5");
  CHECK(form(Form::nfkc, "\ufb01\u2460\u00a0") == "fi1 ");
  CHECK(form(Form::nfkd, "\u1e9b\u0323") == "s\u0323\u0307");
  CHECK(form(Form::nfkc, "\u32ff") == "\u32ff");  // newer than the reference's tables
  // Many marks on one base: in order of their classes, and not in quadratic time.
  std::string marks = "a", below, above;
  for (int i = 0; i < 200000; ++i) {
    marks += "\u0301\u0316";
    below += "\u0316";
    above += "\u0301";
  }
  CHECK(form(Form::nfd, marks) == "a" + below + above);
}

TEST_CASE("lower case and properties") {
  std::string text = "ABC \u00c4\u0130\u03a3\u1e9e\U00010D50";
  unicode::lowercase(text);
  CHECK(text == "abc \u00e4i\u0307\u03c3\u00df\U00010D70");
  CHECK(unicode::category('A') == "Lu");
  CHECK(unicode::category(0x31350) == "Lo");
  CHECK(unicode::category(0x378) == "Cn");
  for (const char32_t c : {U' ', U'\t', U'\u0085', U'\u00a0', U'\u3000', U'\u2028'}) CHECK(unicode::is_space(c));
  for (const char32_t c : {U'a', U'\u180e', U'\u200b', U'\ufeff', U'\x1c'}) CHECK(!unicode::is_space(c));
  for (const char32_t c : {U'a', U'_', U'9', U'\u0301', U'\u6cb3', U'\u2167', U'\u203f', U'\u200d', U'\u24b6'}) CHECK(unicode::is_word(c));
  for (const char32_t c : {U'-', U' ', U'\u00b2', U'\u2460', U'\U0001F600'}) CHECK(!unicode::is_word(c));
  for (const char32_t c : {U'7', U'\u00bd', U'\u2167', U'\u0663', U'\u2460'}) CHECK(unicode::is_numeric(c));
  CHECK(!unicode::is_numeric(U'\u4e00'));
}

TEST_CASE("UTF-8") {
  const std::string text = "a\u00e9\u6cb3\U0001F600";
  CHECK(utf8::valid_prefix(text) == text.size());
  std::string again;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Character c = utf8::next(text, at);
    utf8::append(again, c.code);
    at += c.size;
    CHECK(utf8::previous(text, at).code == c.code);
  }
  CHECK(again == text);
  CHECK(utf8::read("\xE6\xB2", 0).cut);
  CHECK(!utf8::read("\xE6x", 0).cut);
  CHECK(utf8::valid_prefix("abcdefghijk\xFFz") == 11);
}
