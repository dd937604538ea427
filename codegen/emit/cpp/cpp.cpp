// The layout of the two C++ files: which piece stands where.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpp/pieces.h"
#include "runtime/abi/axes.h"
#include "runtime/abi/version.h"

namespace modelc::emit {

namespace {

std::string config_struct(const plan::Program& p, const std::string& name) {
  if (p.graph->config.empty()) return "";
  std::string s = fmt::format("// The values of the configuration that the model was built for.\nstruct {} {{\n", name);
  Scope scope({std::string_view(name)});
  for (const graph::ConfigFact& f : p.graph->config) {
    const std::string id = scope.unique(f.name);
    if (const auto* i = std::get_if<std::int64_t>(&f.value)) s += fmt::format("  static constexpr std::int64_t {} = {};\n", id, *i);
    else if (const auto* d = std::get_if<double>(&f.value))
      s += fmt::format("  static constexpr double {} = {};\n", id, double_literal(*d));
    else if (const auto* b = std::get_if<bool>(&f.value)) s += fmt::format("  static constexpr bool {} = {};\n", id, *b);
    else s += fmt::format("  static constexpr const char* {} = {};\n", id, string_literal(std::get<std::string>(f.value)));
  }
  return s + "};\n\n";
}

const graph::Function& graph_function(const plan::Program& p, const plan::Function& f) {
  for (const graph::Function& g : p.graph->of(p.graph->root).functions)
    if (g.name == f.name) return g;
  return p.graph->of(p.graph->root).functions[0];
}

// tokens → logits: what a generator calls.
bool is_language_model(const plan::Program& p, const plan::Function& f) {
  if (f.name != "forward" || f.inputs.size() != 1 || f.outputs.size() != 1 || f.at != plan::TakesAt::batch) return false;
  const auto& in = f.buffers[f.inputs[0].index].type;
  const auto& out = f.buffers[f.outputs[0].index].type;
  const auto tokens = p.dims->find_axis("tokens"), outputs = p.dims->find_axis("outputs");
  return in.index_bound && in.shape.size() == 1 && out.shape.size() == 2 && tokens && outputs && in.shape[0] == p.dims->of_axis(*tokens) &&
         out.shape[0] == p.dims->of_axis(*outputs);
}

std::string port(const plan::Program& p, const std::string& name, const graph::Type& t, std::optional<double> absent = {}) {
  std::string shape = "[";
  for (std::size_t i = 0; i < t.shape.size(); ++i) shape += (i ? ", " : "") + p.dims->text(t.shape[i]);
  shape += "]";
  const auto bound = t.index_bound ? p.dims->value(*t.index_bound) : std::nullopt;
  return fmt::format(
      "{{.name = {}, .dtype = modelc::DType::{}, .shape = {}{}}}", string_literal(name),
      t.dtype == DType::boolean ? "boolean" : modelc::name(t.dtype), string_literal(shape),
      (bound ? fmt::format(", .index_bound = {}", *bound) : "") + (absent ? ", .default_value = " + double_literal(*absent) : ""));
}

std::string entry_table(const plan::Program& p, const std::vector<const plan::Function*>& entries) {
  std::string s = fmt::format("const std::array<modelc::EntryDesc, {}> entry_table = {{{{\n", entries.size());
  for (const plan::Function* f : entries) {
    const graph::Function& g = graph_function(p, *f);
    std::vector<std::string> in, out;
    for (std::size_t i = 0; i < f->inputs.size(); ++i) {
      std::optional<double> absent;
      for (const graph::Parameter& parameter : g.inputs)
        if (parameter.name == f->input_names[i]) absent = parameter.default_value;
      in.push_back(port(p, f->input_names[i], f->buffers[f->inputs[i].index].type, absent));
    }
    for (std::size_t i = 0; i < f->outputs.size(); ++i)
      out.push_back(
          port(p, f->output_names[i].empty() ? (f->outputs.size() == 1 ? "result" : fmt::format("result_{}", i + 1)) : f->output_names[i],
               g.values[g.body.results[i].index].type));
    s += fmt::format("    {{.name = {},\n", string_literal(f->name));
    s += wrapped("     .inputs = {", in, "},") + "\n";
    s += wrapped("     .outputs = {", out, "},") + "\n";
    static constexpr const char* at[] = {"none", "sequences", "batch"};
    s += fmt::format("     .at = modelc::CallAt::{}, .advances = {}}},\n", at[static_cast<int>(f->at)], f->advances);
  }
  return s + "}};\n\n";
}

bool names_sequences(const plan::Program& p) {
  for (const plan::Class& c : p.classes)
    for (const plan::Function& f : c.functions)
      if (f.at == plan::TakesAt::sequences) return true;
  return false;
}

// Of a model that declares axes of its own.
bool has_axes(const plan::Program& p) { return p.dims->axes().size() > prelude_axes.size(); }

std::string axis_names(const plan::Program& p) {
  if (!has_axes(p)) return "";
  std::string s =
      "// ---- run-time axes of its own ----------------------------------------------------------------------------------------\n\n"
      "namespace axes {\n\n";
  for (std::size_t i = prelude_axes.size(); i < p.dims->axes().size(); ++i)
    s += fmt::format("constexpr int {} = {};\n", identifier(p.dims->axes()[i].name), i);
  return s + "\n}  // namespace axes\n\n";
}

std::string axis_table(const plan::Program& p) {
  if (!has_axes(p)) return "";
  std::string s = fmt::format("const std::array<modelc::AxisDesc, {}> axis_table = {{{{\n", p.dims->axes().size());
  for (const graph::Axis& a : p.dims->axes()) {
    s += fmt::format("    {{.name = {}, .lo = {}", string_literal(a.name), a.lo);
    if (a.hi) s += fmt::format(", .hi = {}", *a.hi);
    if (a.by != 1) s += fmt::format(", .by = {}", a.by);
    s += "},\n";
  }
  return s + "}};\n\n";
}

std::string braced(const std::vector<std::string>& texts) {
  std::string s;
  for (const std::string& t : texts) s += (s.empty() ? "" : ", ") + string_literal(t);
  return "{" + s + "}";
}

// The rules of one format.
std::string rules_text(const graph::CheckpointRules& rules) {
  std::vector<std::string> lists = {"    .format = " + string_literal(rules.format)};
  if (!rules.architecture.empty()) lists.push_back("    .architecture = " + string_literal(rules.architecture));
  std::vector<std::string> rows;
  const auto finish_list = [&] {
    if (!rows.empty()) lists.push_back(fmt::format("{}}}", fmt::join(rows, ",\n")));
    rows.clear();
  };
  const auto row = [&](const std::string& list, const std::vector<std::string>& parts, const std::string& end = "}") {
    rows.push_back(wrapped(rows.empty() ? "    ." + list + " = {{" : std::string(list.size() + 9, ' ') + "{", parts, end));
  };
  for (const auto& a : rules.aliases) {
    std::vector<std::string> parts = {".weight = " + string_literal(a.weight), ".target = " + string_literal(a.target)};
    if (!a.when.empty()) {
      parts.push_back(".when = " + string_literal(a.when));
      parts.push_back(".because = " + string_literal(a.because));
    }
    row("aliases", parts);
  }
  finish_list();
  for (const auto& i : rules.ignores) {
    std::vector<std::string> parts = {".pattern = " + string_literal(i.pattern)};
    if (!i.only.empty()) parts.push_back(".only = " + string_literal(i.only));
    row("ignores", parts);
  }
  finish_list();
  for (const auto& r : rules.maps) {
    std::vector<std::string> parts;
    if (!r.file.empty()) parts.push_back(".file = " + braced(r.file));
    parts.push_back(".model = " + braced(r.model));
    if (!r.via.empty()) parts.push_back(".via = " + string_literal(r.via));
    const std::string set = r.set < 0 ? "" : fmt::format(".set = {}, .alternative = {}", r.set, r.alternative);
    if (r.only.empty()) {
      if (!set.empty()) parts.push_back(set);
      row("maps", parts);
      continue;
    }
    // The range of an index has more digits the more layers there are: on a line of its own, so that no row wraps by it.
    row("maps", parts, "");
    rows.back() += fmt::format(",\n{}.only = {}{}}}", std::string(14, ' '), string_literal(r.only), set.empty() ? "" : ", " + set);
  }
  finish_list();
  for (const auto& r : rules.sets) row("sets", {".where = " + string_literal(r.where), ".alternatives = " + braced(r.alternatives)});
  finish_list();
  for (const auto& e : rules.encodes) {
    std::vector<std::string> parts = {".pattern = " + string_literal(e.pattern)};
    if (!e.only.empty()) parts.push_back(".only = " + string_literal(e.only));
    parts.push_back(".name = " + string_literal(e.name));
    parts.push_back(".axes = " + string_literal(e.axes));
    std::string all;
    for (const auto& p : e.parts) all += (all.empty() ? "" : ", ") + braced({p.name, p.at, p.dtype, p.shape});
    parts.push_back(".parts = {" + all + "}");
    parts.push_back(".value = " + string_literal(e.value));
    row("encodes", parts);
  }
  finish_list();
  return fmt::format("{}", fmt::join(lists, ",\n"));
}

// One table a format.
std::string rule_table(const graph::Module& m) {
  std::string s = "const modelc::CheckpointRulesData rule_table[] = {\n";
  for (const graph::CheckpointRules& r : m.checkpoints) s += "  {\n" + rules_text(r) + ",\n  },\n";
  if (m.checkpoints.empty()) s += "  {},\n";
  return s + "};\n";
}

std::string open_namespace(const std::string& name) { return name.empty() ? "" : fmt::format("namespace {} {{\n\n", name); }
std::string close_namespace(const std::string& name) { return name.empty() ? "" : fmt::format("\n}}  // namespace {}\n", name); }

std::string title(const plan::Program& p, const Options& o) {
  return fmt::format("// {}: {}. Written by modelc {}; change that file, not this one.\n", comment_text(o.class_name),
                     comment_text(p.graph->file), o.version);
}

std::string root_class(const Names& names, const std::vector<const plan::Function*>& entries, const Options& o) {
  const plan::Program& p = names.program;
  const graph::ClassId id = p.graph->root;
  const graph::Class& c = p.graph->of(id);
  const std::string& type = names.classes[id.index].type;
  std::string s;
  if (c.where.line) s += fmt::format("// {}:{}\n", comment_text(c.where.file), c.where.line);
  s += fmt::format("class {} final : public modelc::Model {{\n public:\n{}\n", type, member_declarations(names, id));
  s += fmt::format(
      "  // From a folder, a .safetensors file, or headers already read. Everything that is wrong is in the one error.\n"
      "  static modelc::Result<std::unique_ptr<{0}>> load(const std::string& path, const modelc::LoadOptions& options = {{}});\n"
      "  static modelc::Result<std::unique_ptr<{0}>> load(const modelc::CheckpointIndex& checkpoint,\n"
      "  {1}const modelc::LoadOptions& options = {{}});\n\n",
      type, std::string(std::string("static modelc::Result<std::unique_ptr<>> load(").size() + type.size(), ' '));
  for (const plan::Function* f : entries)
    if (is_language_model(p, *f))
      s += fmt::format(
          "  // {}\n  // The logits stay valid until the next call.\n"
          "  modelc::Result<std::span<const float>> forward(modelc::State& state, std::span<const std::int32_t> {},\n"
          "                                                 const modelc::Batch& at);\n\n",
          comment_text(f->shapes), identifier(f->input_names[0]));
  s += fmt::format("  const char* type_name() const override {{ return {}; }}\n", string_literal(o.class_name));
  s += "  std::span<const modelc::EntryDesc> entries() const override;\n";
  s += fmt::format("  std::int64_t context() const override {{ return {}; }}\n", p.graph->context.value_or(0));
  if (has_axes(p)) s += "  std::span<const modelc::AxisDesc> axes() const override;\n";
  if (!p.graph->placement.empty()) s += "  std::vector<modelc::PlaceRule> placement() const override;\n";
  s += "  std::int64_t arena_bytes(const modelc::StepSizes& s) const override;\n"
       "  void members(modelc::MemberVisitor& v) override;\n";
  const plan::Class& planned = p.classes[id.index];
  if (!planned.packs.empty() || !planned.step_values.empty() || !c.consts.empty()) s += "  void bind(modelc::Binder& binder) override;\n";
  s += "\n private:\n";
  for (const plan::Function* f : entries) s += function_head(names, id, *f, "", true) + ";\n";
  s += "  void run(int entry, modelc::Step& s, std::span<const modelc::Tensor> inputs,\n"
       "           std::span<const modelc::Tensor> outputs) const override;\n};\n";
  return s;
}

// The lines of `place`, one a row.
std::string placement(const graph::Module& m, const std::string& type) {
  if (m.placement.empty()) return "";
  std::vector<std::string> rows;
  for (const PlaceRule& r : m.placement) {
    std::vector<std::string> parts = {".pattern = " + string_literal(r.pattern)};
    if (r.first) parts.push_back(fmt::format(".first = {}", *r.first));
    if (r.end) parts.push_back(fmt::format(".end = {}", *r.end));
    parts.push_back(".device = " + string_literal(r.device));
    if (!r.where.empty()) parts.push_back(".where = " + string_literal(r.where));
    rows.push_back(wrapped("      {", parts, "}"));
  }
  return fmt::format("std::vector<modelc::PlaceRule> {}::placement() const {{\n  return {{\n{},\n  }};\n}}\n\n", type,
                     fmt::join(rows, ",\n"));
}

std::string runtime_seam(const Names& names, const std::vector<const plan::Function*>& entries, const Options& o) {
  const plan::Program& p = names.program;
  const graph::ClassId id = p.graph->root;
  const std::string& type = names.classes[id.index].type;
  std::string s =
      "// ---- the seam to the runtime ---------------------------------------------------------------------------------------\n\n";
  s += fmt::format(
      "modelc::Result<std::unique_ptr<{0}>> {0}::load(const std::string& path, const modelc::LoadOptions& options) {{\n"
      "  auto checkpoint = modelc::open_checkpoint(path);\n"
      "  if (!checkpoint) return std::move(checkpoint.error());\n"
      "  return load(*checkpoint, options);\n}}\n\n"
      "modelc::Result<std::unique_ptr<{0}>> {0}::load(const modelc::CheckpointIndex& checkpoint,\n"
      "    const modelc::LoadOptions& options) {{\n"
      "  auto loaded = std::make_unique<{0}>();\n"
      "  if (auto status = loaded->load_weights(checkpoint, rule_table, options); !status) return std::move(status.error());\n"
      "  return loaded;\n}}\n\n",
      type);
  for (const plan::Function* f : entries)
    if (is_language_model(p, *f))
      s += fmt::format(
          "modelc::Result<std::span<const float>> {0}::forward(modelc::State& state, std::span<const std::int32_t> {1},\n"
          "    const Batch& at) {{\n  return logits(state, at, {1});\n}}\n\n",
          type, identifier(f->input_names[0]));
  s += fmt::format("std::span<const modelc::EntryDesc> {}::entries() const {{ return entry_table; }}\n\n", type);

  if (has_axes(p)) s += fmt::format("std::span<const modelc::AxisDesc> {}::axes() const {{ return axis_table; }}\n\n", type);
  s += placement(*p.graph, type);
  const bool fixed = p.dims->is_constant(p.peak_bytes);
  s += fmt::format(
      "// The plan's peak, in bytes; frames of single functions stand above them.\n"
      "std::int64_t {}::arena_bytes(const modelc::StepSizes&{}) const {{\n  return {};\n}}\n\n",
      type, fixed ? "" : " s", dim_expression(*p.dims, p.peak_bytes, {"s."}));

  s += fmt::format(
      "void {}::run(int entry, Step& s, std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {{\n"
      "  switch (entry) {{\n",
      type);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const plan::Function& f = *entries[i];
    std::vector<std::string> args = {"s"};
    for (std::size_t k = 0; k < f.inputs.size(); ++k) args.push_back(fmt::format("inputs[{}]", k));
    if (f.at == plan::TakesAt::batch) args.push_back("s.at()");
    if (f.at == plan::TakesAt::sequences) args.push_back("s.sequences()");
    for (std::size_t k = 0; k < f.outputs.size(); ++k) args.push_back(fmt::format("outputs[{}]", k));
    s += wrapped(fmt::format("    case {}: return {}(", i, names.classes[id.index].functions.at(f.name)), args, ");") + "\n";
  }
  s += "    default: break;\n  }\n}\n\n";
  s += fmt::format("const modelc::ModelFactory {}_factory = modelc::factory_of<{}>({}, {}, {});\n", snake_case(type), type,
                   string_literal(o.class_name), string_literal(p.graph->file), string_literal(o.version));
  return s;
}

// "llama_scaled.h": the host code of a custom operation, as it came.
std::string host_file(const Names& names, const Options& o, std::size_t i) { return o.file + "_" + names.host[i] + "_host.h"; }

// What calls the functions of custom operations with what they expect.
std::string host_kernels(const Names& names) {
  const std::vector<graph::HostCode>& all = names.program.graph->host_code;
  if (all.empty()) return "";
  std::string s =
      "// ---- custom operations, as C++ that came with the model file -------------------------------------------------------------\n\n"
      "namespace host {\n\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> arguments = {"at"};
    const auto add = [&](DType type, bool written) {
      arguments.push_back(
          fmt::format("t[{}].as<{}{}>()", arguments.size() - 1, written ? "" : "const ", type == DType::i32 ? "std::int32_t" : "float"));
    };
    for (const DType t : all[i].inputs) add(t, false);
    for (const DType t : all[i].results) add(t, true);
    s += fmt::format("constexpr modelc::HostKernel {} = {{{}, [](modelc::OpContext& at, std::span<const modelc::OpTensor> t) {{\n",
                     names.host[i], string_literal(all[i].op));
    s += wrapped(fmt::format("  ::{}(", identifier(all[i].op)), arguments, ");") + "\n}};\n";
  }
  return s + "\n}  // namespace host\n\n";
}

}  // namespace

std::vector<File> cpp(const plan::Program& p, const Options& o) {
  const Names names(p, o);
  const graph::ClassId root = p.graph->root;
  const std::string& type = names.classes[root.index].type;
  std::vector<const plan::Function*> entries;
  for (const plan::Function& f : p.classes[root.index].functions)
    if (f.kind != graph::FunctionKind::init) entries.push_back(&f);
  const auto written = [&](std::size_t i) { return i != root.index && names.classes[i].first; };

  std::string h = title(p, o);
  h += "#pragma once\n\n#include <array>\n#include <cstdint>\n#include <limits>\n#include <memory>\n#include <span>\n"
       "#include <string>\n#include <variant>\n#include <vector>\n\n#include \"runtime/modelc.h\"\n\n";
  h += fmt::format(
      "static_assert(modelc::generated_code_version == {},\n              \"{}.h is of another modelc: build it again with this "
      "one's\");\n\n",
      generated_code_version, comment_text(identifier(o.file)));
  h += open_namespace(o.name_space) + config_struct(p, type + "Config");
  for (std::size_t i = 0; i < p.classes.size(); ++i)
    if (written(i)) h += struct_text(names, {static_cast<std::uint32_t>(i)}) + "\n";
  h += root_class(names, entries, o);
  h += fmt::format("\n// For programs that know no architecture (the stock main).\nextern const modelc::ModelFactory {}_factory;\n",
                   snake_case(type));
  h += close_namespace(o.name_space);

  std::string s = title(p, o);
  s += fmt::format("#include \"{}.h\"\n\n#include <utility>\n\n", o.file);
  if (o.vulkan && !(p.kernels.empty() && p.graph->shaders.empty())) s += fmt::format("#include \"{}_shaders.h\"\n\n", o.file);
  for (std::size_t i = 0; i < p.graph->host_code.size(); ++i) s += fmt::format("#include \"{}\"\n\n", host_file(names, o, i));
  s += open_namespace(o.name_space);
  s += "using modelc::Batch;\n" + std::string(names_sequences(p) ? "using modelc::Sequences;\n" : "") +
       "using modelc::MapArgs;\nusing modelc::MapKernel;\nusing modelc::Step;\nusing modelc::Tensor;\n";
  s += "\nnamespace {\n\n";
  s += axis_names(p);
  if (!p.kernels.empty()) {
    s += "// ---- fused elementwise expressions ----------------------------------------------------------------------------------\n\n"
         "namespace kernels {\n\nnamespace math = modelc::math;\n\n";
    for (std::size_t i = 0; i < p.kernels.size(); ++i) s += kernel_text(p.kernels[i], names.kernels[i], names.kernels, o.vulkan) + "\n";
    s += "}  // namespace kernels\n\n";
  }
  s += host_kernels(names);
  s += "// ---- buffers of each function: pieces of the arena, given back when it ends -------------------------------------------\n\n";
  for (std::size_t i = 0; i < p.classes.size(); ++i)
    if (i == root.index || written(i)) s += buffer_structs(names, {static_cast<std::uint32_t>(i)});
  s += "// ---- what calls and checkpoints are checked against -------------------------------------------------------------------\n\n";
  s += axis_table(p) + entry_table(p, entries) + rule_table(*p.graph) + "\n}  // namespace\n\n";
  for (std::size_t i = 0; i < p.classes.size(); ++i)
    if (written(i)) s += class_source(names, {static_cast<std::uint32_t>(i)}) + "\n";
  s += class_source(names, root) + "\n" + runtime_seam(names, entries, o) + close_namespace(o.name_space);
  std::vector<File> files = {{o.file + ".h", h}, {o.file + ".cpp", s}};
  for (std::size_t i = 0; i < p.graph->host_code.size(); ++i) files.push_back({host_file(names, o, i), p.graph->host_code[i].text});
  return files;
}

bool is_language_model(const plan::Program& p) {
  const std::vector<plan::Function>& functions = p.classes[p.graph->root.index].functions;
  return std::any_of(functions.begin(), functions.end(), [&p](const plan::Function& f) { return is_language_model(p, f); });
}

namespace {

// "llama::llama_factory"
std::string factory_name(const Names& names, const Options& o) {
  return (o.name_space.empty() ? "" : o.name_space + "::") + snake_case(names.classes[names.program.graph->root.index].type) + "_factory";
}

// "llama_model_type" of llama::Llama, "acme_v2_llama_model_type" of acme::v2::Llama: C has no namespaces.
std::string c_function(const Names& names, const Options& o) {
  const std::string type = snake_case(names.classes[names.program.graph->root.index].type);
  std::string before = o.name_space;
  for (std::size_t at = 0; (at = before.find("::", at)) != std::string::npos;) before.replace(at, 2, "_");
  return (before.empty() || before == type ? "" : before + "_") + type + "_model_type";
}

}  // namespace

std::vector<File> c_api(const plan::Program& p, const Options& o) {
  const Names names(p, o);
  const std::string function = c_function(names, o);
  std::string guard = function + "_H";
  for (char& c : guard) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string block = title(p, o);                         // a comment that C99 and older compilers know
  for (std::size_t at = 0; (at = block.find("*/", at)) != std::string::npos;) block.insert(at + 1, " ");
  block = "/*" + block.substr(2, block.size() - 3) + " */\n";
  const std::string h = block + fmt::format(
                                    "#ifndef {0}\n#define {0}\n\n#include \"runtime/c/modelc.h\"\n\n"
                                    "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
                                    "/* For modelc_load. */\nconst modelc_model_type* {1}(void);\n\n"
                                    "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
                                    guard, function);
  const std::string s = title(p, o) + fmt::format(
                                          "#include \"{0}_c.h\"\n\n#include \"{0}.h\"\n#include \"runtime/c/model_type.h\"\n\n"
                                          "const modelc_model_type* {1}(void) {{\n"
                                          "  static constexpr modelc_model_type type{{&{2}}};\n  return &type;\n}}\n",
                                          o.file, function, factory_name(names, o));
  return {{o.file + "_c.h", h}, {o.file + "_c.cpp", s}};
}

File stock_main(const plan::Program& p, const Options& o) {
  const Names names(p, o);
  const std::string factory = factory_name(names, o);
  return {o.file + "_main.cpp",
          title(p, o) + fmt::format("#include \"{}.h\"\n#include \"runtime/main/main.h\"\n\n"
                                    "int main(int argc, char** argv) {{ return modelc::stock_main(argc, argv, {}); }}\n",
                                    o.file, factory)};
}

}  // namespace modelc::emit
