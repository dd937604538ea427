// Generated models on Vulkan, with every kind of state that a call brings back. The device is lost, at any submission of the load and of
// their calls: errors by name and never anything else; the objects can be destroyed, others work, and the numbers are right as soon as
// nothing fails, and the same bits in every run. Where no driver is, this says SKIPPED.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "codegen/driver/host_compiler.h"
#include "codegen/driver/pipeline.h"
#include "frontend/diagnostics/render.h"
#include "runtime/device/device.h"

using namespace modelc;

namespace {

// A model, what its class and header are called, its layers, and its output's weights where they may lie elsewhere.
struct Example {
  std::string folder, fixture, type, layers, head = {};
};

// Takes a checkpoint's folder. Prints what is wrong, a line each, and "done" at the end. What is called Class, layers and head stands
// before it.
constexpr const char* program_text = R"cpp(
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

  namespace {

  using modelc::LoadOptions;
  using Logits = std::vector<float>;

  int wrong(const std::string& what, std::int64_t k) {
    return std::printf("wrong: %s, the device lost at submission %ld\n", what.c_str(), static_cast<long>(k));
  }

// What an entry has to leave in the state before the first token.
  modelc::Status begin(Class& model, modelc::State& state) {
    const int first = 0;
    for (const modelc::EntryDesc& e : model.entries()) {
      if (e.at != modelc::CallAt::sequences) continue;
      const auto at = modelc::Sequences::make(state, {&first, 1});
      if (!at) return at.error();
      const modelc::Shape shape{1, 6, 20};
      std::vector<float> values;
      for (int i = 0; i < 120; ++i) values.push_back(static_cast<float>(i * 7 % 31) / 16 - 1);
      const auto results =
          model.call(e.name, &state, *at, {{e.inputs[0].name, modelc::HostTensor::of(std::span<const float>(values), shape)}});
      if (!results) return results.error();
    }
    return {};
  }

// A prompt and two tokens behind it.
  modelc::Result<Logits> run(Class& model) {
    auto state = model.new_state({.sequences = 1});
    if (!state) return std::move(state.error());
    if (modelc::Status s = begin(model, **state); !s) return std::move(s.error());
    Logits all;
    for (const std::vector<std::int32_t>& ids : {std::vector<std::int32_t>{1, 5, 9, 2, 7}, {3}, {4}}) {
      const modelc::Segment segment{0, static_cast<std::int64_t>(ids.size())};
      auto batch = modelc::Batch::make(**state, {&segment, 1}, modelc::Outputs::last);
      if (!batch) return std::move(batch.error());
      auto logits = model.forward(**state, ids, *batch);
      if (!logits) {
      // The model and its state go on saying so.
        const auto again = model.forward(**state, ids, *batch);
        if (again) return modelc::Error{"none", "a call after one that failed gives numbers", {}, {}};
        return std::move(logits.error());
      }
      all.insert(all.end(), logits->begin(), logits->end());
    }
    return all;
  }

  bool lost(const modelc::Error& e) { return e.kind == "device-lost" && e.text().find("help:") != std::string::npos; }

  void each_submission(const char* path, LoadOptions options, const Logits& expected, float within) {
    std::int64_t k = 1, at_load = 0, at_call = 0;
    for (;; ++k) {
      if (k == 500) return void(wrong("no run without a failure", k));
      options.vulkan.fail_submit = k;
      auto model = Class::load(path, options);
      if (!model) {
        ++at_load;
        if (!lost(model.error())) wrong(model.error().text(), k);
        continue;
      }
      const auto logits = run(**model);
      if (!logits) {
        ++at_call;
        if (!lost(logits.error())) wrong(logits.error().text(), k);
        if (const auto again = run(**model); again || !lost(again.error())) wrong("a lost device works again", k);
        continue;
      }
      if (logits->size() != expected.size()) wrong("another number of logits", k);
      for (std::size_t i = 0; i < expected.size() && i < logits->size(); ++i)
        if (!(std::fabs((*logits)[i] - expected[i]) <= within)) return void(wrong("other logits", k));
      break;
    }
    if (at_load == 0 || at_call == 0) wrong("no submission of the load, or none of the calls, failed", k);
  }

  }  // namespace

  int main(int, char** argv) {
    LoadOptions host;
    host.place = {{.pattern = "**", .device = "cpu"}};
    auto on_host = Class::load(argv[1], host);
    if (!on_host) return std::puts(on_host.error().text().c_str()), 1;
    const auto expected = run(**on_host);
    if (!expected) return std::puts(expected.error().text().c_str()), 1;

    LoadOptions whole, split;
    whole.place = {{.pattern = "**", .device = "vulkan:0"}};
    each_submission(argv[1], whole, *expected, 1e-4F);
    split.place = {{.pattern = layers, .end = 1, .device = "vulkan:0"}};
    if (*head != '\0') split.place.push_back({.pattern = head, .device = "vulkan:0"});
    split.place.push_back({.pattern = "**", .device = "cpu"});
    each_submission(argv[1], split, *expected, 1e-4F);
    whole.vulkan.device_graph = false;
    each_submission(argv[1], whole, *expected, 1e-4F);

  // Twenty runs, in models that are loaded anew and in those that run on: the same bits.
    whole.vulkan = split.vulkan = {};
    for (const LoadOptions& options : {whole, split}) {
      Logits first;
      for (int i = 0; i < 4; ++i) {
        auto model = Class::load(argv[1], options);
        if (!model) return std::puts(model.error().text().c_str()), 1;
        for (int k = 0; k < 5; ++k) {
          const auto logits = run(**model);
          if (!logits) return std::puts(logits.error().text().c_str()), 1;
          if (first.empty()) first = *logits;
          if (std::memcmp(first.data(), logits->data(), first.size() * sizeof(float)) != 0) wrong("other bits in another run", 0);
        }
      }
    }

  // A module that moves to a device which is lost meanwhile stays where it was.
    for (std::int64_t k = 1;; ++k) {
      host.vulkan.fail_submit = k;
      auto model = Class::load(argv[1], host);
      if (!model) return std::puts(model.error().text().c_str()), 1;
      modelc::Module* first = nullptr;
      for (const auto& m : (*model)->descendants())
        if (m.name == std::string(layers) + ".0") first = m.module;
      if (first == nullptr) return std::puts("no first layer"), 1;
      const modelc::Status moved = first->to("vulkan:0");
      if (moved || k == 500) {
        if (k == 1) wrong("no move failed", k);
        break;
      }
      if (!lost(moved.error()) || moved.error().text().find("stays where it was") == std::string::npos) wrong(moved.error().text(), k);
      const auto logits = run(**model);
      if (!logits || *logits != *expected) wrong(logits ? "other logits after a move that failed" : logits.error().text(), k);
    }
    std::puts("done");
  }
)cpp";

} // namespace

TEST_CASE("generated models on Vulkan: a device that is lost at any submission, and twenty runs") {
  if (const auto device = open_vulkan({}); !device) {
    std::printf("SKIPPED: %s\n", device.error().message.c_str());
    return;
  }
  // Keys and values; rings and recurrences beside them; what an encoder leaves.
  for (const Example& e : {Example{"llama", "llama-tiny", "Llama", "model.layers", "lm_head"},
                           Example{"qwen3_next", "qwen3-next-dense", "Qwen3Next", "model.layers", "lm_head"},
                           Example{"whisper", "whisper-tiny-random", "Whisper", "model.decoder.layers"}}) {
    CAPTURE(e.folder);
    const std::string folder = MODELC_SOURCE_DIR "/examples/" + e.folder;
    driver::Options options;
    options.command = "build";
    options.files = {folder + "/" + e.folder + ".model"};
    options.checkpoint = {folder + "/fixtures/" + e.fixture};
    options.backend = "cpu,vulkan";
    driver::Session s(options);
    const auto fail = [&] { FAIL(diag::render(s.sink, s.sources)); };
    if (!driver::load_model(s, options.files[0])) fail();
    const auto checkpoint = driver::open_checkpoint_of(s);
    const auto config = driver::config_of(s, checkpoint.get());
    const auto program = driver::analyze_model(s, config ? &*config : nullptr);
    if (!program) fail();
    const auto planned = driver::plan_model(s, *program);
    if (!planned) fail();
    auto files = driver::emit_model(s, *planned, "", "", false, false);
    if (!files) fail();
    files->push_back(
        {"failures_main.cpp", fmt::format("#include \"{0}.h\"\nusing Class = {0}::{1};\nconstexpr const char *layers = \"{2}\", "
                                          "*head = \"{3}\";\n",
                                          e.folder, e.type, e.layers, e.head) +
                                  program_text});
    auto compiled = driver::compile_program(*files);
    if (!compiled) FAIL(compiled.error().text());
    std::string output;
    const auto status = driver::run_program({*compiled, options.checkpoint[0]}, &output);
    REQUIRE(status.ok());
    CHECK(*status == 0);
    CHECK(output == "done\n");
  }
}
