#include "frontend/sema/test_programs.h"

#include <algorithm>
#include <array>
#include <random>

#include "frontend/sema/evaluator.h"
#include "frontend/sema/imports.h"
#include "frontend/sema/occasion.h"
#include "frontend/sema/symbols.h"

namespace modelc::sema {

namespace code = diag::code;

namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string s = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

// The element type of an input as it is declared: "f32", "u8", "index(n)"; the compute dtype is f32 here.
std::string element_text(const ast::Type& type, const source::SourceManager& sources) {
  if (const auto* index = ast::try_as<ast::IndexType>(type))
    return "index" + (index->bound ? "(" + std::string(sources.text(index->bound->span)) + ")" : "");
  if (const auto* named = ast::try_as<ast::NamedType>(type)) return named->path.text();
  return "f32";
}

}  // namespace

std::optional<Program> inputs_program(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, const ConfigInput* config,
                                      std::span<const ast::InputTestItem* const> items, const Options& options, diag::Sink& sink) {
  Occasion occasion{"the test's inputs", "module Inputs(", {}, {}};
  for (std::size_t i = 0; i < items.size(); ++i) {
    // Names of inputs may be anything; those of the parameters are ours.
    occasion.fns.emplace_back("given_" + std::to_string(i), items[i]->value.get());
    occasion.text += (i ? ", " : "") + occasion.fns.back().first + ": fn";
  }
  occasion.text += ") { forward() { return ";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) occasion.text += ", ";
    occasion.append("tensor(" + occasion.fns[i].first + "())", items[i]->value->span);
  }
  occasion.text += " } }";
  Options with = options;
  with.occasion = &occasion;
  auto program = analyze(sources, imports, config, with, sink);
  if (!program) return std::nullopt;
  for (graph::Function& f : program->graph.classes[program->graph.root.index].functions)
    for (std::size_t i = 0; i < items.size() && i < f.result_names.size(); ++i) f.result_names[i] = items[i]->name.text;
  return program;
}

namespace {

// The operation that the test is of; null where there is none (reported).
const Symbol* op_of(const FileSymbols& main, const ast::OpTestItem& item, diag::Sink& sink) {
  bool failed = false;
  const Symbol* symbol = resolve(main, item.name.text, item.name.span, sink, failed);
  if (failed) return nullptr;
  if (symbol != nullptr && symbol->kind == SymbolKind::op) return symbol;
  std::vector<std::string> names;
  symbol_names(main, names);
  std::erase_if(names, [&](const std::string& n) {
    const Symbol* s = find_symbol(main, n).symbol;
    return s == nullptr || s->kind != SymbolKind::op;
  });
  sink.error(code::unknown_name, item.name.span,
             symbol == nullptr ? "no operation `" + item.name.text + "` is declared here"
                               : "`" + item.name.text + "` is a " + std::string(word(*symbol)) + ", and no operation of the file")
      .help(names.empty() ? "an operation is declared by `op " + item.name.text + "(…) -> … { reference … }`"
                          : diag::did_you_mean(item.name.text, names));
  return nullptr;
}

const GivenShape* given_for(std::span<const GivenShape> given, const std::string& name) {
  const auto at = std::find_if(given.begin(), given.end(), [&](const GivenShape& g) { return g.name == name; });
  return at == given.end() ? nullptr : &*at;
}

// Shapes of an operation's inputs: those given, and others by chance.
class Draw {
 public:
  Draw(Evaluator& evaluator, const Symbol& op, std::uint64_t round) : ev_(evaluator), env_(op.file), random_(round + 1) {}

  // What the names of a given shape are.
  void bind(const ast::Shape& shape, const std::vector<std::int64_t>& actual) {
    const std::size_t n = shape.axes.size(), rank = actual.size();
    std::size_t dots = n;
    for (std::size_t i = 0; i < n; ++i)
      if (shape.axes[i].size == nullptr) dots = i;
    if (dots == n ? n != rank : n - 1 > rank) return;    // does not fit, which its analysis says
    if (dots < n && !lead_)
      lead_.emplace(actual.begin() + static_cast<std::ptrdiff_t>(dots), actual.end() - static_cast<std::ptrdiff_t>(n - dots - 1));
    for (std::size_t i = 0; i < n; ++i)
      if (const ast::Name* name = bound_here(shape.axes[i])) define(*name, actual[i < dots ? i : rank - (n - i)]);
  }
  // Sizes for the names that nothing says yet; few names may be long.
  void draw(const std::vector<const ast::Shape*>& shapes) {
    std::vector<const ast::Name*> names;
    bool dots = false;
    for (const ast::Shape* shape : shapes)
      for (const ast::Axis& axis : shape->axes) {
        dots = dots || axis.size == nullptr;
        const ast::Name* name = bound_here(axis);
        const auto same = [&](const ast::Name* n) { return n->text == name->text; };
        if (name != nullptr && std::none_of(names.begin(), names.end(), same)) names.push_back(name);
      }
    static constexpr std::array<std::int64_t, 8> one = {1, 7, 31, 33, 67, 129, 130, 257}, two = {1, 3, 5, 7, 17, 31, 33, 65},
                                                 many = {1, 2, 3, 5, 1, 2, 3, 5};
    for (const ast::Name* name : names) define(*name, of(names.size() == 1 ? one : names.size() == 2 ? two : many));
    if (!dots || lead_) return;
    lead_.emplace();
    for (std::uint64_t n = random_() % 3; n > 0; --n) lead_->push_back(of(many));
  }
  std::optional<std::vector<std::int64_t>> shape(const ast::Shape& shape) {
    std::vector<std::int64_t> sizes;
    std::int64_t count = 1;
    for (const ast::Axis& axis : shape.axes) {
      if (axis.size == nullptr) {
        sizes.insert(sizes.end(), lead_->begin(), lead_->end());
        continue;
      }
      const auto size = number(*axis.size, "a size of the input");
      if (!size) return std::nullopt;
      sizes.push_back(*size);
    }
    for (const std::int64_t n : sizes)
      if (n < 0 || __builtin_mul_overflow(count, n, &count) || count > most) {
        ev_.sink()
            .error(code::wrong_arguments, shape.span, "sizes that are drawn for the test make this " + shape_text(sizes))
            .help("give numbers of the shape that is wanted: `input name = …`");
        return std::nullopt;
      }
    return sizes;
  }
  std::optional<std::int64_t> number(const ast::Expr& expr, std::string_view what) {
    const Value value = ev_.size(expr, env_, what);
    if (value.is(ValueKind::integer)) return value.as_int();
    if (!value.is_error())
      ev_.sink().error(code::wrong_arguments, expr.span, "this size is none that a test can draw: give the input numbers");
    return std::nullopt;
  }
  // Numbers for an input of that type.
  std::optional<std::vector<float>> values(const ast::Type& type, std::size_t count) {
    std::uint64_t below = 0;                               // whole numbers below it; 0: reals
    std::int64_t first = 0;
    if (const auto* index = ast::try_as<ast::IndexType>(type)) {
      below = 8;
      if (index->bound) {
        const auto bound = number(*index->bound, "the bound of an index");
        if (!bound) return std::nullopt;
        below = static_cast<std::uint64_t>(std::clamp<std::int64_t>(*bound, 1, 1 << 24));
      }
    } else if (const auto* named = ast::try_as<ast::NamedType>(type)) {
      const auto dtype = dtype_from_name(named->path.text());
      if (dtype == DType::boolean) below = 2;
      else if (dtype == DType::u8) below = 256;
      else if (dtype && !is_float(*dtype)) below = 19, first = -9;
    }
    std::vector<float> all(count);
    for (float& v : all)
      v = below > 0 ? static_cast<float>(static_cast<std::int64_t>(random_() % below) + first)
                    : static_cast<float>(static_cast<double>(random_() % 4001) / 1000 - 2);
    return all;
  }

 private:
  static constexpr std::int64_t most = 1 << 20;

  const ast::Name* bound_here(const ast::Axis& axis) const {
    const auto* name = axis.size ? ast::try_as<ast::NameExpr>(*axis.size) : nullptr;
    return name != nullptr && !env_.declared(name->name.text) && !is_prelude_axis(name->name.text) ? &name->name : nullptr;
  }
  void define(const ast::Name& name, std::int64_t size) {
    if (!env_.declared(name.text)) env_.define(name.text, Value::integer(size), name.span);
  }
  std::int64_t of(const std::array<std::int64_t, 8>& sizes) { return sizes[random_() % sizes.size()]; }

  Evaluator& ev_;
  Environment env_;
  std::mt19937_64 random_;                                 // the same numbers everywhere
  std::optional<std::vector<std::int64_t>> lead_;          // what `...` is, in all inputs
};

const ast::Shape* shape_of(const ast::Type& type) {
  if (const auto* tensor = ast::try_as<ast::TensorType>(type)) return &tensor->shape;
  if (const auto* index = ast::try_as<ast::IndexType>(type)) return &index->shape;
  if (const auto* named = ast::try_as<ast::NamedType>(type); named != nullptr && named->shape) return &*named->shape;
  return nullptr;
}

}  // namespace

std::optional<std::vector<DrawnInput>> draw_inputs(source::SourceManager& sources, const std::shared_ptr<Imports>& imports,
                                                   const ast::OpTestItem& item, std::span<const GivenShape> given, std::uint64_t round,
                                                   diag::Sink& sink) {
  const Symbol* symbol = op_of(imports->main(), item, sink);
  if (symbol == nullptr) return std::nullopt;
  graph::DimTable dims;
  Evaluator evaluator(sources, dims, sink);
  Draw draw(evaluator, *symbol, round);
  const auto& decl = ast::as<ast::OpDecl>(*symbol->decl);
  std::vector<const ast::Param*> missing;
  std::vector<const ast::Shape*> shapes;
  for (const ast::Param& param : decl.params) {
    const ast::Shape* shape = shape_of(*param.type);
    const GivenShape* known = given_for(given, param.name.text);
    if (known != nullptr && shape != nullptr) draw.bind(*shape, known->shape);
    if (known != nullptr || param.default_value || shape == nullptr) continue;
    missing.push_back(&param);
    shapes.push_back(shape);
  }
  draw.draw(shapes);
  std::vector<DrawnInput> drawn;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    auto shape = draw.shape(*shapes[i]);
    if (!shape) return std::nullopt;
    std::size_t count = 1;
    for (const std::int64_t n : *shape) count *= static_cast<std::size_t>(n);
    auto values = draw.values(*missing[i]->type, count);
    if (!values) return std::nullopt;
    drawn.push_back({missing[i]->name.text, std::move(*shape), std::move(*values)});
  }
  return drawn;
}

std::optional<Program> op_program(source::SourceManager& sources, const std::shared_ptr<Imports>& imports, const ast::OpTestItem& item,
                                  std::span<const GivenShape> given, const Options& options, diag::Sink& sink) {
  bool failed = false;
  const Symbol* symbol = op_of(imports->main(), item, sink);
  if (symbol == nullptr) return std::nullopt;
  const auto& decl = ast::as<ast::OpDecl>(*symbol->decl);
  for (const GivenShape& g : given) {
    const auto same = [&](const ast::Param& p) { return p.name.text == g.name; };
    if (std::any_of(decl.params.begin(), decl.params.end(), same)) continue;
    std::vector<std::string> names;
    for (const ast::Param& p : decl.params) names.push_back(p.name.text);
    sink.error(code::wrong_arguments, g.place, "the operation `" + symbol->name + "` has no input `" + g.name + "`")
        .label(symbol->span, "declared here")
        .help(diag::did_you_mean(g.name, names));
    failed = true;
  }
  Occasion occasion{"the test's call", "module Operation() { forward(", {}, {}};
  occasion.places.push_back({0, 0, item.name.span});
  std::string arguments;
  for (const ast::Param& param : decl.params) {
    const auto shape = std::find_if(given.begin(), given.end(), [&](const GivenShape& g) { return g.name == param.name.text; });
    if (shape == given.end()) {
      if (param.default_value) continue;
      sink.error(code::wrong_arguments, item.name.span, "the input `" + param.name.text + "` of `" + symbol->name + "` is given no numbers")
          .label(param.span, "declared here")
          .help("write `input " + param.name.text + " = …`");
      failed = true;
      continue;
    }
    if (!arguments.empty()) occasion.text += ", ";
    occasion.append(param.name.text + ": " + element_text(*param.type, sources) + shape_text(shape->shape), shape->place);
    arguments += (arguments.empty() ? "" : ", ") + param.name.text + ": ";
    arguments += param.name.text;
  }
  if (failed) return std::nullopt;
  occasion.text += ") { return ";
  // Messages about an argument are about its numbers.
  const std::size_t begin = occasion.text.size();
  occasion.text += symbol->name + "(";
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t comma = std::min(arguments.find(", ", at), arguments.size());
    const std::string one = arguments.substr(at, comma - at);
    const std::string name = one.substr(0, one.find(':'));
    const auto shape = std::find_if(given.begin(), given.end(), [&](const GivenShape& g) { return g.name == name; });
    if (at > 0) occasion.text += ", ";
    occasion.append(one, shape->place);
    at = comma + 2;
  }
  occasion.places.push_back({begin, occasion.text.size() + 1, item.name.span});
  occasion.text += ") } }";
  Options with = options;
  with.occasion = &occasion;
  auto program = analyze(sources, imports, nullptr, with, sink);
  if (!program) return std::nullopt;
  program->graph.name = symbol->name;
  const auto is_input = [&](const std::string& name) {
    return std::any_of(decl.params.begin(), decl.params.end(), [&](const ast::Param& p) { return p.name.text == name; });
  };
  for (graph::Function& f : program->graph.classes[program->graph.root.index].functions)
    for (std::size_t i = 0; i < f.result_names.size(); ++i) {
      f.result_names[i] = decl.result.size() > i && decl.result[i].name ? decl.result[i].name->text
                          : f.result_names.size() == 1                  ? "result"
                                                                        : "result_" + std::to_string(i + 1);
      while (is_input(f.result_names[i])) f.result_names[i] += "_";   // one file holds both
    }
  return program;
}

}  // namespace modelc::sema
