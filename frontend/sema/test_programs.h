// What a test block computes beside the model, as programs of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/sema/analyze.h"

namespace modelc::sema {

// `input name = expr`, one or more: forward() without inputs, whose results have their names and are in their order. The
// expressions see what the file sees, and the model's configurations where one is given. A number is a tensor of rank 0,
// a list of numbers one of rank 1, lists of lists one of more.
std::optional<Program> inputs_program(source::SourceManager&, const std::shared_ptr<Imports>&, const ConfigInput* config,
                                      std::span<const ast::InputTestItem* const>, const Options&, diag::Sink&);

// `op name`: forward with the operation's inputs, of these shapes by name and of the types that it declares; it gives the
// operation's results, those without a name as "result", or "result_1", "result_2", …
struct GivenShape {
  std::string name;
  std::vector<std::int64_t> shape;
  source::Span place;                            // where messages about it belong
};
std::optional<Program> op_program(source::SourceManager&, const std::shared_ptr<Imports>&, const ast::OpTestItem&,
                                  std::span<const GivenShape>, const Options&, diag::Sink&);

}  // namespace modelc::sema
