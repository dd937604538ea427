#include "runtime/main/main.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/open.h"
#include "runtime/main/options.h"

namespace modelc {

namespace main_program {

namespace {
bool as_json = false;                                      // --json: errors are objects, on a line of their own
}

int fail(const Error& error) {
  if (as_json) {
    JsonObject j;
    j.set("severity", Json("error"));
    j.set("kind", Json(error.kind));
    j.set("message", Json(error.message));
    JsonArray notes;
    for (const std::string& note : error.notes) notes.emplace_back(note);
    j.set("notes", Json(std::move(notes)));
    j.set("help", Json(error.help));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
    std::fflush(stdout);
    return 1;
  }
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", error.text().c_str());
  return 1;
}

namespace {

// A line on a terminal that is written again and again while a load takes long, and cleared at its end.
class ProgressLine {
 public:
  void operator()(const LoadProgress& p) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\rloading: %lld of %lld weights, %s\033[K", static_cast<long long>(p.weights),
                 static_cast<long long>(p.of_weights), human_bytes(static_cast<std::uint64_t>(p.bytes)).c_str());
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace

std::optional<Loaded> load(const Options& o, const ModelFactory& factory) {
  auto index = open_checkpoint(o.checkpoint, o.open);
  if (!index) {
    fail(index.error());
    return std::nullopt;
  }
  Loaded loaded;
  loaded.checkpoint = std::make_shared<const CheckpointIndex>(std::move(*index));
  ProgressLine line;
  LoadOptions options = o.load;
  // What compares is exact unless it is asked; what people wait for is fast, where the devices are.
  const bool waited_for = o.command == Command::generate || o.command == Command::bench;
  options.mode = o.mode.value_or(Mode::exact);
  options.prefer_fast = !o.mode && waited_for;
  if (isatty(STDERR_FILENO) == 1) options.progress = [&line](const LoadProgress& p) { line(p); };
  auto model = factory.load(*loaded.checkpoint, options);
  line.clear();
  if (!model) {
    fail(model.error());
    return std::nullopt;
  }
  loaded.model = std::move(*model);
  loaded.mode = loaded.model->mode();
  for (const std::string& note : loaded.model->load_report().notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return loaded;
}

int run_pack(const Options& o, const ModelFactory& factory) {
  auto loaded = load(o, factory);
  if (!loaded) return 1;
  const LoadReport& r = loaded->model->load_report();
  if (o.json) {
    JsonObject j;
    j.set("pack", Json(r.pack));
    j.set("written", Json(r.pack_written));
    j.set("seconds", Json(r.seconds));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
  } else if (r.pack_written) {
    std::printf("%s written in %.3f s, of %s\n", r.pack.c_str(), r.seconds,
                counted(static_cast<std::uint64_t>(r.weights), "weight").c_str());
  } else {
    std::printf("%s is up to date\n", r.pack.c_str());
  }
  return 0;
}

}  // namespace main_program

int stock_main(int argc, const char* const* argv, const ModelFactory& factory) {
  using namespace main_program;
  try {
    Options options;
    if (const auto status = parse(argc, argv, factory, options)) return *status;
    as_json = options.json;
    switch (options.command) {
      case Command::generate: return run_generate(options, factory);
      case Command::verify: return run_verify(options, factory);
      case Command::same: return run_same(options, factory);
      case Command::bench: return run_bench(options, factory);
      case Command::info: return run_info(options, factory);
      case Command::pack: return run_pack(options, factory);
    }
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n", e.what());
    return 3;
  }
  return 3;
}

}  // namespace modelc
