// Operations that a file declares: their reference is their meaning. Where a shader computes the same, the call stays one
// operation of the graph with the reference as its body; else the reference is expanded in its place. Kernels are checked
// against what the language says of them.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "frontend/graph/types.h"
#include "frontend/sema/op_call.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::ValueId;

namespace {

constexpr std::size_t max_expansions = 48;           // of references and fns in one another

const ast::Shape* shape_of(const ast::Type& type) {
  if (const auto* tensor = ast::try_as<ast::TensorType>(type)) return &tensor->shape;
  if (const auto* index = ast::try_as<ast::IndexType>(type)) return &index->shape;
  if (const auto* named = ast::try_as<ast::NamedType>(type); named != nullptr && named->shape) return &*named->shape;
  return nullptr;
}

// A name that stands alone as an axis and means nothing yet is that axis's size from here on.
void bind_axes(const ast::Shape& shape, const graph::Type& actual, const graph::DimTable& dims, Environment& env) {
  const std::size_t n = shape.axes.size(), rank = actual.shape.size();
  const auto dots = std::find_if(shape.axes.begin(), shape.axes.end(), [](const ast::Axis& a) { return a.size == nullptr; });
  const auto before = static_cast<std::size_t>(dots - shape.axes.begin());
  for (std::size_t i = 0; i < n; ++i) {
    const ast::Axis& axis = shape.axes[i];
    const auto* name = axis.size ? ast::try_as<ast::NameExpr>(*axis.size) : nullptr;
    const std::size_t from_end = n - i;
    if (name == nullptr || env.declared(name->name.text) || is_prelude_axis(name->name.text)) continue;
    if (i < before ? i >= rank : from_end > rank) continue;
    env.define(name->name.text, Value::dim(dims, actual.shape[i < before ? i : rank - from_end]), name->name.span);
  }
}

// The sizes of the axes that the inputs name, in the order of the text, `...` standing for one: what a shader is told.
std::vector<graph::DimId> named_sizes(const ast::OpDecl& decl, const std::vector<graph::Type>& inputs, graph::DimTable& dims) {
  std::vector<graph::DimId> sizes;
  std::set<std::string> seen;
  for (std::size_t k = 0; k < decl.params.size(); ++k) {
    const ast::Shape* shape = shape_of(*decl.params[k].type);
    if (shape == nullptr) continue;
    const std::vector<graph::DimId>& actual = inputs[k].shape;
    std::size_t at = 0;                              // of the actual axes
    for (std::size_t i = 0; i < shape->axes.size(); ++i) {
      const ast::Axis& axis = shape->axes[i];
      if (axis.size == nullptr) {
        graph::DimId product = dims.constant(1);
        for (const std::size_t end = actual.size() - (shape->axes.size() - i - 1); at < end; ++at) product = dims.mul(product, actual[at]);
        if (seen.insert("...").second) sizes.push_back(product);
        continue;
      }
      const auto* name = ast::try_as<ast::NameExpr>(*axis.size);
      if (name != nullptr && seen.insert(name->name.text).second) sizes.push_back(actual[at]);
      ++at;
    }
  }
  return sizes;
}

// What a shader may ask of a device.
constexpr std::array<std::string_view, 9> features = {
    "float16", "float64", "int8", "int16", "int64", "storage8", "storage16", "subgroup_arithmetic", "subgroup_shuffle"};

}  // namespace

Value FunctionBuilder::call_custom(const Symbol& op, std::span<const Argument> arguments, source::Span span) {
  const auto& decl = ast::as<ast::OpDecl>(*op.decl);
  const std::string owner = "the operation `" + op.name + "`";
  std::vector<Expressions::ParamSpec> specs;
  for (const ast::Param& param : decl.params) specs.push_back({param.name.text, param.default_value == nullptr, param.name.span});
  std::vector<const Argument*> given;
  if (!Expressions(ev_).arrange(specs, arguments, owner, span, given)) return Value::error();
  if (entered_.size() >= max_expansions) {
    fail(code::too_much_work, span, "operations and fns are expanded more than " + std::to_string(max_expansions) + " deep here")
        .help("the reference of `" + op.name + "` seems to use itself without end");
    return Value::error();
  }

  // Inputs, then the names that their shapes bind, then whether they fit.
  Environment env(op.file);
  std::vector<ValueId> inputs;
  std::vector<source::Span> spans;
  for (std::size_t i = 0; i < decl.params.size(); ++i) {
    const ast::Param& param = decl.params[i];
    const source::Span place = given[i] != nullptr ? given[i]->span : span;
    const Value value = given[i] != nullptr ? given[i]->value : ev_.eval(*param.default_value, env);
    const auto id = promote(value, place);
    if (!id) return Value::error();
    inputs.push_back(*id);
    spans.push_back(place);
    if (const ast::Shape* shape = shape_of(*param.type)) bind_axes(*shape, type(*id), dims(), env);
  }
  Ellipsis ellipsis;
  for (std::size_t i = 0; i < decl.params.size(); ++i) {
    const ast::Param& param = decl.params[i];
    const auto pattern = type_pattern(ev_, *param.type, env, nullptr, 0, "the input `" + param.name.text + "`");
    if (!pattern) return Value::error();
    if (const auto problem = mismatch(*pattern, type(inputs[i]), dims(), ellipsis)) {
      fail(code::signature_mismatch, spans[i], "the argument `" + param.name.text + "` of " + owner + " does not fit: " + *problem)
          .mark("expected " + wanted(*pattern, inputs[i]))
          .note("found " + shown(inputs[i], &*pattern))
          .label(pattern->span, "`" + param.name.text + "` is declared here")
          .help(advice_on_type(*pattern, inputs[i], spans[i]));
      return Value::error();
    }
    const auto seen = kept_f32(inputs[i], *pattern, spans[i]);
    if (!seen) return Value::error();
    inputs[i] = *seen;
  }
  Environment inside = env;
  for (std::size_t i = 0; i < decl.params.size(); ++i) env.define(decl.params[i].name.text, tensor(inputs[i]), decl.params[i].name.span);
  graph::Custom custom;
  if (!check_kernels(op, env, inputs, custom)) return Value::error();
  const bool apart = !custom.dispatches.empty() || custom.host >= 0;
  if (apart) {
    blocks_.emplace_back();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId argument = new_value(type(inputs[i]));
      infos_[argument.index] = infos_[inputs[i].index];
      blocks_.back().block.arguments.push_back(argument);
      inside.define(decl.params[i].name.text, tensor(argument), decl.params[i].name.span);
    }
    env = inside;
  }

  const std::size_t first = fn_.values.size();
  enter_function(Closure{.name = op.name, .params = nullptr, .environment = env, .span = decl.span}, span);
  Value returned = decl.reference ? ev_.eval(*decl.reference, env) : ev_.run(*decl.reference_block, env);
  std::vector<ValueId> results;
  if (!returned.is_error()) {
    std::vector<Value> values;
    if (returned.is(ValueKind::tuple)) values = returned.items();
    else values.push_back(std::move(returned));
    const source::Span place = decl.reference ? decl.reference->span : decl.reference_block->span;
    if (values.size() != decl.result.size()) {
      fail(code::signature_mismatch, place,
           "the reference of `" + op.name + "` gives " + counted(values.size(), "result") + ", and it declares " +
               std::to_string(decl.result.size()));
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) {
        auto id = promote(values[i], place);
        const auto pattern = type_pattern(ev_, *decl.result[i].type, env, nullptr, 0, "the result of " + owner);
        if (!id || !pattern) break;
        if (const auto problem = mismatch(*pattern, type(*id), dims(), ellipsis)) {
          fail(code::signature_mismatch, place, "the reference of `" + op.name + "` does not give what it declares: " + *problem)
              .mark("this is " + shown(*id, &*pattern))
              .label(pattern->span, "declared as " + wanted(*pattern, *id));
          break;
        }
        id = kept_f32(*id, *pattern, place);
        if (!id) break;
        results.push_back(*id);
      }
    }
  }
  leave_function();
  if (apart) {
    graph::Op made;
    made.kind = graph::OpKind::custom;
    made.body = std::move(blocks_.back().block);
    blocks_.pop_back();
    if (results.size() != decl.result.size()) return Value::error();
    made.body->results = results;
    for (const ValueId id : results)
      if (type(id).dtype != DType::f32 && type(id).dtype != DType::i32) {
        fail(code::bad_kernel, decl.kernels.front().span, "a kernel gives f32 and whole numbers, and `" + op.name + "` gives " + shown(id));
        return Value::error();
      }
    if (custom.host >= 0) host_types(custom.host, inputs, results);
    made.operands.assign(inputs.begin(), inputs.end());
    for (ValueId& id : results) {
      const ValueInfo known = infos_[id.index];
      id = new_value(type(id));
      infos_[id.index].axes = known.axes;
    }
    made.results = results;
    std::vector<graph::Type> types;
    for (const ValueId id : inputs) types.push_back(type(id));
    custom.name = op.name;
    custom.sizes = named_sizes(decl, types, dims());
    made.custom = std::move(custom);
    place_op(made, span);
    blocks_.back().block.ops.push_back(std::move(made));
    return as_value(results);
  }
  if (results.size() != decl.result.size()) return Value::error();
  // The operation that gives the result stands for the call.
  for (const ValueId id : results) {
    for (graph::Op& made : blocks_.back().block.ops) {
      if (id.index < first || std::find(made.results.begin(), made.results.end(), id) == made.results.end()) continue;
      place_op(made, span);
    }
  }
  return as_value(results);
}

// The text of a shader that lies beside the model file, as one of the module's; none where it cannot be read (said).
std::optional<std::uint32_t> FunctionBuilder::shader(const Symbol& op, const ast::Kernel& kernel) {
  const std::filesystem::path path = in_.sources().real_path(op.file->id).parent_path() / kernel.file.value;
  graph::Shader made{op.name, kernel.file.value, {}, {}, in_.where(kernel.span)};
  for (const ast::Name& feature : kernel.required) made.required.push_back(feature.text);
  std::vector<graph::Shader>& all = in_.module().shaders;
  const auto same_line = [&](const graph::Shader& s) { return s.where.file == made.where.file && s.where.line == made.where.line; };
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i].op == made.op && all[i].file == made.file && same_line(all[i])) return i;
  auto text = read_text_file(path.string(), source::max_file_bytes);
  if (!text) {
    fail(code::bad_kernel, kernel.file.span, text.error().message);
    return std::nullopt;
  }
  made.text = std::move(*text);
  if (source::find_text_problem(made.text)) {
    fail(code::bad_kernel, kernel.file.span, "the shader " + quote(made.file) + " is no text in UTF-8");
    return std::nullopt;
  }
  in_.shader_paths.push_back(path.string());
  all.push_back(std::move(made));
  return static_cast<std::uint32_t>(all.size() - 1);
}

// The folder of a `cpu` kernel's file, where it is one of those that were allowed; empty where not.
std::filesystem::path FunctionBuilder::allowed_folder(const Symbol& op, const std::string& file) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto whole = [&](const fs::path& path) { return fs::weakly_canonical(path, error); };
  const fs::path& model = in_.sources().real_path(op.file->id);
  std::vector<fs::path> places;
  if (!model.empty()) places.push_back(model.parent_path());
  places.insert(places.end(), in_.extensions.begin(), in_.extensions.end());
  for (const fs::path& place : places) {
    const fs::path found = whole(place / file);
    if (!fs::is_regular_file(found, error)) continue;
    for (const std::string& folder : in_.extensions) {
      const fs::path within = found.lexically_relative(whole(folder));
      if (!within.empty() && *within.begin() != "..") return found.parent_path();
    }
  }
  return {};
}

// The text of an allowed `cpu` kernel, as one of the module's; none where it cannot be read (said).
std::optional<int> FunctionBuilder::host_code(const Symbol& op, const ast::Kernel& kernel, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / std::filesystem::path(kernel.file.value).filename();
  std::vector<graph::HostCode>& all = in_.module().host_code;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].op == op.name && all[i].file == kernel.file.value) return static_cast<int>(i);
  auto text = read_text_file(path.string(), source::max_file_bytes);
  if (!text) {
    fail(code::bad_kernel, kernel.file.span, text.error().message);
    return std::nullopt;
  }
  in_.shader_paths.push_back(path.string());
  all.push_back({op.name, kernel.file.value, std::move(*text), {}, {}, in_.where(kernel.span)});
  return static_cast<int>(all.size() - 1);
}

void FunctionBuilder::host_types(int host, const std::vector<ValueId>& inputs, const std::vector<ValueId>& results) {
  graph::HostCode& h = in_.module().host_code[static_cast<std::size_t>(host)];
  h.inputs.clear(), h.results.clear();
  for (const ValueId v : inputs) h.inputs.push_back(type(v).dtype);
  for (const ValueId v : results) h.results.push_back(type(v).dtype);
}

// `env` knows the inputs and the sizes that they bind. Said where the kernel is declared. Adds to `to` the shaders whose condition
// holds, and the C++ that is allowed, where they see the tensors as devices have them: f32 and i32.
bool FunctionBuilder::check_kernels(const Symbol& op, const Environment& inputs, const std::vector<ValueId>& values, graph::Custom& to) {
  const auto& decl = ast::as<ast::OpDecl>(*op.decl);
  Environment env = inputs;
  const bool bound =
      std::all_of(values.begin(), values.end(), [&](ValueId v) { return type(v).dtype == DType::f32 || type(v).dtype == DType::i32; });
  for (int t = 0; t <= static_cast<int>(DType::boolean); ++t) {
    const std::string name(modelc::name(static_cast<DType>(t)));
    env.define(name, Value::string(name), {});       // `when dtype(x) == f16`
  }
  const bool first = in_.custom_ops.insert(&op).second;
  const graph::Where where = in_.where(decl.name.span);
  for (const ast::Kernel& kernel : decl.kernels) {
    const std::string file = kernel.file.value;
    if (kernel.backend.text == "cpu") {
      if (kernel.local_size || kernel.dispatch || !kernel.required.empty()) {
        fail(code::bad_kernel, kernel.span, "a `cpu` kernel has no local_size, dispatch or requires: it is a C++ function");
        return false;
      }
      const std::filesystem::path folder = allowed_folder(op, file);
      if (folder.empty()) {
        fail(code::extension_refused, kernel.file.span,
             "the operation `" + op.name + "` brings C++ of its own, " + quote(file) + ", which runs only when asked for")
            .help(in_.extensions.empty() ? "--allow-extension DIR with the folder that holds it; without this line the reference is "
                                           "computed, which means the same"
                                         : "it lies in none of the folders of --allow-extension");
        return false;
      }
      if (!bound) {
        fail(code::bad_kernel, kernel.file.span,
             "C++ of an operation sees f32 and whole numbers, and an input of `" + op.name + "` is neither");
        return false;
      }
      if (kernel.when) {
        const auto holds = ev_.condition(*kernel.when, env);
        if (!holds) return false;
        if (!*holds) continue;
      }
      const auto number = host_code(op, kernel, folder);
      if (!number) return false;
      if (to.host < 0) to.host = *number;
      continue;
    }
    if (kernel.when) {
      const auto holds = ev_.condition(*kernel.when, env);
      if (!holds) return false;
      if (!*holds) continue;
    }
    if (const auto& real = in_.sources().real_path(op.file->id); first && !real.empty()) {
      std::error_code error;
      if (!std::filesystem::is_regular_file(real.parent_path() / file, error)) {
        fail(code::bad_kernel, kernel.file.span, "there is no shader " + quote(file) + " beside the model file")
            .note("looked for " + (real.parent_path() / file).string());
        return false;
      }
    }
    graph::Dispatch dispatch;
    if (kernel.local_size) {
      const Value size = ev_.eval(*kernel.local_size, env);
      if (size.is_error()) return false;
      if (!size.is(ValueKind::integer) || size.as_int() < 1 || size.as_int() > 1024) {
        fail(code::bad_kernel, kernel.local_size->span,
             "local_size is a whole number from 1 to 1024, known early, not " + (size.is_number() ? show_formula(size) : kind_name(size)));
        return false;
      }
      dispatch.local_size = size.as_int();
    }
    if (!kernel.dispatch) {
      fail(code::bad_kernel, kernel.span, "a shader says with `dispatch [x, y, z]` how many work groups run");
      return false;
    }
    const Value groups = ev_.eval(*kernel.dispatch, env);
    if (groups.is_error()) return false;
    const bool sizes = groups.is(ValueKind::list) && !groups.items().empty() && groups.items().size() <= 3 &&
                       std::all_of(groups.items().begin(), groups.items().end(),
                                   [](const Value& v) { return v.is(ValueKind::dim) || (v.is(ValueKind::integer) && v.as_int() >= 1); });
    if (!sizes) {
      fail(code::bad_kernel, kernel.dispatch->span,
           "dispatch lists one to three sizes of at least 1, not " + (groups.is(ValueKind::list) ? show(groups) : kind_name(groups)));
      return false;
    }
    for (const ast::Name& feature : kernel.required) {
      if (std::find(features.begin(), features.end(), feature.text) != features.end()) continue;
      std::vector<std::string> names(features.begin(), features.end());
      const std::string near = diag::did_you_mean(feature.text, names);
      fail(code::bad_kernel, feature.span, "there is no feature `" + feature.text + "` that a shader could require")
          .help(near.empty() ? "known are " + listed(names, names.size()) : near);
      return false;
    }
    for (const Value& v : groups.items()) dispatch.groups.push_back(v.is(ValueKind::dim) ? v.as_dim() : dims().constant(v.as_int()));
    if (bound && !in_.sources().real_path(op.file->id).empty()) {
      const auto number = shader(op, kernel);
      if (!number) return false;
      dispatch.shader = static_cast<int>(*number);
      to.dispatches.push_back(std::move(dispatch));
    }
    if (first)
      in_.kernel_notes.push_back(where.file + ":" + std::to_string(where.line) + ": the shader " + quote(file) + " of `" + op.name +
                                 "` is for the vulkan backend; elsewhere its reference is computed");
  }
  return true;
}

}  // namespace modelc::sema
