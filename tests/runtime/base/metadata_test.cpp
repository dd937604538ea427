#include "runtime/base/metadata.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace modelc;

TEST_CASE("values of every kind, by key and in order") {
  const std::vector<std::string> words{"a", "", "größe"};
  const std::vector<float> scores{0.5f, -1.0f};
  const std::vector<std::int32_t> kinds{1, -3};
  const Metadata m = MetadataBuilder()
                         .add_string("general.architecture", "tiny")
                         .add_u32("tiny.block_count", 4'000'000'000u)
                         .add_i32("tiny.shift", -7)
                         .add_u64("big", std::numeric_limits<std::uint64_t>::max())
                         .add_i64("low", std::numeric_limits<std::int64_t>::min())
                         .add_f32("tiny.eps", 1e-5f)
                         .add_f64("tiny.theta", 1e6)
                         .add("flag", true)
                         .add_strings("words", words)
                         .add_f32s("scores", scores)
                         .add_i32s("kinds", kinds)
                         .add_bools("mask", {true, false})
                         .build();
  REQUIRE(m.size() == 12);
  CHECK(m.key(0) == "general.architecture");
  CHECK(m.find("general.architecture")->as_string() == "tiny");
  CHECK(m.find("tiny.block_count")->as_int() == 4'000'000'000);
  CHECK(m.find("tiny.shift")->as_int() == -7);
  CHECK_FALSE(m.find("tiny.shift")->as_uint());
  CHECK_FALSE(m.find("big")->as_int());
  CHECK(m.find("big")->as_uint() == std::numeric_limits<std::uint64_t>::max());
  CHECK(m.find("low")->as_int() == std::numeric_limits<std::int64_t>::min());
  CHECK(m.find("tiny.eps")->as_double() == double{1e-5f});
  CHECK(m.find("tiny.eps")->text() == "1e-05");
  CHECK(m.find("tiny.theta")->as_double() == 1e6);
  CHECK(m.find("flag")->as_bool() == true);
  CHECK_FALSE(m.find("flag")->as_int());
  CHECK_FALSE(m.find("absent"));
  CHECK_FALSE(m.find("tiny"));

  const MetadataValue list = *m.find("words");
  REQUIRE(list.size() == 3);
  CHECK(list.element_type() == MetadataType::string);
  CHECK(list.at(0).as_string() == "a");
  CHECK(list.at(1).as_string() == "");
  CHECK(list.at(2).as_string() == "größe");
  CHECK(list.text(2) == "[\"a\", \"\", … 3 in all]");
  CHECK(m.find("scores")->at(1).as_double() == -1.0);
  CHECK(m.find("kinds")->at(1).as_int() == -3);
  CHECK(m.find("mask")->at(0).as_bool() == true);
  CHECK(m.find("mask")->at(1).as_bool() == false);

  SUBCASE("a copy of each value says the same") {
    MetadataBuilder again;
    for (std::size_t i = 0; i < m.size(); ++i) again.add_value(m.key(i), m.value(i));
    const Metadata copy = again.build();
    REQUIRE(copy.size() == m.size());
    for (std::size_t i = 0; i < m.size(); ++i) {
      CHECK(copy.key(i) == m.key(i));
      CHECK(copy.value(i).type() == m.value(i).type());
      CHECK(copy.value(i).text(100) == m.value(i).text(100));
    }
    CHECK(std::equal(copy.bytes().begin(), copy.bytes().end(), m.bytes().begin(), m.bytes().end()));
  }
}

TEST_CASE("empty metadata") {
  const Metadata m;
  CHECK(m.empty());
  CHECK_FALSE(m.find(""));
  CHECK(m.keys().empty());
}
