// Profiles: layers summed up, the picture's text escaped, the machine's limits of a plausible size.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "runtime/main/profile.h"

#include <doctest/doctest.h>

#include <vector>

#include "runtime/base/thread_team.h"
#include "runtime/device/device.h"
#include "runtime/device/limits.h"

using namespace modelc;
using namespace modelc::main_program;

namespace {

std::vector<Operation> two_layers() {
  std::vector<Operation> all = {{"take", "model", "embed_tokens", 0.5, 0, 100}};
  for (const char* layer : {"model.layers.0", "model.layers.1"}) {
    all.push_back({"linear", std::string(layer) + ".mlp", "up_proj", 2, 4e9, 1e9});
    all.push_back({"rope", std::string(layer) + ".self_attn", "", 1, 0, 0});
  }
  return all;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the same operation of all layers is one row, a layer is one part") {
  const Profile p = make_profile("decode", 8, two_layers());
  CHECK(p.seconds == 6.5);
  CHECK(p.flops == 8e9);
  REQUIRE(p.rows.size() == 3);
  CHECK(p.rows[0].label() == "model.layers.*.mlp.up_proj");
  CHECK(p.rows[0].calls == 2);
  CHECK(p.rows[0].seconds == 4);
  CHECK(p.rows[1].label() == "model.layers.*.self_attn rope");
  CHECK(p.rows[2].label() == "model.embed_tokens");
  REQUIRE(p.layers.size() == 3);
  CHECK(p.layers[0].name == "model.embed_tokens");
  CHECK(p.layers[2].name == "model.layers.1");
  CHECK(p.layers[2].seconds == 3);
}

TEST_CASE("the picture says what it shows, and holds nothing that a file could break it with") {
  std::vector<Operation> operations = two_layers();
  operations.push_back({"linear", "model.<b>\"&\x01", "q_proj", 9, 1e9, 0});
  const std::string svg =
      profile_svg("A & B <c>", {make_profile("prefill of 8 tokens", 8, operations), make_profile("none", 0, {})}, {1e9, 2e9});
  CHECK(contains(svg, "A &amp; B &lt;c&gt;"));
  CHECK(contains(svg, "prefill of 8 tokens"));
  CHECK(contains(svg, "model.layers.*.mlp.up_proj"));
  CHECK(contains(svg, "2 GFLOP/s, 1.00 of the limit"));
  CHECK(contains(svg, "model.layers.1: 3.00 s"));
  CHECK_FALSE(contains(svg, "<b>"));
  CHECK_FALSE(contains(svg, "\x01"));
  CHECK(contains(svg, "viewBox"));
  CHECK_FALSE(contains(svg, "nan"));
  CHECK_FALSE(contains(svg, "embed_tokens (take)"));
}

TEST_CASE("two operations of one module are told apart in the picture") {
  std::vector<Operation> operations = two_layers();
  operations.push_back({"linear", "model", "embed_tokens", 0.25, 1, 1});
  const std::string svg = profile_svg("h", {make_profile("p", 1, operations)}, {});
  CHECK(contains(svg, "model.embed_tokens (take)"));
  CHECK(contains(svg, "model.embed_tokens (linear)"));
}

TEST_CASE("many operations: the rest is one row, and nothing is lost") {
  std::vector<Operation> operations;
  double total = 0;
  for (int i = 0; i < 40; ++i) {
    const std::string name(static_cast<std::size_t>(i) + 1, 'x');
    operations.push_back({"linear", "m", name, 1.0 + i, 0, 0});
    total += 1.0 + i;
  }
  const Profile p = make_profile("p", 1, operations);
  CHECK(p.rows.size() == 40);
  CHECK(p.seconds == total);
  CHECK(contains(profile_svg("h", {p}, {}), "25 further operations"));
}

TEST_CASE("the machine's limits: for each number of threads, and of all that is given") {
  auto device = open_cpu({.threads = 2});
  REQUIRE(device);
  auto buffer = (*device)->allocate(8 << 20);
  REQUIRE(buffer);
  const Tensor data{*buffer, 0, DType::u8, {8 << 20}};
  const DeviceLimits l = measure_cpu_limits({&data, 1}, {.threads = 2});
  CHECK(l.bytes_read == 8 << 20);
  REQUIRE(l.by_threads.size() == 2);
  CHECK(l.by_threads[1].threads == 2);
  for (const LimitsOfThreads& t : l.by_threads) {
    CHECK(t.read_bytes_per_second > 1e6);                  // far below any machine, be it ever so busy
    CHECK(t.read_bytes_per_second < 1e13);
    REQUIRE(!t.flops.empty());
    CHECK(t.flops[0].first == "portable");
    for (const auto& [isa, flops] : t.flops) {
      CHECK(flops > 1e6);
      CHECK(flops < 1e13);
    }
  }
  (*device)->free(*buffer);
}
