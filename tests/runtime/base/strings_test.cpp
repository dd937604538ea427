#include <doctest/doctest.h>

#include <limits>

#include "runtime/base/strings.h"

using namespace modelc;

namespace {
using Names = std::vector<std::string>;
}

TEST_CASE("join and split") {
  CHECK(join(Names{"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join(Names{}, ", ").empty());
  CHECK(split("a.b..c", '.') == std::vector<std::string_view>{"a", "b", "", "c"});
  CHECK(split("", '.') == std::vector<std::string_view>{""});
  CHECK(split("a.b.c", '.', 2) == std::vector<std::string_view>{"a", "b.c"});
  CHECK(trim(" \ta b\r\n") == "a b");
  CHECK(trim("  ").empty());
  CHECK(replace_all("a.b.c", ".", "::") == "a::b::c");
  CHECK(replace_all("abc", "", "x") == "abc");
  CHECK(to_lower_ascii("GeLU") == "gelu");
}

TEST_CASE("numbers from text, whole or not at all") {
  CHECK(parse_int("-12") == -12);
  CHECK(parse_uint("4294967296") == 4294967296u);
  for (std::string_view bad : {"", " 1", "1 ", "+1", "1.0", "0x1", "9223372036854775808", "1e3"}) CHECK_FALSE(parse_int(bad));
  CHECK_FALSE(parse_uint("-1"));
  CHECK(parse_double("1e-05") == 1e-05);
  CHECK_FALSE(parse_double("1.0f"));
  CHECK(shortest(1e-05) == "1e-05");
  CHECK(shortest(0.1f) == "0.1");
  CHECK(shortest(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("edit distance and the nearest name") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("hidden_szie", "hidden_size") == 1);
  CHECK(edit_distance("abcdefgh", "zzzzzzzz", 3) == 4);
  const Names names = {"hidden_size", "num_attention_heads", "rms_norm_eps", "rope_theta"};
  CHECK(nearest("hiden_size", names) == "hidden_size");
  CHECK(nearest("hiddenSize", names) == "hidden_size");
  CHECK(nearest("num-attention-heads", names) == "num_attention_heads");
  CHECK_FALSE(nearest("vocab", names));
  CHECK_FALSE(nearest("x", Names{"y"}));
  CHECK_FALSE(nearest("abc", Names{}));
  CHECK(nearest("layers.1.mlp.upproj.weight", Names{"layers.1.mlp.down_proj.weight", "layers.1.mlp.up_proj.weight"}) ==
        "layers.1.mlp.up_proj.weight");
}

TEST_CASE("sizes and counts for people") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(999'949) == "999.9 kB");
  CHECK(human_bytes(999'950) == "1.0 MB");
  CHECK(human_bytes(1'234'567'890) == "1.2 GB");
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "18.4 EB");
  CHECK(grouped(std::uint64_t{999}) == "999");
  CHECK(grouped(std::uint64_t{1234567}) == "1,234,567");
  CHECK(grouped(std::numeric_limits<std::int64_t>::min()) == "-9,223,372,036,854,775,808");
  CHECK(counted(1, "tensor") == "1 tensor");
  CHECK(counted(0, "tensor") == "0 tensors");
  CHECK(counted(1200, "entry", "entries") == "1,200 entries");
  CHECK(listed(Names{"a"}) == "a");
  CHECK(listed(Names{"a", "b"}) == "a and b");
  CHECK(listed(Names{"a", "b", "c"}, 2) == "a, b and c");
  CHECK(listed(Names{"a", "b", "c", "d"}, 2) == "a, b and 2 more");
  CHECK(shape_text(std::vector<std::int64_t>{2, 3}) == "[2, 3]");
  CHECK(shape_text({}) == "[]");
}

TEST_CASE("any bytes in a message") {
  CHECK(quote("a\"\\\n\t\r\x1b\x7f") == R"("a\"\\\n\t\r\x1b\x7f")");
  CHECK(printable("grün 模型 😀") == "grün 模型 😀");
  CHECK(printable("a\xff\xc0\x80") == "a\\xff\\xc0\\x80");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\u{9b}31m");             // a C1 control, which terminals obey
  CHECK(printable("\xe2\x80\xae"
                  "abc") == "\\u{202e}abc");       // turns the direction of text
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");          // a surrogate
  CHECK(printable(std::string(1000, 'x')).size() == 200 + std::string("…").size());
  CHECK(printable("aü", 1) == "a…");
  CHECK(is_utf8("aü模😀"));
  for (std::string_view bad : {"\x80", "\xc1\x81", "\xe0\x80\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80", "\xe6\xa8"})
    CHECK_FALSE(is_utf8(bad));
  CHECK(first_not_utf8("ab\xff") == 2);
}
