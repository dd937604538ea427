// What a `test` block asks for, read from its text.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/source/source.h"
#include "frontend/syntax/ast.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace modelc::driver {

struct TestBlock {
  std::string config_file;                       // "": none
  std::optional<Json> values;                    // `with { … }`, or the whole configuration
  std::vector<std::string> checkpoints;          // files and folders: each must pass
  std::optional<std::uint64_t> seed;             // `checkpoint random 42`
  std::vector<const ast::InputTestItem*> inputs;
  const ast::OpTestItem* op = nullptr;           // a test of an operation, and not of the model
  std::vector<std::pair<std::string, double>> expect;
  struct Same {
    std::vector<std::string> runs;               // "prefill(24)", "encode+prefill(3)+decode(5)", "heard(frames: 20)"
    double within = 0;
  };
  std::vector<Same> same;                        // runs of the model
  std::vector<Same> alike;                       // `same reference, cpu, vulkan`: what computes the same; backends by name
  std::optional<std::string> error;
  std::string error_text;
};

// Paths are resolved against `folder`. What is wrong with the block itself is said in one sentence.
Result<TestBlock> read_test(const ast::TestDecl& decl, const std::string& folder);

// `with { a: …, b: { c: … } }` merged into a configuration; null takes a key out, as a config.json's null is absence.
void merge(Json& into, const Json& with);

// Gives TestBlock::values their lines in `file`, the one that the test is written in, so that messages can show them.
void place_lines(Json& value, source::FileId file, const source::SourceManager& sources);

}  // namespace modelc::driver
