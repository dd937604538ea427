#include "codegen/driver/host_compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "codegen/driver/settings.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"

namespace modelc::driver {

namespace fs = std::filesystem;

namespace {

struct Runtime {
  std::string include;
  std::vector<std::string> libraries;            // in link order
};

// Beside an installed program, else in the build tree.
Result<Runtime> find_runtime() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const auto complete = [](const fs::path& include, const fs::path& main, const fs::path& runtime) {
    std::error_code e;
    return fs::exists(include / "runtime" / "modelc.h", e) && fs::exists(main, e) && fs::exists(runtime, e);
  };
  std::vector<std::string> looked;
  if (!error) {
    const fs::path prefix = self.parent_path().parent_path();
    const fs::path include = prefix / "include" / "modelc", lib = prefix / settings::library_dir;
    if (complete(include, lib / "libmodelc_main.a", lib / "libmodelc_runtime.a"))
      return Runtime{include.string(), {(lib / "libmodelc_main.a").string(), (lib / "libmodelc_runtime.a").string()}};
    looked.push_back(lib.string());
    // An installed modelc never takes what a build tree holds by chance.
    if (fs::exists(prefix / "share" / "modelc" / "stdlib", error))
      return Error{
          "no-runtime", "modelc's runtime library is not there", {"looked in " + listed(looked)}, "install modelc whole (cmake --install)"};
  }
  const fs::path build(settings::build_dir), include(settings::source_dir);
  const fs::path main = build / "runtime" / "main" / "libmodelc_main.a", runtime = build / "runtime" / "libmodelc_runtime.a";
  if (complete(include, main, runtime)) return Runtime{include.string(), {main.string(), runtime.string()}};
  looked.push_back((build / "runtime").string());
  return Error{"no-runtime",
               "modelc's runtime library is not there",
               {"looked in " + listed(looked)},
               "build all targets (cmake --build), or install modelc (cmake --install)"};
}

struct Compiler {
  std::string command;
  std::string version;
};

Result<Compiler> find_compiler() {
  std::vector<std::string> candidates;
  if (const char* cxx = std::getenv("CXX"); cxx && *cxx) candidates = {cxx};
  else candidates = {"c++", "g++", "clang++", "clang++-16"};
  for (const std::string& c : candidates) {
    std::string version;
    const auto status = run_program({c, "--version"}, &version);
    if (status && *status == 0) return Compiler{c, version};
  }
  if (std::getenv("CXX") && *std::getenv("CXX"))
    return Error{"no-compiler",
                 "the compiler that CXX names, " + quote(candidates[0]) + ", does not run",
                 {},
                 "set CXX to a C++20 compiler, or unset it"};
  return Error{"no-compiler",
               "no C++ compiler is there",
               {"tried " + listed(candidates)},
               "install one (apt-get install g++), or name it: CXX=/path/to/c++ modelc …"};
}

std::uint64_t mix(std::uint64_t h, std::string_view bytes) {          // FNV-1a, 64 bits, with the length
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return (h ^ bytes.size()) * 0x100000001b3ULL;
}

std::string stamp(const std::string& file) {
  std::error_code e;
  const auto size = fs::file_size(file, e);
  const auto time = fs::last_write_time(file, e).time_since_epoch().count();
  return fmt::format("{} {} {}", file, size, time);
}

Result<std::string> cache_folder() {
  std::vector<fs::path> places;
  if (const char* c = std::getenv("MODELC_CACHE"); c && *c) places.emplace_back(c);
  else {
    if (const char* x = std::getenv("XDG_CACHE_HOME"); x && *x) places.push_back(fs::path(x) / "modelc");
    else if (const char* home = std::getenv("HOME"); home && *home) places.push_back(fs::path(home) / ".cache" / "modelc");
    places.push_back(fs::path(temporary_parent()) / fmt::format("modelc-{}", getuid()));
  }
  std::optional<Error> first;
  for (const fs::path& p : places) {
    auto made = make_folders(p.string());
    if (made && access(p.c_str(), W_OK) == 0) return p.string();
    if (!first) first = made ? Error{"cannot-write", "cannot write to " + p.string(), {}, ""} : made.error();
  }
  first->help = "compiled models are kept there: set MODELC_CACHE to a folder that you may write to";
  return *first;
}

}  // namespace

Result<std::string> compile_program(const std::vector<emit::File>& files) {
  auto runtime = find_runtime();
  if (!runtime) return std::move(runtime.error());
  auto compiler = find_compiler();
  if (!compiler) return std::move(compiler.error());
  // No contraction: an expression of the model file is computed operation by operation, whatever the processor offers.
  std::vector<std::string> flags = {"-std=c++20", "-O2", "-march=native", "-ffp-contract=off", "-I" + runtime->include};
#if defined(__SANITIZE_ADDRESS__)
  flags.insert(flags.end(), {"-fsanitize=address,undefined"});
#endif
  std::istringstream words(settings::link_libraries);
  std::vector<std::string> link = runtime->libraries;
  for (std::string w; words >> w;) link.push_back(w);

  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const emit::File& f : files)
    if (f.name.ends_with(".h") || f.name.ends_with(".cpp")) h = mix(mix(h, f.name), f.text);
  h = mix(mix(h, compiler->command), compiler->version);
  for (const std::string& f : flags) h = mix(h, f);
  for (const std::string& l : runtime->libraries) h = mix(h, stamp(l));
  auto cache = cache_folder();
  if (!cache) return std::move(cache.error());
  const std::string base = files.front().name.substr(0, files.front().name.find('.'));
  const fs::path program = fs::path(*cache) / fmt::format("{}-{:016x}", base, h);
  if (access(program.c_str(), X_OK) == 0) return program.string();

  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) std::fprintf(stderr, "compiling %s with %s …", base.c_str(), compiler->command.c_str());
  auto folder = TemporaryFolder::create(*cache, "building-");
  if (!folder) return std::move(folder.error());
  std::vector<std::string> command = {compiler->command};
  command.insert(command.end(), flags.begin(), flags.end());
  const auto write = [&](const std::string& name, const std::string& text) -> Status {
    const std::string path = (fs::path(folder->path()) / name).string();
    if (name.ends_with(".cpp")) command.push_back(path);
    return write_file(path, text, Flush::none);
  };
  for (const emit::File& f : files)
    if (f.name.find('/') == std::string::npos)             // texts beside the code are for reading
      if (auto s = write(f.name, f.text); !s) return std::move(s.error());
  const std::string unfinished = (fs::path(folder->path()) / "program").string();
  command.insert(command.end(), {"-o", unfinished});
  command.insert(command.end(), link.begin(), link.end());
  std::string output;
  const auto status = run_program(command, &output);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (!status) return status.error();
  if (*status != 0) {
    Error e{"compile", fmt::format("{} fails on the generated code (status {})", compiler->command, *status), {}, ""};
    int lines = 0;
    for (std::string_view line : split(output, '\n'))
      if (lines++ < 30) e.notes.emplace_back(line);
    e.help = "`modelc build` writes the same files for a look";
    return e;
  }
  std::error_code error;
  fs::rename(unfinished, program, error);
  if (error) return Error{"cannot-write", "cannot write " + program.string() + ": " + error.message(), {}, ""};
  return program.string();
}

}  // namespace modelc::driver
