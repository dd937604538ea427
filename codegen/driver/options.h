// The command line of modelc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace modelc::driver {

struct Options {
  std::string command;
  std::vector<std::string> files;                // FILE.model, PATH or CODE, as the command says

  // shared
  std::vector<std::string> import_paths;         // -I
  std::string config;
  std::vector<std::string> set;                  // key=value
  std::vector<std::string> checkpoint;
  std::string mode;                              // "", "exact", "fast"
  std::string backend;                           // "", "cpu", "vulkan"; of build a list
  std::string device;                            // as place_text.h reads it
  std::string isa;
  int threads = 0;
  bool no_mmap = false, no_strict = false, auto_cast = false, allow_trailing = false, json = false;
  std::vector<std::string> allow_extension;

  // build
  std::string out;
  std::string encodings, name, name_space, depfile;
  bool inline_all = false, stock_main = false, c_api = false, full_paths = false;

  // dump
  std::string stage, root;
  // fmt
  bool check = false;
  std::size_t columns = 120;
  // inspect
  bool every_tensor = false;
  // convert
  std::string to, quantize, max_shard_size;
  std::optional<std::uint64_t> seed;             // of random weights
  bool no_tokenizer = false;
  // devices
  std::optional<std::int64_t> context;           // positions of the sequence
  // verify, run, bench: what the generated binary is given, in its own words
  std::vector<std::string> forward;
};

// The options; or the status with which to leave (help or version was printed, or the mistake was said).
std::optional<int> parse(int argc, const char* const* argv, Options& options);

}  // namespace modelc::driver
