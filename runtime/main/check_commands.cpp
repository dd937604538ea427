// verify and same: the model against a reference, and against itself.
#include <cstdio>
#include <memory>
#include <span>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/checkpoint/tensor_data.h"
#include "runtime/generate/compare.h"
#include "runtime/main/options.h"

namespace modelc::main_program {

int run_verify(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  auto report = verify(*loaded->model, o.expected, o.verify);
  if (!report) return fail(report.error());
  if (o.json) {
    Json j = report_json(*report);
    j.as_object()->set("device", Json(loaded->model->device().description()));
    if (const std::string done = loaded->model->device().operations(); !done.empty()) j.as_object()->set("operations", Json(done));
    std::printf("%s\n", dump(j).c_str());
  } else {
    std::printf("%s on %s\n%s", loaded->model->name(), loaded->model->device().description().c_str(),
                report_text(*report, o.verify).c_str());
    // All of them on this one device: nothing is computed elsewhere.
    if (const std::string done = loaded->model->device().operations(); !done.empty())
      std::printf("on %s: %s\n", loaded->model->device().description().c_str(), done.c_str());
    // What was done to the bytes on the way in belongs beside a difference.
    if (!report->passed) {
      bool any = false;
      for (const std::string& note : loaded->model->load_report().notes)
        if (note.starts_with("made by `via")) {
          std::printf("%s\n", note.c_str());
          any = true;
        }
      if (!any) std::printf("weights are used as stored: no transform is declared for any of them\n");
    }
  }
  return report->passed ? 0 : 1;
}

namespace {

Result<RunInputs> inputs_of(const std::string& path) {
  RunInputs inputs;
  if (path.empty()) return inputs;
  auto opened = open_checkpoint(path);
  if (!opened) return std::move(opened.error());
  const auto index = std::make_shared<const CheckpointIndex>(std::move(*opened));
  CheckpointData data(index);
  for (const TensorInfo& t : index->tensors()) {
    if (t.shape.size() > Shape::max_rank) return Error{"run", t.name + " in " + path + " has too many axes", {}, ""};
    const Shape shape{std::span<const std::int64_t>(t.shape)};
    const auto dtype = dtype_of(t.encoding);
    if (dtype && is_float(*dtype)) {
      auto values = data.read_f32(t);
      if (!values) return std::move(values.error());
      inputs[t.name] = HostTensor::of(std::span<const float>(*values), shape);
      continue;
    }
    auto values = data.read_i64(t);
    if (!values) return std::move(values.error());
    std::vector<std::int32_t> whole;
    for (const std::int64_t v : *values) {
      if (v < INT32_MIN || v > INT32_MAX)
        return Error{"run", t.name + " in " + path + " holds " + std::to_string(v) + ": out of range", {}, ""};
      whole.push_back(static_cast<std::int32_t>(v));
    }
    inputs[t.name] = HostTensor::of(std::span<const std::int32_t>(whole), shape);
  }
  return inputs;
}

}  // namespace

int run_same(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  auto given = inputs_of(o.inputs);
  if (!given) return fail(given.error());
  auto largest = compare_runs(*loaded->model, o.runs, o.seed, *given);
  if (!largest) return fail(largest.error());
  const bool passed = *largest <= o.within;
  if (o.json) {
    JsonObject j;
    j.set("passed", Json(passed));
    j.set("max_abs", Json(*largest));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
  } else {
    std::printf("%s: results of %s differ by at most %s (allowed %s)\n", passed ? "passed" : "FAILED", join(o.runs, " and ").c_str(),
                shortest(*largest).c_str(), shortest(o.within).c_str());
  }
  return passed ? 0 : 1;
}

}  // namespace modelc::main_program
