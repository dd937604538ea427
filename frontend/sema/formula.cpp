#include "frontend/sema/formula.h"

#include <algorithm>
#include <utility>

namespace modelc::sema {

namespace {

std::uint32_t total_size(const std::vector<FormulaPtr>& operands) {
  std::uint32_t size = 1;
  for (const FormulaPtr& operand : operands) size = std::min(size + operand->size, max_formula_size + 1);
  return size;
}

FormulaPtr make(Formula formula) {
  formula.size = total_size(formula.operands);
  if (formula.size > max_formula_size) {
    // A name keeps what it is; only what it stands for is left out.
    if (formula.kind != Formula::Kind::named) return constant_formula(std::move(formula.value));
    formula.operands.clear();
    formula.size = 1;
  }
  return std::make_shared<const Formula>(std::move(formula));
}

// `values`: names give way to what they are worth.
void write(std::string& out, const Formula& f, bool values);

void write_operand(std::string& out, const Formula& f, bool parens, bool values) {
  if (parens) out += '(';
  write(out, f, values);
  if (parens) out += ')';
}

void write(std::string& out, const Formula& f, bool values) {
  switch (f.kind) {
    case Formula::Kind::constant: out += f.text; break;
    case Formula::Kind::named: out += values ? f.value : f.text; break;
    case Formula::Kind::unary:
      out += f.text;
      if (f.text == "not") out += ' ';
      write_operand(out, *f.operands[0], f.operands[0]->precedence < f.precedence, values);
      break;
    case Formula::Kind::binary: {
      // `^` groups to the right, all others to the left.
      const bool right_first = f.text == "^";
      const int left = f.operands[0]->precedence;
      const int right = f.operands[1]->precedence;
      write_operand(out, *f.operands[0], right_first ? left <= f.precedence : left < f.precedence, values);
      out += ' ';
      out += f.text;
      out += ' ';
      write_operand(out, *f.operands[1], right_first ? right < f.precedence : right <= f.precedence, values);
      break;
    }
    case Formula::Kind::call:
      out += f.text;
      out += '(';
      for (std::size_t i = 0; i < f.operands.size(); ++i) {
        if (i != 0) out += ", ";
        write(out, *f.operands[i], values);
      }
      out += ')';
      break;
  }
}

// "heads = num_attention_heads = 4 from config.json:5"
std::string origin_line(const Formula& f) {
  std::string line = f.text;
  const Formula* at = &f;
  while (at->kind == Formula::Kind::named && !at->operands.empty()) {
    const Formula* inner = at->operands[0].get();
    if (inner->kind == Formula::Kind::named) {
      if (inner->text != at->text) line += " = " + inner->text;
    } else if (inner->kind != Formula::Kind::constant) {
      line += " = ";
      write(line, *inner, false);
    }
    if (!at->origin.empty() && inner->kind != Formula::Kind::named) break;
    at = inner;
  }
  line += " = " + f.value;
  if (at->kind == Formula::Kind::named && !at->origin.empty()) line += " " + at->origin;
  return line;
}

void collect(const Formula& f, std::vector<std::string>& lines, std::size_t cap) {
  if (lines.size() >= cap) return;
  const Formula* at = &f;
  if (f.kind == Formula::Kind::named) {
    std::string line = origin_line(f);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    // The names of one chain stand in one line.
    while (at->kind == Formula::Kind::named && !at->operands.empty() && at->operands[0]->kind == Formula::Kind::named) {
      at = at->operands[0].get();
    }
  }
  for (const FormulaPtr& operand : at->operands) collect(*operand, lines, cap);
}

}  // namespace

FormulaPtr constant_formula(std::string value) {
  auto f = std::make_shared<Formula>();
  f->text = value;
  f->value = std::move(value);
  return f;
}

FormulaPtr named_formula(std::string name, std::string value, std::string origin, FormulaPtr inner) {
  Formula f;
  f.kind = Formula::Kind::named;
  f.text = std::move(name);
  f.value = std::move(value);
  f.origin = std::move(origin);
  if (inner) f.operands.push_back(std::move(inner));
  return make(std::move(f));
}

FormulaPtr unary_formula(std::string op, int precedence, FormulaPtr a, std::string value) {
  Formula f;
  f.kind = Formula::Kind::unary;
  f.text = std::move(op);
  f.value = std::move(value);
  f.precedence = precedence;
  f.operands.push_back(std::move(a));
  return make(std::move(f));
}

FormulaPtr binary_formula(std::string op, int precedence, FormulaPtr a, FormulaPtr b, std::string value) {
  Formula f;
  f.kind = Formula::Kind::binary;
  f.text = std::move(op);
  f.value = std::move(value);
  f.precedence = precedence;
  f.operands.push_back(std::move(a));
  f.operands.push_back(std::move(b));
  return make(std::move(f));
}

FormulaPtr call_formula(std::string function, std::vector<FormulaPtr> arguments, std::string value) {
  Formula f;
  f.kind = Formula::Kind::call;
  f.text = std::move(function);
  f.value = std::move(value);
  f.operands = std::move(arguments);
  return make(std::move(f));
}

std::string formula_text(const FormulaPtr& formula) {
  std::string out;
  if (formula) write(out, *formula, false);
  return out;
}

std::string formula_values(const FormulaPtr& formula) {
  std::string out;
  if (formula) write(out, *formula, true);
  return out;
}

std::vector<std::string> formula_origins(const FormulaPtr& formula, std::size_t cap) {
  std::vector<std::string> lines;
  if (formula) collect(*formula, lines, cap);
  return lines;
}

}  // namespace modelc::sema
