// fmt: files in their usual layout. flatten: a model as one text.
#include <cstdio>
#include <filesystem>

#include "codegen/driver/commands.h"
#include "codegen/driver/pipeline.h"
#include "frontend/sema/flatten.h"
#include "frontend/syntax/format.h"
#include "runtime/base/atomic_file.h"

namespace modelc::driver {

int fmt_command(const Options& o) {
  bool good = true, formatted = true;
  for (const std::string& path : o.files) {
    Session s(o);
    const auto file = diag::load_source(s.sources, path, path, s.sink);
    const auto text = file ? syntax::format(*file, s.sources, s.sink, {.columns = o.columns}) : std::nullopt;
    if (text && *text != s.sources.text(*file)) {
      if (o.check) {
        std::printf("%s\n", path.c_str());
        formatted = false;
      } else if (auto status = write_file(path, *text, Flush::none); !status) {
        s.sink.error(diag::code::cannot_write, path, status.error());
      }
    }
    good = s.report() && good;
  }
  return good && formatted ? 0 : 1;
}

int flatten_command(const Options& o) {
  Session s(o);
  std::optional<std::string> text;
  if (load_model(s, o.files[0])) text = sema::flatten(s.sources, s.imports, s.sink);
  if (!s.report() || !text) return 1;
  std::fputs(text->c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace modelc::driver
