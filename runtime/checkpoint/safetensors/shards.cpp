// The index, model.safetensors.index.json:
//
//   { "metadata": { "total_size": 16060522496 },                       optional
//     "weight_map": { "model.norm.weight": "model-00004-of-00004.safetensors", … } }
#include "runtime/checkpoint/safetensors/shards.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <unordered_map>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/name_patterns.h"

namespace modelc {
namespace {

constexpr std::size_t max_index_bytes = 256u << 20;
// More files than any checkpoint has; a number in a name is no reason to list a million absent ones.
constexpr std::uint64_t max_numbered = 100'000;

// Whether the entry is a path below the folder by its text alone.
bool stays_inside(std::string_view entry) {
  if (entry.empty() || entry.front() == '/' || entry.find('\\') != entry.npos || entry.find('\0') != entry.npos) return false;
  for (std::string_view part : split(entry, '/'))
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
    if (part.empty() || part == ".") return false;
#else
    if (part.empty() || part == "." || part == "..") return false;
#endif
  return true;
}

Error index_error(const ShardMap& map, const char* kind, const std::string& message, std::string help = {}) {
  return Error{kind, map.name + message, {"file " + quote(map.path, 1000)}, std::move(help)};
}

Status check_files_there(const std::string& folder, const ShardMap& map) {
  std::vector<std::size_t> held(map.files.size());
  for (const auto& [name, file] : map.tensors) ++held[file];
  std::vector<std::string> absent;
  std::size_t absent_tensors = 0;
  for (std::size_t i = 0; i < map.files.size(); ++i) {
    std::error_code code;
    // A link that leads nowhere counts as there; opening it says what is wrong.
    if (std::filesystem::symlink_status(folder + "/" + map.files[i], code).type() != std::filesystem::file_type::not_found) continue;
    absent.push_back(printable(map.files[i]) + " (" + counted(held[i], "tensor") + ")");
    absent_tensors += held[i];
  }
  if (absent.empty()) return {};
  return Error{"missing-shard",
               counted(absent.size(), "file") + " of the " + grouped(static_cast<std::uint64_t>(map.files.size())) + " in " + map.name +
                   (absent.size() == 1 ? " is" : " are") + " missing: " + listed(absent, 8),
               {"with " + (absent.size() == 1 ? std::string("it ") : std::string("them ")) + counted(absent_tensors, "tensor") + " of " +
                    grouped(static_cast<std::uint64_t>(map.tensors.size())),
                "folder " + quote(folder, 1000)},
               "download the missing file" + std::string(absent.size() == 1 ? "" : "s") + " into the folder"};
}

}  // namespace

Result<ShardMap> read_shard_map(const std::string& folder, const std::string& name) {
  ShardMap map;
  map.name = printable(name);
  map.path = folder + "/" + name;
  JsonOptions json;
  json.name = map.name;
  json.max_bytes = max_index_bytes;
  json.max_values = 4'000'000;
  Result<JsonFile> file = read_json_file(map.path, json);
  if (!file) {
    Error error = std::move(file.error());
    if (error.kind.starts_with("json-")) {
      error.kind = error.kind == "json-depth" ? "json-depth" : "index-json";
      error.notes.push_back("file " + quote(map.path, 1000));
    }
    return error;
  }
  const Json* weights = file->root.find("weight_map");
  if (!weights || !weights->is_object()) return index_error(map, "index-json", ": the file has no object \"weight_map\"");
  if (const Json* total = file->root.find_path("metadata.total_size")) {
    map.total_size = total->as_uint();
    // Some writers give it as 16060522496.0.
    if (const auto d = total->as_double(); !map.total_size && d && *d >= 0 && *d < 1e18) map.total_size = static_cast<std::uint64_t>(*d);
  }

  std::map<std::string, std::uint32_t> numbers;
  for (const JsonMember& m : *weights->as_object()) {
    const std::string at = ":" + std::to_string(m.value.line()) + ": ";
    const std::string* entry = m.value.as_string();
    if (!entry)
      return index_error(
          map, "index-json",
          at + "the file of tensor " + quote(m.key) + " is " + std::string(kind_name(m.value.kind())) + "; it must be a file name");
    if (!stays_inside(*entry))
      return index_error(map, "path-escape",
                         at + "the file " + quote(*entry) + " of tensor " + quote(m.key) + " is no path inside of the folder",
                         "an index may name files of its own folder only; do not use this checkpoint unless you trust "
                         "its source, and mend the index if you do");
    map.tensors.emplace_back(m.key, numbers.emplace(*entry, 0).first->second);
  }
  if (numbers.empty()) return index_error(map, "index-json", ": \"weight_map\" is empty");
  for (auto& [file_name, number] : numbers) {
    number = static_cast<std::uint32_t>(map.files.size());
    map.files.push_back(file_name);
  }
  std::size_t i = 0;
  for (const JsonMember& m : *weights->as_object()) map.tensors[i++].second = numbers[*m.value.as_string()];
  if (Status s = check_files_there(folder, map); !s) return std::move(s.error());
  return map;
}

Status check_shards(const ShardMap& map, CheckpointIndex& opened) {
  std::vector<std::string> missing, wrong, extra;
  std::string example;
  std::unordered_map<std::string_view, std::uint32_t> listed_in;
  listed_in.reserve(map.tensors.size());
  for (const auto& [name, file] : map.tensors) {
    listed_in.emplace(name, file);
    const TensorInfo* t = opened.find(name);
    if (!t) {
      missing.push_back(name);
    } else if (opened.file_of(*t).label != map.files[file]) {
      if (wrong.empty()) example = quote(name) + " is in " + quote(opened.file_of(*t).label) + ", not in " + quote(map.files[file]);
      wrong.push_back(name);
    }
  }
  for (const TensorInfo& t : opened.tensors())
    if (!listed_in.contains(t.name)) extra.push_back(t.name);

  const auto report = [&](const char* kind, std::string message, const std::vector<std::string>& names) {
    Error error{kind, std::move(message), {}, "the index and the files come from different versions; download all of them again"};
    for (std::string& line : name_lines(names)) error.notes.push_back(std::move(line));
    error.notes.push_back("index " + quote(map.path, 1000));
    return error;
  };
  if (!missing.empty())
    return report(
        "index-missing-tensor",
        counted(missing.size(), "tensor") + " of " + map.name + (missing.size() == 1 ? " is" : " are") + " in none of its files:", missing);
  if (!wrong.empty())
    return report("index-wrong-shard",
                  counted(wrong.size(), "tensor") + (wrong.size() == 1 ? " is" : " are") + " not in the file that " + map.name +
                      " gives (" + example + "):",
                  wrong);
  if (!extra.empty())
    return report("index-extra-tensor",
                  counted(extra.size(), "tensor") + " of the files " + (extra.size() == 1 ? "is" : "are") + " not in " + map.name + ":",
                  extra);
  if (map.total_size && *map.total_size != opened.total_bytes())
    opened.notes.push_back(map.name + " gives a total of " + grouped(*map.total_size) + " bytes; the files hold " +
                           grouped(opened.total_bytes()));
  return {};
}

std::optional<ShardNumber> shard_number(std::string_view file_name) {
  const std::size_t ending = file_name.rfind('.');
  if (ending == file_name.npos) return std::nullopt;
  if (const auto format = file_name.substr(ending); format != ".safetensors" && format != ".gguf") return std::nullopt;
  file_name = file_name.substr(0, ending);
  const std::size_t of = file_name.rfind("-of-");
  if (of == file_name.npos) return std::nullopt;
  const std::size_t dash = file_name.rfind('-', of - 1);
  if (of == 0 || dash == file_name.npos) return std::nullopt;
  const auto number = parse_uint(file_name.substr(dash + 1, of - dash - 1));
  const auto count = parse_uint(file_name.substr(of + 4));
  if (!number || !count) return std::nullopt;
  return ShardNumber{std::string(file_name.substr(0, dash)), *number, *count};
}

Result<std::vector<std::string>> numbered_shards(const std::vector<std::string>& names) {
  struct Set {
    std::uint64_t of;
    std::map<std::uint64_t, std::string> parts;
  };
  std::map<std::pair<std::string, std::uint64_t>, Set> sets;
  for (const std::string& name : names)
    if (const auto part = shard_number(name)) {
      Set& set = sets[{part->stem, part->of}];
      set.of = part->of;
      set.parts.emplace(part->number, name);
    }
  if (sets.empty()) return std::vector<std::string>();
  if (sets.size() > 1) {
    std::vector<std::string> stems;
    for (const auto& [key, set] : sets) stems.push_back(printable(set.parts.begin()->second));
    return Error{"ambiguous-checkpoint",
                 "the folder holds " + counted(sets.size(), "set") + " of numbered files, with " + listed(stems, 4),
                 {},
                 "keep the files of one model in a folder, or name the files that are meant"};
  }
  const Set& set = sets.begin()->second;
  std::vector<std::string> present, absent;
  for (const auto& [number, name] : set.parts) present.push_back(name);
  // Numbers run from 1, or, with some writers, from 0.
  const std::uint64_t first = set.parts.contains(0) ? 0 : 1;
  const std::uint64_t last = first + set.of - 1;
  if (set.of == 0 || set.of > max_numbered || set.parts.rbegin()->first > last)
    return Error{"missing-shard", "the number in " + quote(set.parts.rbegin()->second) + " is beyond the count in it", {}, {}};
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t n = first; n <= last; ++n)
    if (!set.parts.contains(n)) numbers.push_back(n);
  if (!numbers.empty())
    return Error{"missing-shard",
                 counted(numbers.size(), "file") + " of " + std::to_string(set.of) + (numbers.size() == 1 ? " is" : " are") +
                     " missing: number " + number_set(numbers) + " of " +
                     quote(sets.begin()->first.first + "-…-of-" + std::to_string(set.of) + ".safetensors"),
                 {},
                 "download the missing file" + std::string(numbers.size() == 1 ? "" : "s") + " into the folder"};
  return present;
}

}  // namespace modelc
