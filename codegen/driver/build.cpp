// build: the files of a model. run, verify, bench, pack: the same files, compiled and started.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "codegen/driver/commands.h"
#include "codegen/driver/host_compiler.h"
#include "codegen/driver/interrupts.h"
#include "codegen/driver/pipeline.h"
#include "codegen/driver/random_checkpoint.h"
#include "codegen/emit/cpp/namer.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/device/place_text.h"

namespace modelc::driver {

namespace fs = std::filesystem;
namespace code = diag::code;

namespace {

// Options of the interface that a later version carries out: refused, so that nobody takes the result for what was asked.
void refuse_later(Session& s) {
  const Options& o = s.options;
  const auto later = [&](const std::string& option, const std::string& what) {
    s.sink.error(code::option_later, option, fmt::format("{}: {} is not carried out yet", option, what));
  };
  for (std::string_view b : split(o.backend, ',')) {
    if (!o.backend.empty() && trim(b) != "cpu" && trim(b) != "vulkan")
      s.sink.error(code::bad_option, "--backend", fmt::format("--backend {}: expected cpu or vulkan", quote(b)));
  }
  if (const auto rules = read_placement(o.device); !o.device.empty() && !rules) s.sink.error(code::bad_option, "--device", rules.error());
  if (o.inline_all) later("--inline", "one function of the whole model");
  for (const std::string& folder : o.allow_extension) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      s.sink.error(code::bad_option, "--allow-extension", fmt::format("--allow-extension {}: there is no such folder", quote(folder)));
  }
  for (std::string_view e : split(o.encodings, ','))
    if (!o.encodings.empty() && trim(e) != "f32" && trim(e) != "f16" && trim(e) != "bf16")
      later("--encodings " + std::string(e), "weights in block encodings");
}

struct Built {
  std::vector<emit::File> files;
  sema::Program program;
  plan::Program plan;
};

// Everything up to the text. None when something was wrong; all of it is in the sink.
std::optional<Built> make(Session& s, const CheckpointIndex* checkpoint) {
  const auto config = config_of(s, checkpoint);
  if (s.sink.has_errors()) return std::nullopt;
  if (!config) {
    auto m = s.sink.error(code::config_not_given, s.sources.display_name(s.main), "no configuration: what is built depends on one");
    if (checkpoint) m.note(fmt::format("{} holds no config.json", checkpoint->path));
    m.help("--config config.json, or a checkpoint folder that holds one");
    return std::nullopt;
  }
  auto program = analyze_model(s, &*config);
  if (!program) return std::nullopt;
  if (checkpoint) check_weights(s, program->graph, *checkpoint);
  if (s.sink.has_errors()) return std::nullopt;
  if (s.options.command != "build") follow_placement(s, program->graph);
  auto planned = plan_model(s, *program);
  if (!planned) return std::nullopt;
  check_placement(s, program->graph, &*planned);
  if (s.sink.has_errors()) return std::nullopt;
  const bool with_main = s.options.stock_main || s.options.command != "build";
  auto files = emit_model(s, *planned, s.options.name, s.options.name_space, with_main, s.options.c_api);
  if (!files) return std::nullopt;
  return Built{std::move(*files), std::move(*program), std::move(*planned)};
}

// The same from a graph's text.
std::optional<Built> make_from_graph(Session& s) {
  auto program = load_graph(s, s.options.files[0]);
  if (!program) return std::nullopt;
  auto planned = plan_model(s, *program);
  if (!planned) return std::nullopt;
  check_placement(s, program->graph, &*planned);
  if (s.sink.has_errors()) return std::nullopt;
  auto files = emit_model(s, *planned, s.options.name, s.options.name_space, s.options.stock_main, s.options.c_api);
  if (!files) return std::nullopt;
  return Built{std::move(*files), std::move(*program), std::move(*planned)};
}

// The same from a plan's text.
std::optional<Built> make_from_plan(Session& s) {
  auto planned = load_plan(s, s.options.files[0]);
  if (!planned) return std::nullopt;
  check_placement(s, *planned->graph, &*planned);
  if (s.sink.has_errors()) return std::nullopt;
  sema::Program program;
  program.graph = *planned->graph;
  program.files = {s.options.files[0]};
  auto files = emit_model(s, *planned, s.options.name, s.options.name_space, s.options.stock_main, s.options.c_api);
  if (!files) return std::nullopt;
  return Built{std::move(*files), std::move(program), std::move(*planned)};
}

// Code without shaders for a model whose `place` names a GPU.
void note_gpus(const graph::Module& m) {
  const PlaceRule* line = first_vulkan(m.placement);
  if (line == nullptr) return;
  std::fprintf(stderr, "note: %s: `place` names %s, and what is written has no shaders: --backend cpu,vulkan adds them\n",
               line->where.empty() ? m.name.c_str() : line->where.c_str(), line->device.c_str());
}

std::string make_escaped(const std::string& path) {
  std::string s;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') s += '\\';
    if (c == '$') s += '$';
    s += c;
  }
  return s;
}

bool is_namespace(const std::string& text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find("::", at), text.size());
    const std::string part = text.substr(at, end - at);
    if (part.empty() || emit::identifier(part) != part) return false;
    at = end + 2;
  }
  return true;
}

}  // namespace

int build_command(const Options& o) {
  Session s(o);
  refuse_later(s);
  if (!o.name.empty() && emit::identifier(o.name) != o.name)
    s.sink.error(code::bad_option, "--name", fmt::format("--name {}: not an identifier of C++", quote(o.name)));
  if (!o.name_space.empty() && !is_namespace(o.name_space))
    s.sink.error(code::bad_option, "--namespace", fmt::format("--namespace {}: not a namespace of C++", quote(o.name_space)));
  const bool usable = !s.sink.has_errors();
  if (!usable) {
    s.report();
    return s.status();
  }
  std::optional<Built> built;
  std::shared_ptr<const CheckpointIndex> checkpoint;
  if (is_graph_text(o.files[0])) {
    built = make_from_graph(s);
  } else if (is_plan_text(o.files[0])) {
    built = make_from_plan(s);
  } else if (load_model(s, o.files[0])) {
    checkpoint = open_checkpoint_of(s);
    if (!s.sink.has_errors()) built = make(s, checkpoint.get());
  }
  if (built) {
    const auto write = [&](const std::string& path, const std::string& text, bool always = false) {
      std::optional<Error> wrong;
      if (always) {
        if (auto status = write_file(path, text, Flush::none); !status) wrong = status.error();
      } else if (auto status = write_file_if_changed(path, text); !status) {
        wrong = status.error();
      }
      if (wrong) s.sink.error(code::cannot_write, path, *wrong);
      return !wrong;
    };
    auto folder = make_folders(o.out);
    if (!folder) s.sink.error(code::cannot_write, o.out, folder.error());
    // Sources are written when they change, so that nothing is compiled for nothing; the manifest, last, every time: it is
    // as new as the last success, and build systems go by it. After a failure there is none.
    std::string stamp;
    if (folder && wants_vulkan(o)) {
      folder = make_folders((fs::path(o.out) / "shaders").string());
      if (!folder) s.sink.error(code::cannot_write, o.out, folder.error());
    }
    for (const emit::File& f : built->files) {
      stamp = (fs::path(o.out) / f.name).string();
      if (folder && !write(stamp, f.text, &f == &built->files.back())) break;
    }
    if (folder && !o.depfile.empty() && !s.sink.has_errors()) {
      std::string text = make_escaped(stamp) + ":";
      std::vector<std::string> inputs = built->program.files;
      if (!o.config.empty()) inputs.push_back(o.config);
      else if (checkpoint && checkpoint->config) inputs.push_back((fs::path(o.checkpoint[0]) / "config.json").string());
      if (checkpoint)
        for (const CheckpointFile& f : checkpoint->files()) inputs.push_back(f.path);
      for (const std::string& f : inputs) text += " \\\n  " + make_escaped(f);
      write(o.depfile, text + "\n");
    }
  }
  if (!s.report() || !built) {
    // What stands in the folder is of an earlier model: no stamp says otherwise.
    std::error_code none;
    fs::remove(fs::path(o.out) / (fs::path(o.files[0]).stem().string() + ".manifest.json"), none);
    return std::max(1, s.status());
  }
  print_notes(built->program.notes);
  if (!s.vulkan) note_gpus(built->program.graph);
  if (!o.json) {
    const graph::DimTable& dims = *built->plan.dims;
    std::printf("%s: %s; arena %s bytes", built->program.graph.name.c_str(), summary(built->program.graph).c_str(),
                dims.text(built->plan.peak_bytes).c_str());
    const auto peak = dims.evaluate(built->plan.peak_bytes, std::vector<std::int64_t>(dims.axes().size(), 512));
    if (peak) std::printf(" (%s for 512 tokens)", human_bytes(static_cast<std::uint64_t>(*peak)).c_str());
    std::printf("\n");
    for (const emit::File& f : built->files) std::printf("  %s\n", (fs::path(o.out) / f.name).string().c_str());
  }
  return 0;
}

namespace {

// The generated program's --device; "": as `place` says. --backend alone is the CPU, or the first Vulkan device where `place` names none.
std::string device_of(const Options& o, const graph::Module& m) {
  if (!o.device.empty() || o.backend.empty()) return o.device;
  if (!wants_vulkan(o)) return "cpu";
  return names_vulkan(m.placement) ? "" : "vulkan";
}

}  // namespace

int run_command(const Options& o) {
  Session s(o);
  refuse_later(s);
  if (s.sink.has_errors()) {
    s.report();
    return s.status();
  }
  const bool random = o.command == "bench" && o.checkpoint.size() == 1 && o.checkpoint[0] == "random";
  std::optional<Built> built;
  if (load_model(s, o.files[0])) {
    const auto checkpoint = random ? nullptr : open_checkpoint_of(s);
    if (!s.sink.has_errors()) built = make(s, checkpoint.get());
  }
  if (!s.report() || !built) return std::max(1, s.status());
  print_notes(built->program.notes);

  const Interruptible interruptible;
  auto program = compile_program(built->files);
  if (!program) {
    const Error& e = program.error();
    const diag::Code& c = e.kind == "no-compiler"  ? code::no_compiler
                          : e.kind == "no-runtime" ? code::no_runtime
                          : e.kind == "compile"    ? code::compile_failed
                                                   : code::cannot_write;
    s.sink.error(c, s.sources.display_name(s.main), e);
    s.report();
    return e.kind == "compile" ? 3 : 1;
  }

  std::vector<std::string> arguments = {*program, o.command == "run" ? "generate" : o.command};
  std::optional<TemporaryFolder> folder;
  if (random) {
    auto made = TemporaryFolder::create(temporary_parent(), "modelc-random-");
    if (!made) {
      std::fprintf(stderr, "error: %s\n", made.error().text().c_str());
      return 1;
    }
    folder.emplace(std::move(*made));
    if (auto status = write_random_checkpoint(built->program.graph, 1, folder->path(), [] { return interrupted() != 0; }); !status) {
      end_if_interrupted();
      std::fprintf(stderr, "error: %s\n", status.error().text().c_str());
      return 1;
    }
    arguments.insert(arguments.end(), {"--checkpoint", folder->path()});
  } else {
    for (const std::string& c : o.checkpoint) arguments.insert(arguments.end(), {"--checkpoint", c});
  }
  if (o.threads > 0) arguments.insert(arguments.end(), {"--threads", std::to_string(o.threads)});
  if (!o.mode.empty()) arguments.insert(arguments.end(), {"--mode", o.mode});
  if (!o.isa.empty()) arguments.insert(arguments.end(), {"--isa", o.isa});
  if (const std::string device = device_of(o, built->program.graph); !device.empty())
    arguments.insert(arguments.end(), {"--device", device});
  if (o.no_mmap) arguments.emplace_back("--no-mmap");
  if (o.no_strict) arguments.emplace_back("--no-strict");
  if (o.allow_trailing) arguments.emplace_back("--allow-trailing-bytes");
  if (o.auto_cast) arguments.emplace_back("--auto-cast");
  if (o.json) arguments.emplace_back("--json");
  arguments.insert(arguments.end(), o.forward.begin(), o.forward.end());
  std::fflush(stdout);
  std::fflush(stderr);
  end_if_interrupted();
  if (folder) {
    const auto status = run_program(arguments);
    if (status) return *status;
    std::fprintf(stderr, "error: %s\n", status.error().text().c_str());
    return 3;
  }
  const Error e = become_program(arguments);
  std::fprintf(stderr, "error: %s\n", e.text().c_str());
  return 3;
}

}  // namespace modelc::driver
