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

// The inputs of `op name` that no `input` gives and that have no default, with numbers by chance, the same in every run of one `round`:
// of each name in their shapes a size that is a multiple of nothing, of `...` none to two axes; what is given keeps its sizes. Reals lie
// in [-2, 2], an index below its bound.
struct DrawnInput {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
std::optional<std::vector<DrawnInput>> draw_inputs(source::SourceManager&, const std::shared_ptr<Imports>&, const ast::OpTestItem&,
                                                   std::span<const GivenShape>, std::uint64_t round, diag::Sink&);

}  // namespace modelc::sema
