#include "frontend/sema/signature.h"

#include <algorithm>
#include <cassert>

#include "frontend/graph/types.h"
#include "frontend/sema/types.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::DimId;
using graph::DimTable;

bool TypePattern::has_ellipsis() const {
  return std::any_of(axes.begin(), axes.end(), [](const AxisPattern& a) { return a.ellipsis; });
}

bool SignaturePattern::has_ellipsis() const {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return i.type.has_ellipsis(); });
}

// ---- formulas -------------------------------------------------------------------------------------------------------

namespace {

FormulaPtr substitute(const FormulaPtr& formula, const ast::ModuleDecl& decl) {
  if (!formula) return nullptr;
  const Formula& f = *formula;
  switch (f.kind) {
    case Formula::Kind::constant: return formula;
    case Formula::Kind::named: {
      const bool parameter =
          std::any_of(decl.params.begin(), decl.params.end(), [&](const ast::Param& p) { return p.name.text == f.text; });
      if (!parameter) return formula;
      return f.operands.empty() ? constant_formula(f.value) : f.operands[0];
    }
    case Formula::Kind::unary: {
      FormulaPtr a = substitute(f.operands[0], decl);
      return a == f.operands[0] ? formula : unary_formula(f.text, f.precedence, std::move(a), f.value);
    }
    case Formula::Kind::binary: {
      FormulaPtr a = substitute(f.operands[0], decl);
      FormulaPtr b = substitute(f.operands[1], decl);
      if (a == f.operands[0] && b == f.operands[1]) return formula;
      return binary_formula(f.text, f.precedence, std::move(a), std::move(b), f.value);
    }
    case Formula::Kind::call: {
      std::vector<FormulaPtr> operands;
      for (const FormulaPtr& operand : f.operands) operands.push_back(substitute(operand, decl));
      if (operands == f.operands) return formula;
      return call_formula(f.text, std::move(operands), f.value);
    }
  }
  return formula;
}

}  // namespace

FormulaPtr with_arguments(const FormulaPtr& formula, const ModuleDef& module, std::size_t level) {
  FormulaPtr result = formula;
  for (std::size_t i = std::min(level + 1, module.levels.size()); i-- > 0;) result = substitute(result, *module.levels[i].decl);
  return result;
}

// ---- types ----------------------------------------------------------------------------------------------------------

namespace {

// An integer or a dim as a DimId; nothing when it is an error.
std::optional<DimId> dim_of(const Value& size, DimTable& dims) {
  if (size.is(ValueKind::integer)) return dims.constant(size.as_int());
  if (size.is(ValueKind::dim)) return size.as_dim();
  return std::nullopt;
}

class TypeReader {
 public:
  TypeReader(Evaluator& evaluator, const Environment& env, const ModuleDef* module, std::size_t level, std::string_view what)
      : ev_(evaluator), env_(env), module_(module), level_(level), what_(what) {}

  std::optional<TypePattern> read(const ast::Type& type) {
    TypePattern out;
    out.span = type.span;
    if (type.optional) return wrong(type.span, "cannot be `?`: a tensor is there or it is not, which the module's arguments say");
    switch (type.kind) {
      case ast::TypeKind::tensor: return shape(ast::as<ast::TensorType>(type).shape, std::move(out));
      case ast::TypeKind::index: {
        const auto& index = ast::as<ast::IndexType>(type);
        out.is_index = true;
        out.typed = true;
        out.dtype = DType::i32;
        if (index.bound) {
          const Value bound = ev_.size(*index.bound, env_, "the bound of an index");
          if (bound.is_error()) return std::nullopt;
          out.bound = dim_of(bound, ev_.dims());
          out.bound_formula = formula(bound);
          if (!out.bound) return std::nullopt;
        }
        return shape(index.shape, std::move(out));
      }
      case ast::TypeKind::named: {
        const auto& named = ast::as<ast::NamedType>(type);
        const std::string text = named.path.text();
        if ((text == "Batch" || text == "Sequences") && !named.args && !named.shape) {
          out.kind = text == "Batch" ? graph::TypeKind::batch : graph::TypeKind::sequences;
          return out;
        }
        const auto dtype = dtype_from_name(text);
        // A name that is nothing is said to be so, and no more: the message is the definition's own, kept once.
        if (!dtype && resolve_type(ev_, named, env_).kind == TypeName::Kind::failed) return std::nullopt;
        if (named.shape && text == "int") {
          const std::string shape = shape_text(*named.shape);
          return wrong(type.span, "has no element type `int`",
                       "ids are `index(n)" + shape + "`, n being how many there are; other whole numbers are `i32" + shape + "`");
        }
        if (!dtype || named.args) break;
        if (!named.shape) return wrong(type.span, "needs a shape: write `" + text + "[]` for one number");
        if (!graph::is_value_dtype(*dtype) && !weight_) return wrong(type.span, "cannot be " + text + ": only files hold such numbers");
        out.dtype = *dtype;
        out.typed = true;
        return shape(*named.shape, std::move(out));
      }
      default: break;
    }
    return wrong(type.span, "must be a tensor, `index(n)[…]`, Batch or Sequences");
  }

  void weight() { weight_ = true; }

 private:
  std::optional<TypePattern> wrong(source::Span span, const std::string& message, std::string help = {}) {
    ev_.sink().error(code::unknown_type, span, what_ + " " + message).help(std::move(help));
    return std::nullopt;
  }
  std::string shape_text(const ast::Shape& shape) const { return collapsed(ev_.sources().text(shape.span)); }

  FormulaPtr formula(const Value& value) const {
    return module_ == nullptr ? value.formula() : with_arguments(value.formula(), *module_, level_);
  }

  std::optional<TypePattern> shape(const ast::Shape& shape, TypePattern out) {
    bool ok = true;
    for (const ShapeAxis& axis : ev_.shape(shape, env_)) {
      AxisPattern pattern;
      pattern.span = axis.span;
      if (axis.ellipsis) {
        if (out.has_ellipsis()) {
          ev_.sink().error(code::unknown_type, axis.span, "`...` stands twice in one shape");
          ok = false;
          continue;
        }
        pattern.ellipsis = true;
      } else {
        const auto dim = dim_of(axis.size, ev_.dims());
        if (!dim) {
          ok = false;
          continue;
        }
        pattern.dim = *dim;
        pattern.formula = formula(axis.size);
      }
      out.axes.push_back(std::move(pattern));
    }
    if (!ok) return std::nullopt;
    return out;
  }

  Evaluator& ev_;
  const Environment& env_;
  const ModuleDef* module_;
  std::size_t level_;
  std::string what_;
  bool weight_ = false;
};

}  // namespace

std::optional<TypePattern> type_pattern(Evaluator& evaluator, const ast::Type& type, const Environment& env, const ModuleDef* module,
                                        std::size_t level, std::string_view what) {
  TypeReader reader(evaluator, env, module, level, what);
  reader.weight();
  return reader.read(type);
}

std::optional<SignaturePattern> signature_pattern(Evaluator& evaluator, const ast::Signature& signature, const Environment& env,
                                                  const ModuleDef* module, std::size_t level, std::string_view owner) {
  SignaturePattern out;
  out.span = signature.span;
  bool ok = true;
  for (const ast::Param& param : signature.params) {
    SignaturePattern::Input input;
    input.name = param.name.text;
    input.span = param.name.span;
    const std::string what = "the parameter `" + param.name.text + "` of `" + std::string(owner) + "`";
    TypeReader reader(evaluator, env, module, level, what);
    auto type = reader.read(*param.type);
    if (!type) {
      ok = false;
      continue;
    }
    input.type = std::move(*type);
    if (param.default_value) {
      const Value value = evaluator.eval(*param.default_value, env);
      if (value.is(ValueKind::boolean)) {
        input.default_value = value.as_bool() ? 1 : 0;
      } else if (value.is_number()) {
        input.default_value = value.as_real();
      } else {
        if (!value.is_error()) {
          evaluator.sink().error(code::wrong_type, param.default_value->span,
                                 "the default of " + what.substr(4) + " is " + kind_name(value) + ", not a number or a boolean");
        }
        ok = false;
        continue;
      }
    }
    out.inputs.push_back(std::move(input));
  }
  if (signature.result) {
    out.results.emplace();
    for (const ast::ResultItem& item : *signature.result) {
      TypeReader reader(evaluator, env, module, level, "a result of `" + std::string(owner) + "`");
      auto type = reader.read(*item.type);
      if (type && type->kind != graph::TypeKind::tensor) {
        evaluator.sink().error(code::unknown_type, item.type->span, "a result of `" + std::string(owner) + "` must be a tensor");
        type.reset();
      }
      if (!type) {
        ok = false;
        continue;
      }
      out.results->push_back({item.name ? item.name->text : "", std::move(*type)});
    }
  }
  if (!ok) return std::nullopt;
  if (out.results && !out.has_ellipsis()) {
    for (const auto& result : *out.results) {
      if (!result.type.has_ellipsis()) continue;
      evaluator.sink().error(code::unknown_type, result.type.span,
                             "`...` in a result of `" + std::string(owner) +
                                 "` stands for the axes that `...` in a parameter does, "
                                 "and no parameter has it");
      return std::nullopt;
    }
  }
  return out;
}

// ---- fit ------------------------------------------------------------------------------------------------------------

namespace {

std::string ordinal_axis(std::size_t axis, std::size_t rank) {
  if (rank == 1) return "its axis";
  if (axis + 1 == rank) return "its last axis";
  if (axis == 0) return "its first axis";
  return "its axis " + std::to_string(axis);
}

}  // namespace

std::optional<std::string> mismatch(const TypePattern& declared, const graph::Type& actual, DimTable& dims, Ellipsis& ellipsis) {
  if (declared.kind != actual.kind) {
    const auto name = [&](graph::TypeKind kind) {
      return kind == graph::TypeKind::batch ? "a Batch" : kind == graph::TypeKind::sequences ? "a Sequences" : "a tensor";
    };
    return std::string("it is ") + name(actual.kind) + ", not " + name(declared.kind);
  }
  if (declared.kind != graph::TypeKind::tensor) return std::nullopt;
  if (declared.is_index) {
    if (!graph::is_integer(actual.dtype)) return "it is " + std::string(name(actual.dtype)) + ", not an index";
    if (declared.bound) {
      if (!actual.index_bound) return std::string("nothing bounds its values");
      const auto have = dims.value(*actual.index_bound);
      const auto want = dims.value(*declared.bound);
      const bool fits = DimTable::same(*actual.index_bound, *declared.bound) || (have && want && *have <= *want);
      if (!fits) return "its values reach up to " + dims.text(*actual.index_bound);
    }
  } else if (actual.dtype != declared.dtype) {
    return "it is " + std::string(actual.index_bound ? "an index" : name(actual.dtype)) + ", not " + std::string(name(declared.dtype));
  }
  // The axes around `...` first, so that what it stands for is known.
  const auto& axes = declared.axes;
  const auto& shape = actual.shape;
  const auto dots = std::find_if(axes.begin(), axes.end(), [](const AxisPattern& a) { return a.ellipsis; });
  const std::size_t before = static_cast<std::size_t>(dots - axes.begin());
  const bool any = dots != axes.end();
  const std::size_t after = any ? axes.size() - before - 1 : 0;
  const std::size_t fixed = before + after;
  const auto count = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); };
  if (any ? shape.size() < fixed : shape.size() != fixed)
    return "it has " + count(shape.size()) + ", not " + count(fixed) + (any ? " or more" : "");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].ellipsis) continue;
    const std::size_t at = i < before || !any ? i : shape.size() - (axes.size() - i);
    if (!DimTable::same(shape[at], axes[i].dim))
      return ordinal_axis(at, shape.size()) + " is " + dims.text(shape[at]) + ", not " + dims.text(axes[i].dim);
  }
  if (!any) return std::nullopt;
  const std::vector<DimId> middle(shape.begin() + static_cast<std::ptrdiff_t>(before), shape.end() - static_cast<std::ptrdiff_t>(after));
  if (!ellipsis) {
    ellipsis = middle;
  } else if (*ellipsis != middle) {
    return "`...` is " + graph::shape_text(middle, dims) + " in it and " + graph::shape_text(*ellipsis, dims) + " in an argument before it";
  }
  return std::nullopt;
}

graph::Type concrete(const TypePattern& declared, const Ellipsis& ellipsis) {
  graph::Type type;
  type.kind = declared.kind;
  if (declared.kind != graph::TypeKind::tensor) return type;
  type.dtype = declared.dtype;
  if (declared.is_index) type.index_bound = declared.bound;
  for (const AxisPattern& axis : declared.axes) {
    if (!axis.ellipsis) {
      type.shape.push_back(axis.dim);
    } else if (ellipsis) {
      type.shape.insert(type.shape.end(), ellipsis->begin(), ellipsis->end());
    }
  }
  return type;
}

// ---- texts ----------------------------------------------------------------------------------------------------------

std::vector<AxisText> axis_texts(const TypePattern& type) {
  std::vector<AxisText> out;
  for (const AxisPattern& axis : type.axes) out.push_back({axis.dim, axis.formula, axis.ellipsis});
  return out;
}

namespace {

template <class Each> std::string bracketed(const std::vector<AxisText>& axes, const Each& each) {
  std::string out = "[";
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != 0) out += ", ";
    out += axes[i].ellipsis ? "..." : each(axes[i]);
  }
  return out + "]";
}

}  // namespace

std::string shape_formulas(const std::vector<AxisText>& axes, const DimTable& dims) {
  return bracketed(axes, [&](const AxisText& a) { return a.formula ? formula_text(a.formula) : dims.text(a.dim); });
}

std::string shape_numbers(const std::vector<AxisText>& axes, const DimTable& dims) {
  return bracketed(axes, [&](const AxisText& a) { return a.formula ? formula_values(a.formula) : dims.text(a.dim); });
}

std::string shape_with_values(const std::vector<AxisText>& axes, const DimTable& dims) {
  const std::string formulas = shape_formulas(axes, dims);
  const std::string values = shape_numbers(axes, dims);
  const std::string sizes = bracketed(axes, [&](const AxisText& a) { return dims.text(a.dim); });
  std::string out = formulas;
  if (values != formulas) out += " = " + values;
  if (sizes != values) out += " = " + sizes;
  return out;
}

std::vector<std::string> shape_origins(const std::vector<AxisText>& axes) {
  std::vector<std::string> out;
  for (const AxisText& axis : axes) {
    for (std::string& line : formula_origins(axis.formula)) {
      if (std::find(out.begin(), out.end(), line) == out.end()) out.push_back(std::move(line));
    }
  }
  return out;
}

std::string collapsed(std::string_view text) {
  std::string out;
  bool quoted = false;
  bool blank = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!quoted && c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      while (i < text.size() && text[i] != '\n') ++i;
      blank = true;
      continue;
    }
    if (!quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
      blank = true;
      continue;
    }
    if (blank && !out.empty()) out += ' ';
    blank = false;
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\' && i + 1 < text.size()) {
      out += c;
      out += text[++i];
      continue;
    }
    out += c;
  }
  return out;
}

}  // namespace modelc::sema
