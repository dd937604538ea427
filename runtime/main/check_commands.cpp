// verify and same: the model against a reference, and against itself.
#include <cstdio>

#include "runtime/base/strings.h"
#include "runtime/generate/compare.h"
#include "runtime/main/options.h"

namespace modelc::main_program {

int run_verify(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  auto report = verify(*loaded->model, o.expected, o.verify);
  if (!report) return fail(report.error());
  if (o.json) {
    std::printf("%s\n", dump(report_json(*report)).c_str());
  } else {
    std::printf("%s on %s\n%s", loaded->model->name(), loaded->model->device().description().c_str(),
                report_text(*report, o.verify).c_str());
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

int run_same(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  auto largest = compare_runs(*loaded->model, o.runs, o.seed);
  if (!largest) return fail(largest.error());
  const bool passed = *largest <= o.within;
  if (o.json) {
    JsonObject j;
    j.set("passed", Json(passed));
    j.set("max_abs", Json(*largest));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
  } else {
    std::printf("%s: logits of %s differ by at most %s (allowed %s)\n", passed ? "passed" : "FAILED", join(o.runs, " and ").c_str(),
                shortest(*largest).c_str(), shortest(o.within).c_str());
  }
  return passed ? 0 : 1;
}

}  // namespace modelc::main_program
