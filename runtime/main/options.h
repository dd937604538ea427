// The command line of a generated binary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/open.h"
#include "runtime/device/model.h"
#include "runtime/generate/compare.h"
#include "runtime/sampler/sampler.h"

namespace modelc::main_program {

constexpr const char* name(Mode mode) { return mode == Mode::fast ? "fast" : "exact"; }

enum class Command : std::uint8_t { generate, verify, same, bench, info, pack };

struct Options {
  Command command = Command::generate;
  std::vector<std::string> checkpoint;                     // one folder or file, or several files
  OpenOptions open;
  LoadOptions load;
  std::optional<Mode> mode;                                // as given; load() takes the usual one else
  bool json = false;

  // generate
  std::optional<std::string> prompt;
  std::optional<std::string> chat;                         // a message, through the chat template
  std::optional<std::string> system;                       // with chat: the message before it
  std::vector<std::string> stop;                           // strings that end the text
  std::optional<std::vector<std::int32_t>> tokens;
  std::int64_t count = 128;
  int answers = 1;                                         // to the same prompt, at once, each with a seed of its own
  SamplerOptions sampler;
  bool ignore_eos = false;
  bool show_tokens = false;                                // ids instead of text
  std::vector<std::string> trace;                          // patterns of values to print
  bool trace_all = false;
  std::string export_path;

  // verify
  std::string expected;
  VerifyOptions verify;

  // same
  std::vector<std::string> runs;
  std::string inputs;                                      // .safetensors with inputs of the runs; "": all by chance
  double within = 1e-5;
  std::uint64_t seed = 1;

  // bench
  std::int64_t bench_prompt = 512, bench_tokens = 64, bench_context = 0, bench_repeat = 5;
  std::string bench_profile;                               // an .svg to write, or ""
};

// 0 and options; or the status with which to leave (help was printed, or the mistake was said).
std::optional<int> parse(int argc, const char* const* argv, const ModelFactory& factory, Options& options);

int run_generate(const Options& options, const ModelFactory& factory);
int run_verify(const Options& options, const ModelFactory& factory);
int run_same(const Options& options, const ModelFactory& factory);
int run_bench(const Options& options, const ModelFactory& factory);
int run_info(const Options& options, const ModelFactory& factory);
int run_pack(const Options& options, const ModelFactory& factory);

// A model from options.checkpoint, with notes about the load on stderr, and its progress where that is a terminal; null when it failed,
// which has been said.
struct Loaded {
  std::shared_ptr<const CheckpointIndex> checkpoint;
  std::unique_ptr<Model> model;
  Mode mode = Mode::exact;                                 // that it was loaded in
};
std::optional<Loaded> load(const Options& options, const ModelFactory& factory);

// "error: …" with notes and help, on stderr; with --json the same as an object, on stdout. Gives 1.
int fail(const Error& error);

}  // namespace modelc::main_program
