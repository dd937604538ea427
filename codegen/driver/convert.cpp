// convert: a checkpoint as the other format has it, or in another encoding, by the model's checkpoint blocks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "codegen/driver/commands.h"
#include "codegen/driver/convert_files.h"
#include "codegen/driver/host_compiler.h"
#include "codegen/driver/interrupts.h"
#include "codegen/driver/pipeline.h"
#include "codegen/driver/random_checkpoint.h"
#include "frontend/graph/eval/evaluator.h"
#include "frontend/sema/conversion.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/convert.h"
#include "runtime/checkpoint/gguf/types.h"
#include "runtime/checkpoint/gguf/writer.h"
#include "runtime/checkpoint/safetensors/reader.h"
#include "runtime/checkpoint/safetensors/stream.h"
#include "runtime/encoding/encode.h"

namespace modelc::driver {

namespace fs = std::filesystem;
namespace code = diag::code;

namespace {

// "5GB", "300MB", "1000": decimal units, as transformers reads them.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::pair<std::string_view, std::uint64_t> units[] = {{"GiB", std::uint64_t{1} << 30},
                                                                  {"MiB", std::uint64_t{1} << 20},
                                                                  {"KiB", std::uint64_t{1} << 10},
                                                                  {"GB", 1'000'000'000},
                                                                  {"MB", 1'000'000},
                                                                  {"KB", 1000},
                                                                  {"", 1}};
  for (const auto& [unit, factor] : units) {
    if (!text.ends_with(unit)) continue;
    const auto n = parse_uint(trim(text.substr(0, text.size() - unit.size())));
    std::uint64_t bytes = 0;
    if (!n || __builtin_mul_overflow(*n, factor, &bytes)) return std::nullopt;
    return bytes;
  }
  return std::nullopt;
}

// A folder of that name is ./random.
bool is_random(const Options& o) { return o.files[1] == "random"; }

struct Asked {
  CheckpointFormat to = CheckpointFormat::gguf;
  std::optional<Encoding> encoding;
  bool follow = false;
  std::uint64_t max_shard = 5'000'000'000;
};

// What the options say. Nothing, and the mistake in the sink, where they do not fit.
std::optional<Asked> read_options(Session& s) {
  const Options& o = s.options;
  Asked a;
  const auto wrong = [&](const std::string& option, const std::string& what, const std::string& help) {
    s.sink.error(code::bad_option, option, what).help(help);
    return std::nullopt;
  };
  const std::string& out = o.files[2];
  a.to = o.to.empty() ? (out.ends_with(".gguf") ? CheckpointFormat::gguf : CheckpointFormat::safetensors)
                      : (o.to == "gguf" ? CheckpointFormat::gguf : CheckpointFormat::safetensors);
  const bool gguf = a.to == CheckpointFormat::gguf;
  if (o.seed && !is_random(o)) return wrong("--seed", "--seed is for random weights, and IN is " + quote(o.files[1]), "`random` for IN");
  if (!o.max_shard_size.empty()) {
    const auto bytes = parse_bytes(o.max_shard_size);
    if (!bytes)
      return wrong("--max-shard-size", fmt::format("--max-shard-size {}: expected bytes, as in 5GB or 300MB", quote(o.max_shard_size)),
                   "0 writes one file");
    if (gguf) return wrong("--max-shard-size", "--max-shard-size is for safetensors: a GGUF is written as one file", "leave it out");
    a.max_shard = *bytes;
  }
  if (o.quantize == "rules") {
    a.follow = true;
  } else if (!o.quantize.empty()) {
    a.encoding = encoding_from_name(o.quantize);
    std::vector<std::string> names;
    for (int i = 0; i < encoding_count; ++i) {
      const auto e = static_cast<Encoding>(i);
      const bool holds = gguf ? gguf_type(e).has_value() : !safetensors_name(e).empty() && block_elements(e) == 1;
      if (holds && block_encoder(e) != nullptr) names.emplace_back(name(e));
    }
    if (std::find(names.begin(), names.end(), o.quantize) == names.end())
      return wrong(
          "--quantize",
          fmt::format("--quantize {}: {}", quote(o.quantize),
                      a.encoding ? std::string("this is not written as ") + (gguf ? "GGUF" : "safetensors") : "there is no such encoding"),
          "one of " + listed(names, 40) + ", or `rules` for the model's quantize block");
  }
  return a;
}

// The rules of the format to write. A model without a block of it has none for safetensors, and cannot be GGUF.
std::optional<MappingRules> target_rules(Session& s, const graph::Module& module, CheckpointFormat to) {
  const bool gguf = to == CheckpointFormat::gguf;
  for (const graph::CheckpointRules& r : module.checkpoints)
    if (r.format == (gguf ? "gguf" : "safetensors")) return r;
  if (!gguf) return MappingRules{};
  s.sink
      .error(code::metadata_config, s.sources.display_name(s.main),
             "`" + module.name + "` does not say what its tensors are called in a GGUF file")
      .help("`checkpoint gguf \"architecture\" { … }` in the model");
  return std::nullopt;
}

// One line that is written over, on a terminal.
class Progress {
 public:
  explicit Progress(const std::vector<ConvertedTensor>& tensors) : tensors_(tensors), shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void operator()(std::size_t done, std::size_t all) const {
    if (!shown_) return;
    const std::string next = done < all ? printable(tensors_[done].name, 80) + " " + std::string(name(tensors_[done].encoding)) : "to disk";
    std::fprintf(stderr, "\r\x1b[K[%zu/%zu] %s", done, all, next.c_str());
    std::fflush(stderr);
  }

 private:
  const std::vector<ConvertedTensor>& tensors_;
  bool shown_;
};

// A folder that is filled beside its place, and put there when it is whole.
class FolderOnTrial {
 public:
  static Result<FolderOnTrial> create(const std::string& out) {
    FolderOnTrial f;
    f.out_ = fs::path(out).lexically_normal();
    if (f.out_.filename().empty()) f.out_ = f.out_.parent_path();
    std::error_code error;
    const fs::path parent = f.out_.has_parent_path() ? f.out_.parent_path() : fs::path(".");
    fs::create_directories(parent, error);
    f.temporary_ = parent / ("." + f.out_.filename().string().substr(0, 200) + "." + std::to_string(::getpid()) + ".tmp");
    fs::remove_all(f.temporary_, error);
    if (!fs::create_directory(f.temporary_, error))
      return Error{
          "cannot-write", "cannot make a folder beside " + quote(out) + ": " + (error ? error.message() : "it is there already"), {}, {}};
    return f;
  }
  FolderOnTrial(FolderOnTrial&& other) noexcept : out_(std::move(other.out_)), temporary_(std::exchange(other.temporary_, {})) {}
  ~FolderOnTrial() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  }
  std::string path() const { return temporary_.string(); }
  Status commit() {
    std::error_code error;
    fs::rename(temporary_, out_, error);                   // over an empty folder, too
    if (error) return Error{"cannot-write", "cannot write " + quote(out_.string()) + ": " + error.message(), {}, {}};
    temporary_.clear();
    return {};
  }

 private:
  FolderOnTrial() = default;
  fs::path out_, temporary_;
};

// Nothing is written over: a model that took hours may lie there.
bool is_free(Session& s, const std::string& out) {
  std::error_code error;
  if (!fs::exists(out, error)) return true;
  if (fs::is_directory(out, error) && fs::is_empty(out, error)) return true;
  s.sink.error(code::cannot_write, out, quote(out) + " is there already").help("choose another name, or remove it first");
  return false;
}

struct Written {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

class Converter {
 public:
  Converter(Session& s, const Asked& asked) : s_(s), asked_(asked) {}

  std::optional<Written> run() {
    const std::string& out = s_.options.files[2];
    if (!is_free(s_, out) || !load_model(s_, s_.options.files[0])) return std::nullopt;
    const bool random = is_random(s_.options);
    auto source = random ? nullptr : open_checkpoint_of(s_);
    if (!source && !random) return std::nullopt;
    auto config = config_of(s_, source.get());
    if (!config) {
      if (!s_.sink.has_errors())
        s_.sink
            .error(code::config_not_given, s_.options.files[1],
                   random ? "random weights are made for a configuration, and --config is not given"
                          : "the checkpoint has no config.json, and --config is not given")
            .help("--config config.json");
      return std::nullopt;
    }
    const auto program = analyze_model(s_, &*config);
    if (!program) return std::nullopt;
    const graph::Module& module = program->graph;
    const auto rules = target_rules(s_, module, asked_.to);
    if (!rules) return std::nullopt;
    std::optional<TemporaryFolder> made;
    if (random && !(source = random_source(module, *config, made))) return std::nullopt;
    std::vector<MappingWeight> weights = mapping_weights(module);
    Mapping mapping =
        map_weights(weights, rules_for(module.checkpoints, *source), *source, {.strict = !s_.options.no_strict, .auto_cast = false});
    if (report_mapping(s_, mapping)) return std::nullopt;
    notes_ = mapping.notes;
    bool decoded = false;
    for (const WeightSource& w : mapping.sources)
      for (const WeightPart& p : w.parts) decoded = decoded || p.encode.has_value();

    ConvertOptions options;
    options.to = asked_.to;
    options.encoding = asked_.encoding;
    options.rules = sema::quantize_rules(s_.sources, *s_.imports);
    options.follow = asked_.follow;
    options.widened = widened_of(*source);
    options.access = s_.options.no_mmap ? FileAccess::read : FileAccess::map;
    options.threads = s_.options.threads;
    if (asked_.follow && options.rules.empty()) {
      s_.sink.error(code::bad_option, "--quantize", "--quantize rules: `" + module.name + "` has no quantize block")
          .help("`quantize { **.mlp: q8_0 }` in the model, or an encoding");
      return std::nullopt;
    }
    for (const MappingRules::Ignore& rule : rules->ignores)
      if (!rule.made_of.empty() && !make(module, rule, options)) return std::nullopt;
    auto conversion = Conversion::plan(source, std::move(weights), std::move(mapping), *rules, std::move(options));
    if (!conversion) return failed(conversion.error());
    notes_.insert(notes_.end(), conversion->notes().begin(), conversion->notes().end());
    auto written =
        asked_.to == CheckpointFormat::gguf ? gguf(*source, *config, *conversion, module) : folder(*source, *config, *conversion, decoded);
    if (!written) return std::nullopt;
    for (const ConvertedTensor& t : conversion->tensors())
      written->bytes += static_cast<std::uint64_t>(stored_bytes(t.encoding, t.shape).value_or(0));
    written->tensors = conversion->tensors().size();
    return written;
  }

  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<std::string>& lost() const { return lost_; }

 private:
  std::nullopt_t failed(const Error& e) {
    s_.sink.error(code::cannot_write, s_.options.files[2], e);
    return std::nullopt;
  }

  // Beside what is to be written, where there is room for it. What --set says is then the configuration's own.
  std::shared_ptr<const CheckpointIndex> random_source(const graph::Module& module, sema::ConfigInput& config,
                                                       std::optional<TemporaryFolder>& made) {
    const fs::path parent = fs::absolute(s_.options.files[2]).lexically_normal().parent_path();
    auto folder = TemporaryFolder::create(parent.string(), ".modelc-random-");
    if (!folder) return failed(folder.error()), nullptr;
    made.emplace(std::move(*folder));
    config.tree = sema::tree_with_overrides(s_.sources, config, s_.sink);
    config.overrides.clear();
    const std::uint64_t seed = s_.options.seed.value_or(1);
    // The folder's name becomes the model's.
    const fs::path inner = fs::path(made->path()) / ("random-" + std::to_string(seed));
    if (Status status = make_folders(inner.string()); !status) return failed(status.error()), nullptr;
    auto source = make_random_checkpoint(module, config.tree, seed, inner.string(), [] { return interrupted() != 0; });
    if (!source) return failed(source.error()), nullptr;
    return std::move(*source);
  }

  // The value of the const that a rule has the file hold.
  bool make(const graph::Module& module, const MappingRules::Ignore& rule, ConvertOptions& options) {
    graph::eval::Evaluator evaluator(module, [](const std::string&, const graph::WeightDecl&) { return std::nullopt; });
    auto value = evaluator.constant(rule.made_of);
    if (!value) {
      s_.sink.error(code::cannot_write, rule.pattern, value.error()).help("a const that a file holds is made of the configuration alone");
      return false;
    }
    options.made.push_back({rule.pattern, value->shape, std::move(value->reals)});
    return true;
  }

  static Result<std::span<const std::byte>> bytes_of(Conversion& conversion, std::size_t i) {
    if (interrupted() != 0) return Error{"interrupted", "interrupted: nothing was written", {}, {}};
    return conversion.bytes(i);
  }

  std::optional<Written> gguf(const CheckpointIndex& source, const sema::ConfigInput& config, Conversion& conversion,
                              const graph::Module& module) {
    const auto metadata = gguf_metadata(s_, source, config, conversion, vocabulary(conversion, module), lost_);
    if (!metadata) return std::nullopt;
    std::vector<GgufTensor> tensors;
    for (const ConvertedTensor& t : conversion.tensors()) tensors.push_back({t.name, t.encoding, t.shape});
    const Progress progress(conversion.tensors());
    const Status status = write_gguf(
        s_.options.files[2], *metadata, tensors, [&](std::size_t i) { return bytes_of(conversion, i); }, progress);
    if (!status) return failed(status.error());
    return Written{};
  }

  // Rows of the first table that the model reads tokens from: what the vocabulary is filled up to.
  static std::int64_t vocabulary(const Conversion& conversion, const graph::Module& module) {
    for (const graph::Function& f : module.of(module.root).functions)
      for (const graph::Parameter& p : f.inputs) {
        const graph::Type& type = f.values[p.value.index].type;
        if (type.index_bound)
          if (const auto n = module.dims.value(*type.index_bound)) return *n;
      }
    return conversion.tensors().empty() || conversion.tensors()[0].shape.empty() ? 0 : conversion.tensors()[0].shape[0];
  }

  std::optional<Written> folder(const CheckpointIndex& source, const sema::ConfigInput& config, Conversion& conversion, bool decoded) {
    const auto files = folder_files(s_, source, config, decoded, lost_);
    if (!files) return std::nullopt;
    auto folder = FolderOnTrial::create(s_.options.files[2]);
    if (!folder) return failed(folder.error());
    std::vector<SafetensorsTensor> tensors;
    for (const ConvertedTensor& t : conversion.tensors()) tensors.push_back({t.name, t.encoding, t.shape});
    {
      const Progress progress(conversion.tensors());
      const Status status = write_safetensors(
          folder->path(), tensors, [&](std::size_t i) { return bytes_of(conversion, i); }, {.max_shard = asked_.max_shard}, progress);
      if (!status) return failed(status.error());
    }
    for (const SideFile& f : *files)
      if (Status status = write_file((fs::path(folder->path()) / f.name).string(), f.text); !status) return failed(status.error());
    if (interrupted() != 0) return failed(Error{"interrupted", "interrupted: nothing was written", {}, {}});
    if (Status status = folder->commit(); !status) return failed(status.error());
    return Written{};
  }

  Session& s_;
  const Asked& asked_;
  std::vector<std::string> notes_, lost_;
};

}  // namespace

int convert_command(const Options& given) {
  Options o = given;
  if (!is_random(o)) o.checkpoint = {o.files[1]};
  Session s(o);
  const auto asked = read_options(s);
  if (!asked) {
    s.report();
    return 2;
  }
  const Interruptible interruptible;
  Converter converter(s, *asked);
  const auto written = converter.run();
  if (!s.report() || !written) return interrupted() != 0 ? 128 + interrupted() : 1;
  if (o.json) {
    JsonObject j;
    const auto list = [](const std::vector<std::string>& lines) {
      JsonArray items;
      for (const std::string& l : lines) items.emplace_back(l);
      return items;
    };
    j.set("written", o.files[2]);
    j.set("tensors", static_cast<std::int64_t>(written->tensors));
    j.set("bytes", written->bytes);
    j.set("changed", list(converter.notes()));
    j.set("not_carried", list(converter.lost()));
    std::printf("%s\n", dump(Json(std::move(j))).c_str());
    return 0;
  }
  for (const std::string& n : converter.notes()) std::fprintf(stderr, "note: %s\n", n.c_str());
  for (const std::string& n : converter.lost()) std::fprintf(stderr, "note: not carried: %s\n", n.c_str());
  std::printf("%s: %s, %s\n", o.files[2].c_str(), counted(written->tensors, "tensor").c_str(), human_bytes(written->bytes).c_str());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace modelc::driver
