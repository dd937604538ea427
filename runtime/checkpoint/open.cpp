// Decides which files a path stands for, reads their headers and compares them with the folder's index of tensors.
#include "runtime/checkpoint/open.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/gguf/parts.h"
#include "runtime/checkpoint/name_patterns.h"
#include "runtime/checkpoint/safetensors/reader.h"
#include "runtime/checkpoint/safetensors/shards.h"

namespace modelc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view pickle_help =
    "write the weights as safetensors, in Python: from transformers import AutoModelForCausalLM as M; "
    "M.from_pretrained('FOLDER').save_pretrained('OUT', safe_serialization=True)";

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string lower = to_lower_ascii(name);
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return lower.ends_with(e); });
}
bool is_safetensors_name(std::string_view name) { return ends_with_any(name, {".safetensors"}); }
bool is_pickle_name(std::string_view name) { return ends_with_any(name, {".bin", ".pt", ".pth", ".ckpt", ".pkl"}); }
bool is_gguf_name(std::string_view name) { return ends_with_any(name, {".gguf"}); }

std::string file_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
std::string in_folder(const std::string& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

bool is_there(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

Error pickle_refused(const std::string& path) {
  return Error{"pickle",
               "cannot read " + quote(path) +
                   ": files of this kind are Python pickles, which run code of their author when they are read, and are "
                   "not accepted",
               {},
               std::string(pickle_help)};
}

Error no_such_path(const std::string& path) {
  Error error{"no-such-file", "no file or folder " + quote(path), {}, {}};
  // "organisation/model" is how models are called on the hub.
  const std::size_t slash = path.find('/');
  const bool hub_like = slash != std::string::npos && slash > 0 && slash + 1 < path.size() && path[0] != '.' && path[0] != '~' &&
                        path.find('/', slash + 1) == std::string::npos && !is_safetensors_name(path) && !is_gguf_name(path);
  if (hub_like)
    error.help = "the path must lie on this machine; if this is a model of the hub, download it first: hf download " + printable(path) +
                 " --local-dir FOLDER";
  else if (const std::string parent = folder_of(path); !is_there(parent))
    error.help = "its folder " + quote(parent) + " does not exist either";
  return error;
}

// The config.json and what else lies beside the weights.
Status read_companions(const std::string& folder, const OpenOptions& options, CheckpointIndex& index) {
  const auto beside = [&](std::string_view name) {
    std::string path = in_folder(folder, name);
    return is_there(path) ? path : std::string();
  };
  index.tokenizer_json = beside("tokenizer.json");
  index.tokenizer_config_json = beside("tokenizer_config.json");
  index.generation_config_json = beside("generation_config.json");
  index.chat_template = beside("chat_template.jinja");
  const std::string config = in_folder(folder, "config.json");
  if (std::error_code code; fs::symlink_status(config, code).type() == fs::file_type::not_found) {
    if (!options.need_config) return {};
    return Error{"no-config",
                 "no config.json in " + quote(folder),
                 {},
                 "download the model's config.json into that folder, or name one with --config"};
  }
  JsonOptions json;
  json.name = "config.json";
  json.max_bytes = 16u << 20;
  Result<JsonFile> read = read_json_file(config, json);
  if (!read) {
    read.error().notes.push_back("file " + quote(config, 1000));
    return std::move(read.error());
  }
  if (!read->root.is_object())
    return Error{"config-json",
                 "config.json: the file must hold an object, and holds " + std::string(kind_name(read->root.kind())),
                 {"file " + quote(config, 1000)},
                 {}};
  index.config = *std::move(read);
  return {};
}

Status add_file(const std::string& path, std::string label, const OpenOptions& options, CheckpointIndex& index) {
  SafetensorsOptions reader;
  reader.label = std::move(label);
  reader.allow_trailing = options.allow_trailing;
  Result<SafetensorsHeader> header = read_safetensors_header(path, reader);
  if (!header) return std::move(header.error());
  index.notes.insert(index.notes.end(), header->notes.begin(), header->notes.end());
  return index.add(std::move(header->file), std::move(header->tensors));
}

Status add_gguf_file(const std::string& path, std::string label, const OpenOptions& options, CheckpointIndex& index) {
  index.format = CheckpointFormat::gguf;
  GgufOptions reader;
  reader.label = std::move(label);
  reader.allow_trailing = options.allow_trailing;
  return add_gguf(path, reader, index);
}

// ---- a folder ----

struct FolderListing {
  std::vector<std::string> names;      // of files and links, sorted
  std::vector<std::string> folders;
};

Result<FolderListing> list_folder(const std::string& folder) {
  FolderListing listing;
  std::error_code code;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    std::error_code ignored;
    (it->is_directory(ignored) ? listing.folders : listing.names).push_back(it->path().filename().string());
  }
  if (code) return Error{"cannot-open", "cannot list the folder " + quote(folder) + ": " + code.message(), {}, {}};
  std::sort(listing.names.begin(), listing.names.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

std::vector<std::string> select(const std::vector<std::string>& names, bool (*wanted)(std::string_view)) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out), wanted);
  return out;
}

// Why a folder without weights is no checkpoint, and what to do.
Error no_weights(const std::string& folder, const FolderListing& listing) {
  const std::vector<std::string> pickles = select(listing.names, is_pickle_name);
  if (!pickles.empty()) {
    Error error = pickle_refused(in_folder(folder, pickles[0]));
    error.notes.push_back("the folder holds no .safetensors, only " + listed(pickles, 4));
    return error;
  }
  Error error{"no-weights", "neither .safetensors nor .gguf in the folder " + quote(folder), {}, {}};
  if (listing.names.empty() && listing.folders.empty()) error.message = "the folder " + quote(folder) + " is empty";
  else if (!listing.names.empty()) error.notes.push_back("it holds " + printable(listed(listing.names, 6)));
  if (std::binary_search(listing.folders.begin(), listing.folders.end(), "snapshots")) {
    const Result<FolderListing> snapshots = list_folder(in_folder(folder, "snapshots"));
    error.help = "this is a folder of the hub's cache; name its snapshot";
    if (snapshots && !snapshots->folders.empty())
      error.help += ": " + quote(in_folder(in_folder(folder, "snapshots"), snapshots->folders.back()), 1000);
  } else {
    error.help = "name a folder with config.json and .safetensors files, a .safetensors file, or a .gguf file";
  }
  return error;
}

void note_left_out(const std::vector<std::string>& all, const std::vector<std::string>& used, CheckpointIndex& index) {
  std::vector<std::string> left;
  for (const std::string& name : all)
    if (std::find(used.begin(), used.end(), name) == used.end()) left.push_back(printable(name));
  if (!left.empty()) index.notes.push_back(listed(left, 4) + (left.size() == 1 ? " is" : " are") + " left out");
}

Result<CheckpointIndex> open_with_index(const std::string& folder, const std::string& index_name,
                                        const std::vector<std::string>& safetensors, const OpenOptions& options, CheckpointIndex out) {
  Result<ShardMap> map = read_shard_map(folder, index_name);
  if (!map) return std::move(map.error());
  if (Status s = read_companions(folder, options, out); !s) return std::move(s.error());
  for (const std::string& file : map->files)
    if (Status s = add_file(in_folder(folder, file), file, options, out); !s) return std::move(s.error());
  if (Status s = check_shards(*map, out); !s) return std::move(s.error());
  note_left_out(safetensors, map->files, out);
  return out;
}

// One GGUF, or the parts of one. What lies beside it is found as beside safetensors; the configuration is its own.
Result<CheckpointIndex> open_gguf_folder(const std::string& folder, const std::vector<std::string>& names, const OpenOptions& options,
                                         CheckpointIndex out) {
  const Result<std::vector<std::string>> parts = numbered_shards(names);
  if (!parts) return parts.error();
  const std::vector<std::string>& of_one = parts->empty() ? names : *parts;
  if (parts->empty() ? names.size() > 1 : parts->size() != names.size())
    return Error{"ambiguous-checkpoint",
                 "the folder " + quote(folder) + " holds " + counted(names.size(), "GGUF file") +
                     " of several models: " + printable(listed(names, 6)),
                 {},
                 "name the file that is meant"};
  OpenOptions beside = options;
  beside.need_config = false;
  if (Status s = read_companions(folder, beside, out); !s) return std::move(s.error());
  if (Status s = add_gguf_file(in_folder(folder, of_one[0]), of_one[0], options, out); !s) return std::move(s.error());
  return out;
}

Result<CheckpointIndex> open_folder(const std::string& folder, const OpenOptions& options) {
  Result<FolderListing> listing = list_folder(folder);
  if (!listing) return std::move(listing.error());
  CheckpointIndex out;
  out.path = folder;
  std::vector<std::string> safetensors = select(listing->names, is_safetensors_name);
  const std::vector<std::string> indexes =
      select(listing->names, [](std::string_view n) { return n.ends_with(".safetensors.index.json"); });

  // Which index: the usual one, or the only one.
  constexpr std::string_view usual = "model.safetensors.index.json", single = "model.safetensors";
  const bool has_usual = std::find(indexes.begin(), indexes.end(), usual) != indexes.end();
  const bool has_single = std::find(safetensors.begin(), safetensors.end(), single) != safetensors.end();
  if (has_usual || (indexes.size() == 1 && !has_single)) {
    if (has_usual && has_single) {
      const Result<ShardMap> map = read_shard_map(folder, std::string(usual));
      // An index over model.safetensors alone is redundant; one over other files is a second model.
      if (map && std::find(map->files.begin(), map->files.end(), single) == map->files.end())
        return Error{"ambiguous-checkpoint",
                     quote(folder) + " holds two models: model.safetensors, and the " + counted(map->files.size(), "file") +
                         " of model.safetensors.index.json",
                     {},
                     "name the one that is meant: the file " + quote(in_folder(folder, single), 1000) + ", or the index " +
                         quote(in_folder(folder, usual), 1000)};
    }
    return open_with_index(folder, has_usual ? std::string(usual) : indexes[0], safetensors, options, std::move(out));
  }
  const std::vector<std::string> ggufs = select(listing->names, is_gguf_name);
  if (safetensors.empty() && !ggufs.empty()) return open_gguf_folder(folder, ggufs, options, std::move(out));
  if (safetensors.empty()) return no_weights(folder, *listing);
  const std::vector<std::string> all = safetensors;
  if (has_single) {
    safetensors = {std::string(single)};
  } else if (Result<std::vector<std::string>> numbered = numbered_shards(safetensors); !numbered) {
    numbered.error().notes.push_back("folder " + quote(folder, 1000));
    return std::move(numbered.error());
  } else if (!numbered->empty()) {
    safetensors = *std::move(numbered);
  }
  if (Status s = read_companions(folder, options, out); !s) return std::move(s.error());
  for (const std::string& name : safetensors)
    if (Status s = add_file(in_folder(folder, name), name, options, out); !s) return std::move(s.error());
  note_left_out(all, safetensors, out);
  return out;
}

// ---- files ----

// What can be said of a file before its header is read.
Status accept_file(const std::string& path) {
  if (is_pickle_name(path)) return pickle_refused(path);
  if (ends_with_any(path, {".npz", ".h5", ".onnx", ".msgpack", ".tflite", ".zip", ".gz", ".model", ".yaml"}) ||
      (path.ends_with(".json") && !path.ends_with(".safetensors.index.json")))
    return Error{"not-a-checkpoint",
                 "cannot read " + quote(path) + " as a checkpoint",
                 {},
                 "a checkpoint is a folder with config.json and .safetensors files, a .safetensors file, or a .gguf "
                 "file"};
  return {};
}

// By its name, or, where that does not tell (the hub's blobs), by its first bytes.
Result<bool> is_gguf_file(const std::string& path) {
  if (is_gguf_name(path)) return true;
  const Result<ReadFile> file = ReadFile::open(path);
  if (!file) return file.error();
  std::array<char, 4> magic{};
  return !is_safetensors_name(path) && file->size() >= magic.size() && file->read_at(0, std::as_writable_bytes(std::span(magic))).ok() &&
         std::string_view(magic.data(), magic.size()) == "GGUF";
}

Result<CheckpointIndex> open_files(const std::vector<std::string>& paths, const OpenOptions& options) {
  CheckpointIndex out;
  out.path = paths[0];
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::map<std::string, int> same_names;
  for (const std::string& path : paths) ++same_names[file_name(path)];
  for (const std::string& path : paths) {
    if (Status s = accept_file(path); !s) return std::move(s.error());
    const Result<bool> gguf = is_gguf_file(path);
    if (!gguf) return gguf.error();
    if (*gguf && paths.size() > 1)
      return Error{"not-a-checkpoint",
                   quote(path) + " is a GGUF file; a list may hold .safetensors files only",
                   {},
                   "name the file alone; the parts of a split one are found by their names"};
    if (*gguf) {
      if (Status s = add_gguf_file(path, file_name(path), options, out); !s) return std::move(s.error());
      return out;
    }
    const Result<ReadFile> file = ReadFile::open(path);
    if (!file) return file.error();
    if (!seen.emplace(file->device(), file->inode()).second)
      return Error{"duplicate-file", "the file " + quote(path) + " is given twice", {}, "name each file once"};
  }
  if (Status s = read_companions(folder_of(paths[0]), options, out); !s) return std::move(s.error());
  for (const std::string& path : paths) {
    const std::string name = file_name(path);
    if (Status s = add_file(path, same_names[name] > 1 ? path : name, options, out); !s) return std::move(s.error());
  }
  if (paths.size() == 1)
    if (const auto part = shard_number(file_name(paths[0])); part && part->of > 1)
      out.notes.push_back(printable(file_name(paths[0])) + " is part " + std::to_string(part->number) + " of " + std::to_string(part->of) +
                          "; name its folder to open all of them");
  return out;
}

}  // namespace

Result<CheckpointIndex> open_checkpoint(const std::string& path, const OpenOptions& options) {
  if (path.empty()) return Error{"no-such-file", "the path of the checkpoint is empty", {}, {}};
  if (path.find('\0') != std::string::npos)
    return Error{"no-such-file", "no file or folder " + quote(path) + ": the path holds a zero byte", {}, {}};
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) {
    // A link whose target is missing is there, yet leads nowhere; opening it says so.
    if (std::error_code ignored; fs::symlink_status(path, ignored).type() == fs::file_type::symlink)
      if (const Result<ReadFile> file = ReadFile::open(path); !file) return file.error();
    return no_such_path(path);
  }
  if (status.type() == fs::file_type::none) return Error{"cannot-open", "cannot open " + quote(path) + ": " + code.message(), {}, {}};
  if (status.type() == fs::file_type::directory) return open_folder(path, options);
  if (path.ends_with(".safetensors.index.json")) {
    CheckpointIndex out;
    out.path = path;
    return open_with_index(folder_of(path), file_name(path), {}, options, std::move(out));
  }
  return open_files({path}, options);
}

Result<CheckpointIndex> open_checkpoint(const std::vector<std::string>& paths, const OpenOptions& options) {
  if (paths.empty()) return Error{"no-such-file", "no checkpoint is named", {}, {}};
  if (paths.size() == 1) return open_checkpoint(paths[0], options);
  for (const std::string& path : paths) {
    std::error_code code;
    const fs::file_type type = fs::status(path, code).type();
    if (type == fs::file_type::not_found) return no_such_path(path);
    if (type == fs::file_type::directory)
      return Error{"not-a-file", quote(path) + " is a folder; a list may hold .safetensors files only", {}, "name the folder alone"};
  }
  return open_files(paths, options);
}

}  // namespace modelc
