#include "codegen/driver/pipeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "codegen/driver/settings.h"
#include "codegen/emit/cpp/namer.h"
#ifdef MODELC_VULKAN
#include "codegen/emit/spirv/compile.h"
#endif
#include "codegen/lower/lower.h"
#include "codegen/plan/printer.h"
#include "codegen/plan/reader.h"
#include "codegen/plan/verifier.h"
#include "frontend/diagnostics/render.h"
#include "frontend/graph/reader.h"
#include "frontend/graph/verifier.h"
#include "runtime/base/strings.h"
#include "runtime/base/yaml.h"
#include "runtime/checkpoint/open.h"
#include "runtime/device/place_text.h"

namespace modelc::driver {

namespace fs = std::filesystem;
namespace code = diag::code;

Session::Session(const Options& o) : options(o), vulkan(wants_vulkan(o)) {}

bool Session::report() {
  const bool good = !sink.has_errors();
  status_ = good ? 0 : 2;
  for (const diag::Diagnostic& d : sink.diagnostics())
    if (d.severity == diag::Severity::error && d.code != &code::bad_option && d.code != &code::option_later &&
        d.code != &code::config_set_unknown)
      status_ = 1;
  if (options.json) {
    std::fputs(diag::render_json(sink, sources).c_str(), stdout);
  } else {
    const char* no_colour = std::getenv("NO_COLOR");
    const bool colour = isatty(STDERR_FILENO) != 0 && (!no_colour || !*no_colour);
    std::fputs(diag::render(sink, sources, {.colour = colour, .full_paths = options.full_paths}).c_str(), stderr);
  }
  sink.clear();
  return good;
}

std::string stdlib_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = self.parent_path().parent_path() / "share" / "modelc" / "stdlib";
    if (fs::is_directory(installed, error)) return installed.string();
  }
  return (fs::path(settings::source_dir) / "stdlib").string();
}

sema::Options sema_options(const Options& o) {
  sema::Options options;
  options.import_paths = o.import_paths;
  options.library = stdlib_folder();
  options.extensions = o.allow_extension;
  if (!o.root.empty()) options.root = o.root;
  return options;
}

namespace {

// Host code in the text of a graph is code all the same.
bool may_run(Session& s, const graph::Module& module) {
  if (module.host_code.empty() || !s.options.allow_extension.empty()) return true;
  s.sink
      .error(code::extension_refused, s.sources.display_name(s.main),
             "the text holds C++ of the operation `" + module.host_code.front().op + "`, which runs only when asked for")
      .help("--allow-extension DIR, of any folder, says that you know it");
  return false;
}

}  // namespace

bool is_graph_text(const std::string& path) { return path.ends_with(".graph"); }

std::optional<sema::Program> load_graph(Session& s, const std::string& path) {
  const fs::path file(path);
  s.file_base = file.stem().string();
  const auto id = diag::load_source(s.sources, file, file.filename().string(), s.sink);
  if (!id) return std::nullopt;
  s.main = *id;
  auto module = graph::read(s.sources.text(*id));
  if (!module) {
    s.sink.error(code::bad_graph_text, s.sources.display_name(*id), module.error());
    return std::nullopt;
  }
  for (const std::string& fault : graph::verify(*module)) s.sink.error(code::bad_graph_text, s.sources.display_name(*id), fault);
  if (s.sink.has_errors()) return std::nullopt;
  sema::Program program;
  program.graph = std::move(*module);
  program.files = {path};
  if (!may_run(s, program.graph)) return std::nullopt;
  return program;
}

bool is_plan_text(const std::string& path) { return path.ends_with(".plan"); }

std::optional<plan::Program> load_plan(Session& s, const std::string& path) {
  const fs::path file(path);
  s.file_base = file.stem().string();
  const auto id = diag::load_source(s.sources, file, file.filename().string(), s.sink);
  if (!id) return std::nullopt;
  s.main = *id;
  auto program = plan::read(s.sources.text(*id));
  if (!program) {
    s.sink.error(program.error().kind == "graph-text" ? code::bad_graph_text : code::bad_plan_text, s.sources.display_name(*id),
                 program.error());
    return std::nullopt;
  }
  for (const std::string& fault : graph::verify(*program->graph)) s.sink.error(code::bad_graph_text, s.sources.display_name(*id), fault);
  if (s.sink.has_errors()) return std::nullopt;
  for (const std::string& fault : plan::verify(*program)) s.sink.error(code::bad_plan_text, s.sources.display_name(*id), fault);
  if (s.sink.has_errors() || !may_run(s, *program->graph)) return std::nullopt;
  return std::move(*program);
}

bool load_model(Session& s, const std::string& path) {
  const fs::path file(path);
  s.file_base = file.stem().string();
  const auto id = diag::load_source(s.sources, file, file.filename().string(), s.sink);
  if (!id) return false;
  s.main = *id;
  const sema::Options options = sema_options(s.options);
  s.imports = sema::load_imports(s.sources, s.main, options, s.sink);
  return s.imports != nullptr;
}

std::shared_ptr<const CheckpointIndex> open_checkpoint_of(Session& s) {
  if (s.options.checkpoint.empty()) return nullptr;
  auto index = open_checkpoint(s.options.checkpoint, {.allow_trailing = s.options.allow_trailing});
  if (!index) {
    s.sink.error(code::checkpoint_unreadable, s.options.checkpoint.front(), index.error());
    return nullptr;
  }
  return std::make_shared<const CheckpointIndex>(std::move(*index));
}

std::optional<sema::ConfigInput> config_of_file(Session& s, const CheckpointIndex& checkpoint) {
  const std::string name = checkpoint.files().empty() ? "the file" : checkpoint.files()[0].label;
  auto tree = sema::config_of_metadata(
      *s.imports, {*checkpoint.metadata, [&](std::string_view t) { return checkpoint.find(t) != nullptr; }, name}, s.sink);
  if (!tree) return std::nullopt;
  sema::ConfigInput input;
  input.tree = std::move(*tree);
  input.name = name;
  return input;
}

std::optional<sema::ConfigInput> config_of(Session& s, const CheckpointIndex* checkpoint) {
  sema::ConfigInput input;
  if (!s.options.config.empty()) {
    const std::string name = fs::path(s.options.config).filename().string();
    auto file = read_config_file(s.options.config, {.name = name});
    if (!file) {
      diag::error_in_text(s.sink, s.sources, code::config_unreadable, s.options.config, name, file.error());
      return std::nullopt;
    }
    input.tree = std::move(file->root);
    input.name = name;
    input.text = s.sources.add(name, std::move(file->text), s.options.config);
    input.folder = fs::path(s.options.config).parent_path().string();
    if (input.folder.empty()) input.folder = ".";
  } else if (checkpoint && checkpoint->config) {
    input.tree = checkpoint->config->root;
    input.name = fs::path(checkpoint->config->path).filename().string();
    input.text = s.sources.add(input.name, checkpoint->config->text, checkpoint->config->path);
    input.folder = fs::path(checkpoint->config->path).parent_path().string();
  } else if (checkpoint && checkpoint->metadata && s.imports) {
    auto made = config_of_file(s, *checkpoint);
    if (!made) return std::nullopt;
    input = std::move(*made);
  } else {
    return std::nullopt;
  }
  for (const std::string& set : s.options.set) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0) {
      s.sink.error(code::bad_option, "--set", fmt::format("--set {}: expected key=value", quote(set)));
      return std::nullopt;
    }
    // A value is JSON where it reads as JSON, else a string: --set hidden_act=gelu needs no quotes.
    const std::string text = set.substr(equals + 1);
    auto value = parse_json(text, {.name = "--set"});
    input.overrides.push_back({set.substr(0, equals), value ? std::move(*value) : Json(text)});
  }
  return input;
}

std::optional<sema::Program> analyze_model(Session& s, const sema::ConfigInput* config) {
  const sema::Options options = sema_options(s.options);
  return sema::analyze(s.sources, s.imports, config, options, s.sink);
}

namespace {

const diag::Code& code_of(const std::string& kind) {
  if (kind == "missing-weight") return code::weight_missing;
  if (kind == "shape") return code::weight_shape;
  if (kind == "dtype") return code::weight_dtype;
  if (kind == "layout") return code::weight_layout;
  if (kind == "parts") return code::parts_incomplete;
  if (kind == "one-of") return code::no_alternative;
  if (kind == "architecture") return code::wrong_architecture;
  if (kind == "list-length") return code::list_length;
  assert(kind == "unexpected-tensor");
  return code::tensor_unexpected;
}

// "llama.model:42:5" as the word that stands there; an invalid span when there is no such place.
source::Span span_of(const source::SourceManager& sources, const std::string& where) {
  const std::size_t second = where.rfind(':');
  if (second == std::string::npos || second == 0) return {};
  const std::size_t first = where.rfind(':', second - 1);
  if (first == std::string::npos) return {};
  const auto file = sources.find(where.substr(0, first));
  const auto line = parse_uint(where.substr(first + 1, second - first - 1)), column = parse_uint(where.substr(second + 1));
  if (!file || !line || !column || *line == 0 || *column == 0) return {};
  const std::string_view text = sources.line_text(*file, static_cast<std::uint32_t>(*line));
  std::uint32_t begin = 0;
  for (std::uint64_t c = 1; c < *column && begin < text.size(); ++c) do
      ++begin;
    while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80);
  std::uint32_t end = begin;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
  const std::uint32_t line_begin = sources.line_begin(*file, static_cast<std::uint32_t>(*line));
  return {*file, line_begin + begin, line_begin + std::max(end, begin + 1)};
}

}  // namespace

source::Span span_at(const Session& s, const std::string& where) { return span_of(s.sources, where); }

std::vector<MappingWeight> mapping_weights(const graph::Module& module) {
  std::vector<MappingWeight> weights;
  for (const graph::WeightInstance& w : graph::weight_instances(module)) {
    MappingWeight m;
    m.name = w.name;
    for (graph::DimId d : w.decl->type.shape) m.shape.push_back(module.dims.value(d).value_or(-1));
    m.formula = w.decl->shape_text;
    m.numbers = w.decl->shape_numbers;
    if (w.use.line) m.where = fmt::format("{}:{}:{}", w.use.file, w.use.line, w.use.column);
    m.origins = w.decl->origins;
    m.dtype = w.decl->required_dtype;
    m.has_default = w.decl->default_value.has_value();
    m.plain = w.decl->role == graph::WeightRole::vector;
    m.own = w.decl->path;
    weights.push_back(std::move(m));
  }
  return weights;
}

bool report_mapping(Session& s, Mapping& mapping) {
  for (Problem& p : mapping.problems) {
    Error e{p.kind, std::move(p.message), std::move(p.notes), std::move(p.help)};
    const source::Span span = span_of(s.sources, p.where);
    if (span.valid()) s.sink.error(code_of(p.kind), span, e);
    else s.sink.error(code_of(p.kind), mapping.checkpoint, e);
  }
  return !mapping.problems.empty();
}

Mapping map_weights_of(const Session& s, const graph::Module& module, const CheckpointIndex& checkpoint) {
  return map_weights(mapping_weights(module), rules_for(module.checkpoints, checkpoint), checkpoint,
                     {.strict = !s.options.no_strict, .auto_cast = s.options.auto_cast});
}

std::vector<std::string> check_weights(Session& s, const graph::Module& module, const CheckpointIndex& checkpoint) {
  Mapping mapping = map_weights_of(s, module, checkpoint);
  report_mapping(s, mapping);
  std::vector<std::string> notes = std::move(mapping.notes);
  notes.insert(notes.end(), mapping.left_to_load.begin(), mapping.left_to_load.end());
  return notes;
}

namespace {

bool same_place(const graph::Where& a, const graph::Where& b) { return a.line == b.line && a.column == b.column && a.file == b.file; }

// The operation of the block, or of one within it, that stands at the place; null where none does.
const graph::Op* op_at(const graph::Block& block, const graph::Where& where) {
  for (const graph::Op& op : block.ops) {
    if (same_place(op.where, where)) return &op;
    if (const graph::Op* inner = op.body ? op_at(*op.body, where) : nullptr) return inner;
  }
  return nullptr;
}

// The place in the model's own file that leads to a place in another: the call of the text that was expanded, or the child
// whose module, or whose child's module, has it. Line 0 where none does.
graph::Where led_from(const graph::Module& m, const graph::Where& where) {
  std::set<std::uint32_t> owners;                            // classes whose text has the place, and those above them
  for (std::uint32_t i = 0; i < m.classes.size(); ++i) {
    const graph::Class& c = m.classes[i];
    bool has = false;
    for (const graph::Function& f : c.functions) {
      const graph::Op* op = op_at(f.body, where);
      if (op != nullptr && op->call.file == m.file && op->call.line != 0) return op->call;
      has |= op != nullptr || same_place(f.where, where);
    }
    for (const graph::StateDecl& state : c.states) has |= same_place(state.where, where);
    if (has) owners.insert(i);
  }
  for (std::size_t before = 0; before != owners.size();) {
    before = owners.size();
    for (std::uint32_t i = 0; i < m.classes.size(); ++i) {
      for (const graph::ChildDecl& child : m.classes[i].children) {
        const bool leads =
            std::any_of(child.elements.begin(), child.elements.end(), [&](graph::ClassId e) { return owners.contains(e.index); });
        if (!leads) continue;
        if (child.where.file == m.file) return child.where;
        owners.insert(i);
      }
    }
  }
  return {};
}

source::Span span_of(const source::SourceManager& sources, const graph::Where& where) {
  return where.line ? span_of(sources, fmt::format("{}:{}:{}", where.file, where.line, where.column)) : source::Span{};
}

}  // namespace

std::optional<plan::Program> plan_model(Session& s, const sema::Program& program) {
  auto module = std::make_shared<const graph::Module>(program.graph);
  lower::Lowered lowered = lower::lower(module, {.shaders = s.vulkan});
  for (const lower::Failure& f : lowered.failures) {
    if (f.fault) throw std::logic_error(f.message);           // ours, not the user's: main says so, status 3
    const source::Span span = span_of(s.sources, f.where);
    const graph::Where from = f.where.line && f.where.file != module->file ? led_from(*module, f.where) : graph::Where{};
    const source::Span user = span_of(s.sources, from);
    if (user.valid()) s.sink.error(code::not_lowered, user, f.message).label(span, "the operation stands here");
    else if (span.valid()) s.sink.error(code::not_lowered, span, f.message);
    else s.sink.error(code::not_lowered, s.sources.display_name(s.main), f.message);
  }
  if (!lowered.failures.empty()) return std::nullopt;
  print_notes(lowered.notes);
  return std::move(lowered.program);
}

bool wants_vulkan(const Options& o) {
  if (const auto rules = read_placement(o.device); rules && names_vulkan(*rules)) return true;
  for (const std::string_view b : split(o.backend, ','))
    if (trim(b) == "vulkan") return true;
  return false;
}

void follow_placement(Session& s, const graph::Module& module) {
  if (s.options.device.empty() && s.options.backend.empty() && names_vulkan(module.placement)) s.vulkan = true;
}

namespace {

// The map kernels' shaders, compiled; false when one is refused.
bool add_shaders(Session& s, const plan::Program& program, const emit::Options& o, std::vector<emit::File>& files) {
#ifdef MODELC_VULKAN
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  fs::path include = self.parent_path().parent_path() / "share" / "modelc" / "shaders" / "include";
  if (error || !fs::is_directory(include, error)) include = fs::path(settings::source_dir) / "shaders" / "include";
  std::vector<emit::ShaderBinary> binaries;
  for (emit::ShaderFile& shader : emit::glsl(program, o)) {
    const std::string name = shader.custom != nullptr ? shader.custom->file : shader.file.name;
    const auto* contract = shader.contract.tensors > 0 ? &shader.contract : nullptr;   // none calls it
    const auto words = emit::compile_shader({name, shader.file.text, shader.defines, include.string(), contract});
    if (!words) {
      Error e = words.error();
      e.notes.push_back("it computes " + shader.computes);
      if (const source::Span line = span_of(s.sources, shader.where); line.valid()) {
        auto message = s.sink.error(code::shader_failed, line, e.message);
        for (const std::string& note : e.notes) message.note(note);
      } else {
        s.sink.error(code::shader_failed, program.graph->file, e);
      }
      return false;
    }
    binaries.push_back({shader.kernel, emit::literal_of(*words, 4), shader.file.name, words->size() * 4, shader.custom});
    files.push_back(std::move(shader.file));
  }
  if (!binaries.empty()) files.push_back(emit::shader_header(program, o, binaries));
  return true;
#else
  (void)o, (void)files;
  const PlaceRule* line = wants_vulkan(s.options) ? nullptr : first_vulkan(program.graph->placement);
  const bool asked = line == nullptr;                      // else the file's `place` does
  s.sink.error(
      code::no_vulkan, asked ? "--backend vulkan" : line->where,
      Error{"no-vulkan",
            asked ? "this modelc was built without Vulkan" : "`place` names a GPU, and this modelc was built without Vulkan",
            {"when it was configured, this was missing: " MODELC_VULKAN_MISSING},
            std::string("install what is missing, configure and build again") + (asked ? "" : "; --device cpu runs all on the CPU")});
  return false;
#endif
}

}  // namespace

std::optional<std::vector<emit::File>> emit_model(Session& s, const plan::Program& program, const std::string& class_name,
                                                  const std::string& name_space, bool with_main, bool with_c_api) {
  emit::Options o;
  o.file = s.file_base;
  o.class_name = class_name.empty() ? program.graph->name : class_name;
  o.name_space = name_space.empty() ? emit::identifier(s.file_base) : name_space;
  o.version = settings::version;
  o.vulkan = s.vulkan;
  std::vector<emit::File> files = emit::cpp(program, o);
  if (o.vulkan && !add_shaders(s, program, o, files)) return std::nullopt;
  if (with_main) files.push_back(emit::stock_main(program, o));
  if (with_c_api)
    for (emit::File& f : emit::c_api(program, o)) files.push_back(std::move(f));
  files.push_back(emit::manifest(program, o));
  return files;
}

void print_notes(const std::vector<std::string>& notes) {
  std::string later, converts;
  for (const std::string& n : notes) {
    const std::size_t open = n.find('`'), close = n.find('`', open + 1);
    if (n.find("takes effect in `modelc convert") != std::string::npos)
      converts = "`quantize` is what `modelc convert --quantize rules` follows";
    else if (n.find("takes effect in a later version") == std::string::npos || close == std::string::npos)
      std::fprintf(stderr, "note: %s\n", n.c_str());
    else later += (later.empty() ? "" : ", ") + n.substr(open, close - open + 1);
  }
  if (!later.empty())
    std::fprintf(stderr,
                 "note: %s: checked, to take effect in a later version; now no tensor is split over devices, all is computed as --mode "
                 "says, weights as stored\n",
                 later.c_str());
  if (!converts.empty()) std::fprintf(stderr, "note: %s\n", converts.c_str());
}

std::string summary(const graph::Module& module) {
  std::uint64_t modules = 0, parameters = 0;
  const std::vector<graph::WeightInstance> weights = graph::weight_instances(module);
  const auto is_alias = [&](const std::string& name) {                  // counted with its target
    for (const graph::CheckpointRules& r : module.checkpoints)
      for (const auto& a : r.aliases)
        if (r.format == "safetensors" && a.weight == name && a.when.empty()) return true;
    return false;
  };
  for (const auto& w : weights) {
    if (is_alias(w.name)) continue;
    std::uint64_t n = 1;
    for (graph::DimId d : w.decl->type.shape) n *= static_cast<std::uint64_t>(std::max<std::int64_t>(0, module.dims.value(d).value_or(0)));
    if (!w.decl->default_value) parameters += n;
  }
  // Instances: every class counts once for each place that holds it.
  std::vector<std::uint64_t> below(module.classes.size(), 1);
  for (std::size_t i = 0; i < module.classes.size(); ++i)
    for (const graph::ChildDecl& c : module.classes[i].children)
      for (graph::ClassId e : c.elements) below[i] += below[e.index];
  modules = below[module.root.index];
  return fmt::format("{}, {}, {} parameters", counted(modules, "module"), counted(weights.size(), "weight"), grouped(parameters));
}

}  // namespace modelc::driver
