// What the parts say of themselves, in their metadata:
//   split.no             number of the part, from 0
//   split.count          number of parts
//   split.tensors.count  number of tensors in all parts together
// The file names count from 1: NAME-00001-of-00003.gguf. The first part has the metadata of the model.
#include "runtime/checkpoint/gguf/parts.h"

#include <cstdio>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/checkpoint/safetensors/shards.h"

namespace modelc {
namespace {

constexpr std::uint64_t max_parts = 99'999;  // five digits

std::string part_name(const std::string& stem, std::uint64_t number, std::uint64_t of) {
  char text[32];
  std::snprintf(text, sizeof text, "-%05u-of-%05u.gguf", static_cast<unsigned>(number), static_cast<unsigned>(of));
  return stem + text;
}

// A whole number of the metadata; 0 where it is not there.
Result<std::uint64_t> number(const GgufHeader& header, std::string_view key) {
  const auto value = header.metadata.find(key);
  if (!value) return std::uint64_t{0};
  if (const auto n = value->as_uint()) return *n;
  return Error{
      "split", printable(header.file.label) + ": " + std::string(key) + " is " + value->text() + "; it must be a whole number", {}, {}};
}

Status add(GgufHeader header, CheckpointIndex& index) {
  index.notes.insert(index.notes.end(), header.notes.begin(), header.notes.end());
  return index.add(std::move(header.file), std::move(header.tensors));
}

}  // namespace

Status add_gguf(const std::string& path, const GgufOptions& options, CheckpointIndex& index) {
  Result<GgufHeader> named = read_gguf_header(path, options);
  if (!named) return std::move(named.error());
  const Result<std::uint64_t> count = number(*named, "split.count");
  if (!count) return count.error();
  if (*count <= 1) {
    index.metadata = named->metadata;
    return add(*std::move(named), index);
  }

  // The names of all parts, from the name of this one.
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const auto part = shard_number(path.substr(folder.size()));
  if (!part || part->of != *count || *count > max_parts || part_name(part->stem, part->number, part->of) != path.substr(folder.size()))
    return Error{"split",
                 printable(named->file.label) + ": the file is one of " + grouped(*count) + " parts, and its name does not say which",
                 {"file " + quote(path, 1000)},
                 "parts are found by their names, NAME-00001-of-" + part_name("", 1, *count).substr(10, 5) +
                     ".gguf and so on: give the files the names that they had"};
  std::vector<std::string> absent;
  std::vector<GgufHeader> parts;
  std::uint64_t tensors = 0;
  for (std::uint64_t i = 0; i < *count; ++i) {
    GgufOptions of_part = options;
    of_part.label = part_name(part->stem, i + 1, *count);
    Result<GgufHeader> header = read_gguf_header(folder + of_part.label, of_part);
    if (!header && header.error().kind == "no-such-file") {
      absent.push_back(of_part.label);
      continue;
    }
    if (!header) return std::move(header.error());
    const Result<std::uint64_t> no = number(*header, "split.no"), of = number(*header, "split.count");
    if (!no || !of) return !no ? no.error() : of.error();
    if (*no != i || *of != *count)
      return Error{"split",
                   printable(of_part.label) + ": by its metadata the file is part " + grouped(*no + 1) + " of " + grouped(*of) +
                       ", by its name part " + grouped(i + 1) + " of " + grouped(*count),
                   {"file " + quote(folder + of_part.label, 1000)},
                   "a file was renamed, or parts of two models lie in one folder; download them again"};
    tensors += header->tensors.size();
    parts.push_back(*std::move(header));
  }
  if (!absent.empty())
    return Error{"missing-shard",
                 counted(absent.size(), "part") + " of the " + grouped(*count) + " of " + printable(named->file.label) +
                     (absent.size() == 1 ? " is" : " are") + " not there: " + listed(absent, 8),
                 {"folder " + quote(folder.empty() ? "." : folder, 1000)},
                 "download the missing files into that folder"};
  const Result<std::uint64_t> all = number(parts[0], "split.tensors.count");
  if (!all) return all.error();
  if (parts[0].metadata.contains("split.tensors.count") && *all != tensors)
    return Error{
        "split",
        printable(parts[0].file.label) + ": the model is said to have " + counted(*all, "tensor") + ", its parts hold " + grouped(tensors),
        {},
        "download the parts again"};
  index.metadata = parts[0].metadata;
  for (GgufHeader& header : parts)
    if (Status s = add(std::move(header), index); !s) return s;
  return {};
}

}  // namespace modelc
