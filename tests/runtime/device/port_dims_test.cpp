// Sizes of ports: expressions over run-time axes, solved for the axis that an input binds.
#include "runtime/device/port_dims.h"

#include "tests/runtime/device/llama_support.h"

using namespace modelc;
using namespace modelc::test;

namespace {

const std::vector<AxisDesc> axes = {{"tokens"}, {"outputs", 0}, {"batch"}, {"seq"}, {"frames", 2, 3000, 2}, {"parts"}};

PortDim dim(const std::string& text) { return good(PortDim::parse(text, axes)); }

StepSizes sizes(std::int64_t frames, std::int64_t parts) {
  StepSizes s(7, 2, 3);
  s.size[4] = frames;
  s.size[5] = parts;
  return s;
}

}  // namespace

TEST_CASE("sizes: numbers, axes, sums of products, whole divisions") {
  const StepSizes s = sizes(10, 5);
  for (const auto& [text, value] : std::vector<std::pair<std::string, std::int64_t>>{{"576", 576},
                                                                                     {"tokens", 7},
                                                                                     {"2 * tokens + 1", 15},
                                                                                     {"tokens * parts - 3", 32},
                                                                                     {"-tokens + 9", 2},
                                                                                     {"div(frames + 1, 2)", 5},
                                                                                     {"3 * div(frames - 1, 4) * parts", 30},
                                                                                     {"(tokens + 1) * 2", 16}}) {
    CAPTURE(text);
    CHECK(dim(text).value(s) == value);
  }
  CHECK(dim("64").number() == 64);
  CHECK(dim("frames").axis() == 4);
  CHECK_FALSE(dim("2 * frames").axis().has_value());
  CHECK(dim("frames * parts").axes() == 0b110000u);
  CHECK_FALSE(dim("9223372036854775807 * tokens").value(s).has_value());
}

TEST_CASE("what is no size is refused") {
  for (const char* text : {"", "tokens +", "2 tokens", "div(tokens, 0)", "div(tokens)", "(tokens", "tokens)", "* 2"}) {
    CAPTURE(text);
    CHECK(PortDim::parse(text, axes).error().kind == "axis");
  }
  CHECK(PortDim::parse("patches", axes).error().message == "there is no axis \"patches\"");
  CHECK(PortDim::parse(std::string(100, '(') + "1", axes).error().kind == "axis");
  CHECK(good(parse_port_shape("[batch, div(frames + 1, 2), 64]", axes)).size() == 3);
  CHECK(good(parse_port_shape("[]", axes)).empty());
  CHECK_FALSE(parse_port_shape("[1, 2, 3, 4, 5, 6, 7]", axes).ok());
  CHECK_FALSE(parse_port_shape("64", axes).ok());
}

TEST_CASE("an axis follows from a size that is computed from it, when one value gives it") {
  CHECK(solve(dim("2 * parts + 1"), 15, 5, axes[5], sizes(0, 0)) == 7);
  CHECK_FALSE(solve(dim("2 * parts + 1"), 16, 5, axes[5], sizes(0, 0)).has_value());
  CHECK(solve(dim("frames * parts"), 60, 5, axes[5], sizes(10, 0)) == 6);
  // Only every second size of frames counts, so that the division leaves one.
  CHECK(solve(dim("div(frames + 1, 2)"), 5, 4, axes[4], sizes(0, 0)) == 10);
  CHECK_FALSE(solve(dim("div(parts, 2)"), 5, 5, axes[5], sizes(0, 0)).has_value());
  CHECK_FALSE(solve(dim("frames"), 3002, 4, axes[4], sizes(0, 0)).has_value());
}

namespace {

// frames go in, half of them come out: an axis of its own, a size computed from it, no batch.
class Halves final : public Model {
 public:
  static std::unique_ptr<Halves> make() {
    const TemporaryFolder folder;
    SafetensorsWriter writer;
    const std::vector<float> nothing(1);
    REQUIRE(writer.add_f32("unused", {1}, nothing).ok());
    REQUIRE(writer.write(folder / "model.safetensors").ok());
    auto model = std::make_unique<Halves>();
    const auto index = good(open_checkpoint(folder.path()));
    const Status s = model->load_weights(index, CheckpointRulesData{}, {.strict = false});
    if (!s) FAIL(s.error().text());
    return model;
  }
  const char* type_name() const override { return "Halves"; }
  std::span<const EntryDesc> entries() const override { return entries_; }
  std::span<const AxisDesc> axes() const override { return ::axes; }
  std::int64_t context() const override { return 0; }
  std::int64_t arena_bytes(const StepSizes& s) const override { return 4 * s.axis(4); }
  void members(MemberVisitor&) override {}

 private:
  void run(int, Step& s, std::span<const Tensor>, std::span<const Tensor> out) const override { s.arange(out[0].as({s.axis(4) / 2})); }
  const std::vector<EntryDesc> entries_ = {
      {.name = "forward",
       .inputs = {{.name = "twice", .shape = "[2 * frames, 1]"}, {.name = "keep", .shape = "[frames]", .default_value = 1.0}},
       .outputs = {{.name = "y", .shape = "[div(frames, 2)]"}},
       .at = CallAt::none}};
};

}  // namespace

TEST_CASE("a call binds a model's own axes, and says what does not fit") {
  const auto model = Halves::make();
  const auto call = [&](Shape twice, std::int64_t keep = 0) {
    std::map<std::string, HostTensor> in;
    const std::vector<float> zeros(static_cast<std::size_t>(twice.count() + keep));
    in.emplace("twice", HostTensor::of(std::span(zeros).first(static_cast<std::size_t>(twice.count())), twice));
    if (keep > 0) in.emplace("keep", HostTensor::of(std::span(zeros).first(static_cast<std::size_t>(keep)), {keep}));
    return model->call("forward", nullptr, in);
  };
  CHECK(good(call({20, 1})).at("y").shape == Shape{5});
  CHECK(good(call({20, 1}, 10)).at("y").shape == Shape{5});
  CHECK(call({20, 1}, 8).error().message == "Halves.forward: twice has shape [20, 1], expected [2 * frames, 1] = [16, 1]");
  CHECK(call({2, 1}, 1).error().message == "Halves.forward: frames is 1, expected from 2 to 3000, a multiple of 2");
  CHECK(call({22, 1}).error().message ==
        "Halves.forward: twice has shape [22, 1], expected [2 * frames, 1]: no size of frames gives 2 * frames = 22");
}
