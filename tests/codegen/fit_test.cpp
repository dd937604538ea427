// What of a model fits on a device, by made-up sizes; and that the sizes of a model are those of its loads.
#include "codegen/driver/fit.h"

#include <doctest/doctest.h>

#include "codegen/driver/model_sizes.h"
#include "runtime/checkpoint/place_lines.h"
#include "runtime/device/place_text.h"

using namespace modelc;
using namespace modelc::driver;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20, gib = std::int64_t{1} << 30;

// Layers of 100, 200, 300, … MiB of weights, each with a cache of 10; 500 MiB beside them; 50 of activations.
HeldModel model_of(std::int64_t layers) {
  HeldModel m;
  for (std::int64_t i = 0; i < layers; ++i) {
    m.weights.push_back({(i + 1) * 100 * mib, {i}});
    m.caches.push_back({10 * mib, {i}});
  }
  m.weights.push_back({500 * mib, {}, true});
  m.activations = 50 * mib;
  return m;
}

}  // namespace

TEST_CASE("what is kept free: a sixteenth, within bounds") {
  CHECK(kept_free(gib) == 64 * mib);
  CHECK(kept_free(256 * mib) == 64 * mib);
  CHECK(kept_free(24 * gib) == 1536 * mib);
  CHECK(kept_free(80 * gib) == 2 * gib);
  CHECK(room_of(gib, gib) == 960 * mib);
  CHECK(room_of(gib, 100 * mib) == 36 * mib);
  CHECK(room_of(gib, 64 * mib) == 0);
  CHECK(room_of(gib, 0) == 0);
}

TEST_CASE("a device of 24 GB holds the whole model") {
  const HeldModel m = model_of(6);
  const Fit f = what_fits(m, {"model.layers", 6}, "vulkan:0", room_of(24 * gib, 24 * gib));
  CHECK(f.kind == Fit::Kind::whole);
  CHECK(f.weights == 2600 * mib);
  CHECK(f.caches == 60 * mib);
  CHECK(f.activations == 50 * mib);
  CHECK(f.total() == 2710 * mib);
  CHECK(f.taken == f.total());
  CHECK(f.place == "vulkan:0");
  // To the byte.
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:0", 2710 * mib).kind == Fit::Kind::whole);
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:0", 2710 * mib - 1).kind == Fit::Kind::part);
}

TEST_CASE("a device of 1 GB holds the first elements, with their caches and the activations, and nothing of the rest") {
  const HeldModel m = model_of(6);
  const Fit f = what_fits(m, {"model.layers", 6}, "vulkan:1", room_of(gib, gib));
  CHECK(f.kind == Fit::Kind::part);
  CHECK(f.elements == 3);                                  // 600 + 30 + 50; a fourth has 400
  CHECK(f.taken == 680 * mib);
  CHECK(f.left == (400 + 500 + 600 + 30 + 500) * mib);
  CHECK(f.place == "model.layers[0..3]=vulkan:1,cpu");
  const auto pasted = read_placement(f.place);             // what --device makes of it
  REQUIRE(pasted.ok());
  CHECK(pasted->size() == 2);
  CHECK(pasted->front().end == 3);
  CHECK(f.total() == 2710 * mib);
  CHECK(bytes_of_first(m, 3) == f.taken);
  CHECK(bytes_without_first(m, 3) == f.left + m.activations);
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:1", 680 * mib).elements == 3);
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:1", 680 * mib - 1).elements == 2);
  // All of the list, where only what is beside it finds no room.
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:1", 2300 * mib).place == "model.layers[0..6]=vulkan:1,cpu");
}

TEST_CASE("where no element fits, nothing does; and the CPU has the whole or nothing") {
  const HeldModel m = model_of(6);
  const Fit f = what_fits(m, {"model.layers", 6}, "vulkan:0", 159 * mib);
  CHECK(f.kind == Fit::Kind::nothing);
  CHECK(f.elements == 0);
  CHECK(f.place.empty());
  CHECK(f.total() == 2710 * mib);
  CHECK(what_fits(m, {"model.layers", 6}, "vulkan:0", 160 * mib).elements == 1);
  CHECK(what_fits(m, {"model.layers", 6}, "cpu", gib).kind == Fit::Kind::nothing);
  CHECK(what_fits(m, {"model.layers", 6}, "cpu", 3 * gib).place == "cpu");
  CHECK(what_fits(m, {}, "vulkan:0", gib).kind == Fit::Kind::nothing);
  CHECK(what_fits(m, {}, "vulkan:0", 3 * gib).kind == Fit::Kind::whole);
}

TEST_CASE("what several parts read is held once by a device, and by both where it is divided between them") {
  HeldModel m = model_of(3);                               // 100, 200, 300; 500
  m.weights.push_back({40 * mib, {1, 2}});                 // of two layers
  m.weights.push_back({7 * mib, {0}, true});               // of the first and of the rest
  CHECK(what_fits(m, {"l", 3}, "vulkan:0", gib).weights == 1147 * mib);
  CHECK(bytes_of_first(m, 1) == (50 + 100 + 10 + 7) * mib);
  CHECK(bytes_of_first(m, 2) == (50 + 300 + 20 + 7 + 40) * mib);
  CHECK(bytes_of_first(m, 3) == (50 + 600 + 30 + 7 + 40) * mib);
  CHECK(bytes_without_first(m, 1) == (50 + 500 + 20 + 500 + 40 + 7) * mib);
  CHECK(bytes_without_first(m, 2) == (50 + 300 + 10 + 500 + 40 + 7) * mib);
  CHECK(bytes_without_first(m, 3) == (50 + 500 + 7) * mib);
}

TEST_CASE("the text to paste names what was counted") {
  const Fit f = what_fits(model_of(40), {"model.layers", 40}, "vulkan:0", 3 * gib);
  REQUIRE(f.elements == 7);                                // 2,800 + 70 + 50
  const PlaceRule rule{"model.layers", 0, f.elements, "vulkan:0"};
  CHECK(f.place == rule.pattern + "[0.." + std::to_string(*rule.end) + "]=" + rule.device + ",cpu");
  const PlaceLines lines(std::span(&rule, 1));
  CHECK(lines.decides("model.layers.6.mlp.weight"));
  CHECK_FALSE(lines.decides("model.layers.7.mlp.weight"));
}
