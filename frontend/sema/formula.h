// Where a number came from. Each scalar that stems from a configuration, a parameter or a `let` carries a formula: the
// expression that led to it, over named factors, so that a message can print `[heads * d] = [4 * 16] = [64]` and say of
// each factor where its value was read. Formulas are shared and immutable; equality of values ignores them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace modelc::sema {

struct Formula;
using FormulaPtr = std::shared_ptr<const Formula>;     // null: a literal, which explains itself

struct Formula {
  enum class Kind : std::uint8_t {
    constant,    // 2
    named,       // hidden_size: a field, a parameter, a `let`
    unary,       // -a, not a
    binary,      // a * b
    call,        // ceil_div(a, b)
  };
  Kind kind = Kind::constant;
  std::string text;                          // the number as shown, the name, the operator, the function
  std::string value;                         // what this node is worth, as shown: "40", "\"silu\"", "none"
  std::string origin;                        // of a name: "from config.json:12", "from --set d=64", "by default", ""
  std::vector<FormulaPtr> operands;          // of an operation; of a name none, or the one formula that it stands for
  int precedence = 100;                      // of the operator, to place parentheses; higher binds tighter
  std::uint32_t size = 1;                    // nodes below, itself included, counted with repetition (saturates)
};

// A formula beyond this many nodes is kept as its value alone: no text of a message is longer, no deep recursion.
inline constexpr std::uint32_t max_formula_size = 64;

FormulaPtr constant_formula(std::string value);
// `inner` may be null. The origin of `hidden_size` bound from a file is "from config.json:12"; of a `let` it is
// empty, as its inner formula says where the factors come from.
FormulaPtr named_formula(std::string name, std::string value, std::string origin, FormulaPtr inner = nullptr);
FormulaPtr unary_formula(std::string op, int precedence, FormulaPtr a, std::string value);
FormulaPtr binary_formula(std::string op, int precedence, FormulaPtr a, FormulaPtr b, std::string value);
FormulaPtr call_formula(std::string function, std::vector<FormulaPtr> arguments, std::string value);

// "heads * d"
std::string formula_text(const FormulaPtr& formula);
// The same with the factors' values: "4 * 16"
std::string formula_values(const FormulaPtr& formula);
// One line for each named factor, each once, outer ones first, at most `cap`:
// "heads = num_attention_heads = 4 from config.json:5".
std::vector<std::string> formula_origins(const FormulaPtr& formula, std::size_t cap = 12);

}  // namespace modelc::sema
