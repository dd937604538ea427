// What --device says: lines of a placement, or what is wrong with it.
#include "runtime/device/place_text.h"

#include <doctest/doctest.h>

#include "runtime/base/device_name.h"

using namespace modelc;

namespace {

// "model.layers[0..16]=vulkan:0", one a line.
std::string shown(const std::string& text) {
  const auto rules = read_placement(text);
  if (!rules) return rules.error().kind + ": " + rules.error().text();
  std::string s;
  for (const PlaceRule& r : *rules) {
    s += r.pattern;
    if (r.first || r.end) s += "[" + (r.first ? std::to_string(*r.first) : "") + ".." + (r.end ? std::to_string(*r.end) : "") + "]";
    s += "=" + r.device + "\n";
    CHECK(r.where.empty());
  }
  return s;
}

}  // namespace

TEST_CASE("names of devices") {
  CHECK(read_device_name("cpu") == DeviceName{});
  CHECK(read_device_name("vulkan") == DeviceName{.vulkan = true, .number = 0});
  CHECK(read_device_name("vulkan:0") == read_device_name("vulkan"));
  CHECK(read_device_name("vulkan:1023") == DeviceName{.vulkan = true, .number = 1023});
  for (const char* none : {"", "CPU", "cpu:0", "cpu0", "gpu", "gpu:0", "vulkan:", "vulkan:-1", "vulkan:+1", "vulkan: 1", "vulkan:1024",
                           "vulkan0", "vulkan:99999999999999999999", "vulkan:1x"})
    CHECK_MESSAGE(!read_device_name(none), none);
  for (const char* name : {"cpu", "vulkan:0", "vulkan:12"}) CHECK(read_device_name(name)->text() == name);
}

TEST_CASE("a placement as text") {
  CHECK(shown("cpu") == "**=cpu\n");
  CHECK(shown("vulkan") == "**=vulkan:0\n");
  CHECK(shown("**=vulkan:1") == "**=vulkan:1\n");
  CHECK(shown("model.layers[0..16]=vulkan:0,lm_head=vulkan:0,cpu") == "model.layers[0..16]=vulkan:0\nlm_head=vulkan:0\n**=cpu\n");
  CHECK(shown(" model.layers [ 2.. ] = vulkan:1 , **.mlp=cpu ") == "model.layers[2..]=vulkan:1\n**.mlp=cpu\n");
  CHECK(shown("a[..3]=cpu,a[0..0]=vulkan,b.{i}.c=cpu") == "a[..3]=cpu\na[0..0]=vulkan:0\nb.{i}.c=cpu\n");
  CHECK(shown("**[0..2]=cpu,vulkan") == "**[0..2]=cpu\n**=vulkan:0\n");
}

TEST_CASE("what is wrong with a placement is said of its element") {
  const auto says = [](const std::string& text, const std::vector<std::string>& words) {
    const std::string s = shown(text);
    CHECK_MESSAGE(s.starts_with("device-name: "), s);
    CHECK_MESSAGE(s.find("\n  help: ") != std::string::npos, s);
    for (const std::string& word : words) CHECK_MESSAGE(s.find(word) != std::string::npos, s);
  };
  says("tpu", {"there is no device \"tpu\"", "cpu, vulkan or vulkan:N", "modelc devices"});
  says("lm_head=vulkan:0,tpu:1", {"there is no device \"tpu:1\"", "in \"lm_head=vulkan:0,tpu:1\""});
  says("lm_head=", {"there is no device \"\""});
  says("a=b=cpu", {"\"a=b=cpu\"", "no pattern"});
  says("=cpu", {"device \"=cpu\": the pattern is empty", "** is the whole model"});
  says("[0..2]=cpu,vulkan", {"device \"[0..2]=cpu\": the pattern is empty"});
  says("", {"an element of the list is empty", "PATTERN=NAME"});
  says("a=cpu,,vulkan", {"an element of the list is empty"});
  says("a=cpu,", {"an element of the list is empty"});
  says("a[3..2]=cpu", {"device \"a[3..2]=cpu\"", "the range 3..2 ends before it begins", "[0..16]"});
  for (const char* range : {"[3]", "[a..2]", "[0..2", "[-1..2]", "[0..2].b", "[0..2][3..4]", "[]", "[0.5..2]", "[0..99999999999999999999]"})
    says("a" + std::string(range) + "=cpu", {"is no range", "[0..16], [16..] or [..16]"});
  for (const char* pattern : {"a..b", ".a", "a.", "a. b", "a]"}) says(std::string(pattern) + "=cpu", {"is no pattern of modules"});
  says("cpu,lm_head=vulkan", {"device \"lm_head=vulkan\"", "\"cpu\" before it is the whole model", "stands last"});
  says("**=vulkan,cpu", {"device \"cpu\"", "\"**=vulkan\" before it"});
}

TEST_CASE("whether a placement names a Vulkan device, and which line does first") {
  CHECK(names_vulkan(*read_placement("lm_head=cpu,vulkan")));
  CHECK(!names_vulkan(*read_placement("lm_head=cpu,cpu")));
  const auto split = *read_placement("a=cpu,b=vulkan:2,vulkan");
  REQUIRE(first_vulkan(split) != nullptr);
  CHECK(first_vulkan(split)->pattern == "b");
}
