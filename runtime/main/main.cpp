#include "runtime/main/main.h"

#include <cstdio>
#include <exception>

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

std::optional<Loaded> load(const Options& o, const ModelFactory& factory) {
  auto index = open_checkpoint(o.checkpoint, o.open);
  if (!index) {
    fail(index.error());
    return std::nullopt;
  }
  Loaded loaded;
  loaded.checkpoint = std::make_shared<const CheckpointIndex>(std::move(*index));
  LoadOptions options = o.load;
  if (!o.device.empty() && o.device != "cpu") {
    auto device = open_device(o.device, o.load.cpu);
    if (!device) {
      fail(device.error());
      return std::nullopt;
    }
    options.device = std::move(*device);
  }
  auto model = factory.load(*loaded.checkpoint, options);
  if (!model) {
    fail(model.error());
    return std::nullopt;
  }
  loaded.model = std::move(*model);
  for (const std::string& note : loaded.model->load_report().notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return loaded;
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
