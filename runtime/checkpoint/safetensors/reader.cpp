// The format. All numbers are little-endian.
//
//   offset  bytes  what
//   0       8      n, the length of the header, an unsigned 64-bit integer
//   8       n      the header: one JSON object in UTF-8, first byte '{', padded at its end with spaces as the writer
//                  likes
//   8 + n   rest   the data of all tensors, one after the other
//
//   { "__metadata__": { "format": "pt", … },                 optional, strings only
//     "model.norm.weight": { "dtype": "BF16",                one member for each tensor
//                            "shape": [576],                 outermost first; [] is a scalar, an extent may be 0
//                            "data_offsets": [0, 1152] },    first byte and the one after the last, counted from 8 + n
//     … }
//
// Elements lie row by row without padding; nothing aligns a tensor. The ranges do not overlap and leave no byte of the
// data uncovered. Length, shape, type and offsets are independent numbers of which each may lie: all are checked here,
// against each other and against the size of the file, before anything is allocated by them, and by nothing later.
#include "runtime/checkpoint/safetensors/reader.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"
#include "runtime/encoding/convert.h"
#include "runtime/checkpoint/first_bytes.h"
#include "runtime/checkpoint/safetensors/members.h"

namespace modelc {
namespace {

constexpr std::uint64_t length_bytes = 8;
// The header is read member by member, and each by a small tree, as a header of brackets alone could otherwise ask for twenty
// times its size in memory: dtype, shape and offsets of a tensor; the strings of __metadata__.
constexpr std::size_t max_tensor_values = 1'000, max_metadata_values = 200'000;
constexpr int max_depth = 64;
// No entry of a tensor is shorter: room for so many is never too little. It is used as far as there are tensors.
constexpr std::size_t least_entry = 50;

struct DtypeRow {
  std::string_view spelling;
  Encoding encoding;
};
constexpr DtypeRow dtype_rows[] = {
    {"F64", Encoding::f64},         {"F32", Encoding::f32},         {"F16", Encoding::f16},         {"BF16", Encoding::bf16},
    {"F8_E4M3", Encoding::f8_e4m3}, {"F8_E5M2", Encoding::f8_e5m2}, {"F8_E8M0", Encoding::f8_e8m0}, {"F4", Encoding::f4_e2m1},
    {"F6_E2M3", Encoding::f6_e2m3}, {"F6_E3M2", Encoding::f6_e3m2}, {"I64", Encoding::i64},         {"I32", Encoding::i32},
    {"I16", Encoding::i16},         {"I8", Encoding::i8},           {"U64", Encoding::u64},         {"U32", Encoding::u32},
    {"U16", Encoding::u16},         {"U8", Encoding::u8},           {"BOOL", Encoding::boolean},    {"C64", Encoding::c64},
};

class HeaderReader {
 public:
  HeaderReader(const ReadFile& file, std::string label, const SafetensorsOptions& options)
      : file_(file), label_(std::move(label)), options_(options) {}

  Result<SafetensorsHeader> read() {
    out_.file.path = file_.path();
    out_.file.label = label_;
    out_.file.size = file_.size();
    out_.file.device = file_.device();
    out_.file.inode = file_.inode();
    out_.file.modified = file_.modified();
    std::string text;
    if (!read_text(text) || !read_entries(text) || !check_cover()) return std::move(error_);
    return std::move(out_);
  }

 private:
  bool refuse(const char* kind, std::string message, std::string help = {}) {
    error_ = Error{kind, printable(label_) + ": " + std::move(message), {}, std::move(help)};
    if (label_ != file_.path()) error_.notes.push_back("file " + quote(file_.path(), 1000));
    return false;
  }
  bool refuse_tensor(const char* kind, const TensorInfo& t, std::string message, std::string help = {}) {
    return refuse(kind, "tensor " + quote(t.name) + ": " + std::move(message), std::move(help));
  }

  // ---- the length and the text ----

  bool read_text(std::string& text) {
    const std::uint64_t size = file_.size();
    std::array<char, 32> start{};
    const std::size_t known = static_cast<std::size_t>(std::min<std::uint64_t>(size, start.size()));
    if (Status s = file_.read_at(0, std::as_writable_bytes(std::span(start.data(), known))); !s) return pass_on(s);
    if (const FileGuess* g = guess_file({start.data(), known}); g && !plausible(start, size))
      return refuse("not-safetensors", "this is no safetensors file: " + std::string(g->says), std::string(g->help));
    if (size < length_bytes)
      return refuse("truncated",
                    size == 0 ? "the file is empty"
                              : "the file is cut short: it has " + counted(size, "byte") + ", a safetensors file begins with a length of 8",
                    "download or write the file again");
    const std::uint64_t n = load_u64(reinterpret_cast<const std::byte*>(start.data()));
    if (n > size - length_bytes)
      return refuse("header-length",
                    "the header's length is given as " + grouped(n) + " bytes, but only " + grouped(size - length_bytes) + " follow it",
                    "the file is cut short or is no safetensors file; download or write it again");
    if (n > safetensors_max_header)
      return refuse("header-length",
                    "the header's length is given as " + grouped(n) + " bytes; the format allows " + grouped(safetensors_max_header));
    text.resize(static_cast<std::size_t>(n));
    if (Status s = file_.read_at(length_bytes, std::as_writable_bytes(std::span(text))); !s) return pass_on(s);
    out_.file.header_bytes = static_cast<std::size_t>(length_bytes + n);
    data_size_ = size - length_bytes - n;
    return true;
  }

  // A length that could be one, and '{' after it: then the first bytes are no sign of another format.
  static bool plausible(const std::array<char, 32>& start, std::uint64_t size) {
    return size > length_bytes && start[8] == '{' && load_u64(reinterpret_cast<const std::byte*>(start.data())) <= size - length_bytes;
  }

  bool pass_on(Status& s) {
    error_ = std::move(s.error());
    return false;
  }

  // ---- the entries ----

  bool read_entries(const std::string& text) {
    if (text.empty() || text[0] != '{')
      return refuse("header-json", text.empty()
                                       ? "the header is empty; it must be a JSON object"
                                       : "the header is no JSON object: it begins with " + quote(std::string_view(text).substr(0, 8)));
    name_ = printable(label_) + ": header";
    out_.tensors.reserve(text.size() / least_entry + 1);
    bool metadata = false, refused = false;
    const Status walked = each_member(text, name_, length_bytes, max_depth, [&](const JsonText& key, const JsonText& value) {
      const auto name = parse(key, 1);
      const std::string* string = name ? name->as_string() : nullptr;
      if (string == nullptr) return !(refused = true);
      const bool is_metadata = *string == "__metadata__";
      if (is_metadata && std::exchange(metadata, true)) {
        refused = true;
        return refuse("header-json", "two members are called __metadata__, the second at byte " + grouped(length_bytes + key.at));
      }
      const auto entry = parse(value, is_metadata ? max_metadata_values : max_tensor_values);
      refused = !entry || !(is_metadata ? read_metadata(*entry) : read_tensor(*string, *entry));
      if (!is_metadata && !refused) key_at_.push_back(static_cast<std::uint32_t>(key.at));
      return !refused;
    });
    if (refused) return false;
    if (!walked) return refuse_json(walked.error());
    return check_names();
  }

  bool refuse_json(Error error) {
    error_ = std::move(error);
    if (error_.kind != "json-depth") error_.kind = "header-json";
    if (label_ != file_.path()) error_.notes.push_back("file " + quote(file_.path(), 1000));
    return false;
  }

  std::optional<Json> parse(const JsonText& part, std::size_t max_values) {
    JsonOptions json;
    json.name = name_;
    json.max_depth = max_depth - 1;
    json.max_values = max_values;
    json.places_are_bytes = true;
    json.byte_base = length_bytes + part.at;
    Result<Json> value = parse_json(part.text, json);
    if (value) return std::move(*value);
    refuse_json(std::move(value.error()));
    return std::nullopt;
  }

  // Of two tensors with one name, the one that stands first in the header is the first.
  bool check_names() {
    std::vector<std::uint32_t> order(out_.tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto name = [&](std::uint32_t i) -> const std::string& { return out_.tensors[i].name; };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return name(a) != name(b) ? name(a) < name(b) : a < b; });
    std::optional<std::pair<std::uint32_t, std::uint32_t>> twice;
    for (std::size_t i = 1; i < order.size(); ++i)
      if (name(order[i - 1]) == name(order[i]) && (!twice || order[i] < twice->second)) twice = {order[i - 1], order[i]};
    if (!twice) return true;
    refuse("duplicate-name", "header: byte " + grouped(length_bytes + key_at_[twice->second]) + ": duplicate key " +
                                 quote(name(twice->second)) + ", first at byte " + grouped(length_bytes + key_at_[twice->first]));
    return false;
  }

  bool read_metadata(const Json& value) {
    if (value.is_null()) return true;
    const JsonObject* members = value.as_object();
    if (!members)
      return refuse("header-json", "__metadata__ is " + std::string(kind_name(value.kind())) + "; it must be an object of strings");
    for (const JsonMember& m : *members) {
      const std::string* text = m.value.as_string();
      if (!text)
        return refuse("header-json", "__metadata__ holds " + std::string(kind_name(m.value.kind())) + " at " + quote(m.key) +
                                         "; it may hold strings only");
      out_.file.metadata.emplace_back(m.key, *text);
    }
    return true;
  }

  bool read_tensor(const std::string& name, const Json& value) {
    TensorInfo t;
    t.name = name;
    const JsonObject* entry = value.as_object();
    if (!entry)
      return refuse_tensor(
          "header-json", t,
          "its entry is " + std::string(kind_name(value.kind())) + "; it must be an object with dtype, shape and data_offsets");
    const Json* dtype = entry->find("dtype");
    const Json* shape = entry->find("shape");
    const Json* offsets = entry->find("data_offsets");
    if (!dtype || !shape || !offsets)
      return refuse_tensor("header-json", t, std::string("its entry has no ") + (!dtype ? "dtype" : !shape ? "shape" : "data_offsets"));
    const std::string* spelling = dtype->as_string();
    const auto encoding = spelling ? encoding_from_safetensors(*spelling) : std::nullopt;
    if (!encoding)
      return refuse_tensor("dtype", t,
                           "dtype " + (spelling ? quote(*spelling) : "that is " + std::string(kind_name(dtype->kind()))) + " is not known");
    t.encoding = *encoding;
    if (!read_shape(*shape, t) || !read_offsets(*offsets, t, *spelling)) return false;
    out_.tensors.push_back(std::move(t));
    return true;
  }

  bool read_shape(const Json& shape, TensorInfo& t) {
    const JsonArray* extents = shape.as_array();
    if (!extents) return refuse_tensor("shape", t, "shape is " + std::string(kind_name(shape.kind())) + "; it must be an array");
    for (const Json& e : *extents) {
      const auto extent = e.as_int();
      if (!extent || *extent < 0)
        return refuse_tensor("shape", t, "shape holds " + printable(dump(e), 40) + "; extents are whole numbers from 0 to 2^63 - 1");
      t.shape.push_back(*extent);
    }
    return true;
  }

  bool read_offsets(const Json& offsets, TensorInfo& t, const std::string& spelling) {
    const JsonArray* pair = offsets.as_array();
    if (!pair || pair->size() != 2)
      return refuse_tensor("offset-type", t,
                           "data_offsets is " +
                               (pair ? "an array of " + std::to_string(pair->size()) : std::string(kind_name(offsets.kind()))) +
                               "; it must be two whole numbers");
    const auto begin = (*pair)[0].as_uint(), end = (*pair)[1].as_uint();
    if (!begin || !end)
      return refuse_tensor(
          "offset-type", t,
          "data_offsets holds " + printable(dump((*pair)[begin ? 1 : 0]), 40) + "; offsets are whole numbers from 0 to 2^64 - 1");
    const std::string range = "data_offsets [" + std::to_string(*begin) + ", " + std::to_string(*end) + "]";
    if (*end < *begin) return refuse_tensor("size-mismatch", t, range + " end before they begin");
    const std::optional<std::int64_t> size = stored_bytes(t.encoding, t.shape);
    const std::string what = spelling + " " + shape_text(t.shape);
    if (!size)
      return refuse_tensor("size-mismatch", t,
                           what + (element_count(t.shape) && block_elements(t.encoding) > 1 ? " is not made of whole bytes"
                                                                                            : " takes more than 2^63 bytes"));
    if (static_cast<std::uint64_t>(*size) != *end - *begin)
      return refuse_tensor(
          "size-mismatch", t,
          what + " takes " + counted(static_cast<std::uint64_t>(*size), "byte") + ", but " + range + " span " + grouped(*end - *begin));
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
    constexpr bool past_the_end = false;
#else
    const bool past_the_end = *end > data_size_;
#endif
    if (past_the_end)
      return refuse_tensor("out-of-file", t,
                           range + " reach past the end of the file, which holds " + counted(data_size_, "byte") +
                               " of data: " + counted(*end - data_size_, "byte") + " missing",
                           "the file is cut short; download or write it again");
    t.offset = out_.file.header_bytes + *begin;
    t.size = *end - *begin;
    return true;
  }

  // ---- all of the data, once ----

  bool check_cover() {
    const std::vector<TensorInfo>& tensors = out_.tensors;
    const std::vector<std::uint32_t> order = by_offset(tensors);
    const std::uint64_t first = out_.file.header_bytes;
    std::uint64_t at = first, uncovered = 0;
    const TensorInfo* last = nullptr;
    for (std::uint32_t i : order) {
      const TensorInfo& t = tensors[i];
      if (t.offset < at)
        return refuse("overlap", "tensors " + quote(last->name) + " and " + quote(t.name) + " overlap: bytes " + grouped(t.offset - first) +
                                     " to " + grouped(std::min(at, t.offset + t.size) - first) + " of the data belong to both");
      if (t.offset > at) {
        if (!options_.allow_trailing)
          return refuse("trailing-bytes",
                        counted(t.offset - at, "byte") + " of data before tensor " + quote(t.name) +
                            (t.offset - at == 1 ? " belongs" : " belong") + " to no tensor",
                        "--allow-trailing-bytes accepts such a file, if you trust the program that wrote it");
        uncovered += t.offset - at;
      }
      at = t.offset + t.size;
      last = &t;
    }
    if (at < out_.file.size) {
      const std::uint64_t rest = out_.file.size - at;
      if (!options_.allow_trailing)
        return refuse("trailing-bytes",
                      counted(rest, "byte") + " after the last tensor" + (rest == 1 ? " belongs" : " belong") + " to no tensor",
                      "--allow-trailing-bytes accepts such a file, if you trust the program that wrote it");
      uncovered += rest;
    }
    if (uncovered) out_.notes.push_back(printable(label_) + ": " + counted(uncovered, "byte") + " of data belong to no tensor");
    return true;
  }

  const ReadFile& file_;
  std::string label_;
  const SafetensorsOptions& options_;
  std::string name_;                   // what messages call the header
  std::uint64_t data_size_ = 0;
  std::vector<std::uint32_t> key_at_;  // of each tensor, in the header
  SafetensorsHeader out_;
  Error error_;
};

}  // namespace

Result<SafetensorsHeader> read_safetensors_header(const std::string& path, const SafetensorsOptions& options) {
  const Result<ReadFile> file = ReadFile::open(path);
  if (!file) return file.error();
  return HeaderReader(*file, options.label.empty() ? path : options.label, options).read();
}

std::optional<Encoding> encoding_from_safetensors(std::string_view dtype) {
  for (const DtypeRow& row : dtype_rows)
    if (row.spelling == dtype) return row.encoding;
  return std::nullopt;
}

std::string_view safetensors_name(Encoding encoding) {
  for (const DtypeRow& row : dtype_rows)
    if (row.encoding == encoding) return row.spelling;
  return {};
}

}  // namespace modelc
