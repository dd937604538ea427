// The format. All numbers are little-endian; a text is its length in 8 bytes and its bytes.
//
//   bytes  what
//   4      "GGUF"
//   4      version: 2 or 3, which differ in nothing but that 3 may also be big-endian (refused)
//   8      number of tensors
//   8      number of metadata entries
//          metadata, entry by entry:
//   text     key ("general.architecture")
//   4        type of the value: u8 i8 u16 i16 u32 i32 f32 bool string array u64 i64 f64 are 0 to 12
//            value: the number; a byte 0 or 1; a text; or of an array
//   4          type of its elements, which may again be arrays
//   8          number of elements
//              the elements, one after the other
//          tensors, one after the other:
//   text     name, at most 64 bytes
//   4        number of dimensions, at most 4
//   8 each   extents, innermost first
//   4        type of the elements (types.cpp)
//   8        offset of its data from the beginning of all data, a multiple of the alignment
//          padding up to a multiple of general.alignment (32 where the metadata does not say)
//          the data: tensors, each padded to the alignment; the last one may not be
//
// Counts, lengths, types and offsets are independent numbers of which each may lie: all are checked here, against each
// other and against the size of the file, before memory is asked for by them.
#include "runtime/checkpoint/gguf/reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "runtime/base/mapped_file.h"
#include "runtime/base/strings.h"
#include "runtime/encoding/convert.h"
#include "runtime/checkpoint/first_bytes.h"
#include "runtime/checkpoint/gguf/types.h"

namespace modelc {
namespace {

constexpr std::uint64_t fixed_bytes = 24;       // magic, version, two counts
constexpr std::uint64_t least_entry = 8 + 4 + 1;            // an empty key and a byte
constexpr std::uint64_t least_tensor = 8 + 4 + 4 + 8;       // an empty name and no dimension
constexpr std::size_t max_nested_arrays = 1'000'000;
constexpr std::uint64_t max_key = 65'535;
constexpr const char* cut_short = "the file is cut short; download or write it again";

class HeaderReader {
 public:
  HeaderReader(const ReadFile& file, std::string label, const GgufOptions& options)
      : file_(file), label_(std::move(label)), options_(options), size_(file.size()) {}

  Result<GgufHeader> read() {
    out_.file.path = file_.path();
    out_.file.label = label_;
    out_.file.size = size_;
    out_.file.device = file_.device();
    out_.file.inode = file_.inode();
    out_.file.modified = file_.modified();
    if (!read_fixed() || !read_metadata() || !read_alignment() || !read_tensors() || !check_cover()) return std::move(error_);
    return std::move(out_);
  }

 private:
  bool refuse(const char* kind, std::string message, std::string help = {}) {
    error_ = Error{kind, printable(label_) + ": " + std::move(message), {}, std::move(help)};
    if (label_ != file_.path()) error_.notes.push_back("file " + quote(file_.path(), 1000));
    return false;
  }
  static std::string at_byte(std::uint64_t at) { return " at byte " + grouped(at); }

  // ---- bytes of the header, read as far as they are needed ----

  // Positions are those of the file; the bytes begin behind the fixed part.
  std::uint64_t at_ = fixed_bytes;
  const std::byte* here() const { return store_.bytes.data() + (at_ - fixed_bytes); }
  std::uint64_t left() const { return size_ - at_; }

  // Makes the next `n` bytes available. `what` is what they are for.
  bool need(std::uint64_t n, const char* what) {
    if (n > left())
      return refuse("truncated",
                    "the file ends in its header: " + std::string(what) + at_byte(at_) + " takes " + counted(n, "byte") + ", " +
                        grouped(left()) + " are there",
                    cut_short);
    const std::uint64_t end = at_ + n - fixed_bytes;
    if (end <= store_.bytes.size()) return true;
    if (end > gguf_max_header) return refuse("header-length", "the header takes more than " + grouped(gguf_max_header) + " bytes");
    const std::uint64_t had = store_.bytes.size();
    const std::uint64_t wanted =
        std::min(std::min(std::max({end, had + had / 2, std::uint64_t{1} << 16}), size_ - fixed_bytes), gguf_max_header);
    store_.bytes.resize(static_cast<std::size_t>(wanted));
    if (Status s = file_.read_at(fixed_bytes + had, std::span(store_.bytes).subspan(static_cast<std::size_t>(had))); !s) {
      error_ = std::move(s.error());
      return false;
    }
    return true;
  }
  bool u32(std::uint32_t& value, const char* what) {
    if (!need(4, what)) return false;
    value = load_u32(here());
    at_ += 4;
    return true;
  }
  bool u64(std::uint64_t& value, const char* what) {
    if (!need(8, what)) return false;
    value = load_u64(here());
    at_ += 8;
    return true;
  }
  // A text's place in the bytes and its length.
  bool text(std::uint32_t& offset, std::uint32_t& length, const char* what) {
    const std::uint64_t begin = at_;
    std::uint64_t n = 0;
    if (!u64(n, what)) return false;
    if (n > left() || n > gguf_max_header)
      return refuse(
          "string-length",
          std::string(what) + at_byte(begin) + " is given as " + grouped(n) + " bytes long; " + grouped(left()) + " follow in the file",
          "the file is damaged; download or write it again");
    if (!need(n, what)) return false;
    offset = static_cast<std::uint32_t>(at_ - fixed_bytes);
    length = static_cast<std::uint32_t>(n);
    at_ += n;
    return true;
  }
  std::string_view view(std::uint32_t offset, std::uint32_t length) const {
    return {reinterpret_cast<const char*>(store_.bytes.data()) + offset, length};
  }

  // ---- the fixed part ----

  bool read_fixed() {
    std::array<char, 32> start{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(size_, start.size()));
    if (Status s = file_.read_at(0, std::as_writable_bytes(std::span(start.data(), known))); !s) {
      error_ = std::move(s.error());
      return false;
    }
    if (size_ == 0) return refuse("truncated", "the file is empty", "download or write the file again");
    if (std::string_view(start.data(), known).substr(0, 4) != "GGUF") {
      if (const FileGuess* g = guess_file({start.data(), known}))
        return refuse("not-gguf", "this is no GGUF file: " + std::string(g->says), std::string(g->help));
      return refuse("not-gguf", "this is no GGUF file: it begins with " +
                                    quote(std::string_view(start.data(), std::min<std::size_t>(known, 4))) + ", not \"GGUF\"");
    }
    if (size_ < fixed_bytes)
      return refuse("truncated",
                    "the file is cut short: it has " + counted(size_, "byte") + ", a GGUF file begins with " + grouped(fixed_bytes),
                    "download or write the file again");
    const auto* bytes = reinterpret_cast<const std::byte*>(start.data());
    out_.version = load_u32(bytes + 4);
    if (out_.version != 2 && out_.version != 3) {
      if (out_.version == 1)
        return refuse("version", "the file is of GGUF's version 1; versions 2 and 3 are read",
                      "download a newer file of the model, or convert it again");
      if ((out_.version & 0xffffu) == 0 && out_.version != 0)
        return refuse("version",
                      "the file's numbers are big-endian (its version reads as 0x" + hex(out_.version) + "); little-endian files are read",
                      "convert it on a little-endian machine");
      return refuse("version", "the file is of GGUF's version " + grouped(std::uint64_t{out_.version}) + "; versions 2 and 3 are read");
    }
    tensors_ = load_u64(bytes + 8);
    entries_ = load_u64(bytes + 16);
    return check_count(entries_, "metadata entries", least_entry) && check_count(tensors_, "tensors", least_tensor);
  }

  static std::string hex(std::uint32_t value) {
    std::string out;
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15u];
    return out;
  }

  // A count of things that take at least `least` bytes each in what is left of the file.
  bool check_count(std::uint64_t n, const char* what, std::uint64_t least) {
    if (n <= left() / least) return true;
    return refuse("count",
                  "the header promises " + grouped(n) + " " + what + ", but only " + grouped(left()) +
                      " bytes follow, which hold at most " + grouped(left() / least),
                  "the file is damaged or cut short; download or write it again");
  }

  // ---- metadata ----

  bool read_metadata() {
    for (std::uint64_t i = 0; i < entries_; ++i) {
      detail::MetadataEntry entry;
      const std::uint64_t begin = at_;
      if (!text(entry.key, entry.key_size, "a metadata key")) return false;
      const std::string_view key = view(entry.key, entry.key_size);
      if (key.empty() || key.size() > max_key || !is_utf8(key))
        return refuse("metadata-key",
                      "metadata key " + quote(key, 80) + at_byte(begin) +
                          (key.empty()            ? " is empty"
                           : key.size() > max_key ? " has " + grouped(std::uint64_t{key.size()}) + " bytes; at most 65,535 are allowed"
                                                  : " is not UTF-8"));
      std::uint32_t type = 0;
      if (!u32(type, "the type of a metadata value")) return false;
      entry_ = static_cast<std::uint32_t>(store_.entries.size());
      store_.entries.push_back(entry);
      if (!read_value(type, entry.value, 0)) return false;
      store_.entries.back().value = entry.value;
    }
    metadata_end_ = at_;
    return check_keys();
  }

  std::string of_key() const {
    const detail::MetadataEntry& e = store_.entries[entry_];
    return "metadata " + quote(view(e.key, e.key_size), 80);
  }

  bool read_value(std::uint32_t type, detail::MetadataNode& node, int depth) {
    if (type >= metadata_type_count)
      return refuse("metadata-type", of_key() + ": type " + std::to_string(type) + at_byte(at_ - 4) + " is not known; types are 0 to " +
                                         std::to_string(metadata_type_count - 1));
    node.type = static_cast<MetadataType>(type);
    if (node.type == MetadataType::string) return text(node.offset, node.count, "a metadata text");
    if (node.type == MetadataType::array) return read_array(node, depth + 1);
    return read_numbers(node, node.type, 1);
  }

  bool read_numbers(detail::MetadataNode& node, MetadataType type, std::uint64_t n) {
    const std::uint64_t bytes = n * value_bytes(type);  // bounded: n is at most the bytes that are left
    if (!need(bytes, "a metadata value")) return false;
    node.offset = static_cast<std::uint32_t>(at_ - fixed_bytes);
    if (type == MetadataType::boolean)
      for (std::uint64_t i = 0; i < n; ++i)
        if (const auto v = std::to_integer<unsigned>(here()[i]); v > 1)
          return refuse("metadata-value", of_key() + ": a bool is " + std::to_string(v) + at_byte(at_ + i) + "; it must be 0 or 1");
    at_ += bytes;
    return true;
  }

  bool read_array(detail::MetadataNode& node, int depth) {
    if (depth > gguf_max_array_depth)
      return refuse("array-depth",
                    of_key() + ": arrays lie in arrays more than " + std::to_string(gguf_max_array_depth) + " deep" + at_byte(at_));
    std::uint32_t type = 0;
    std::uint64_t n = 0;
    const std::uint64_t begin = at_;
    if (!u32(type, "the type of an array's elements")) return false;
    if (type >= metadata_type_count)
      return refuse("metadata-type", of_key() + ": elements of type " + std::to_string(type) + at_byte(begin) +
                                         " are not known; types are 0 to " + std::to_string(metadata_type_count - 1));
    if (!u64(n, "the length of an array")) return false;
    node.element = static_cast<MetadataType>(type);
    const std::size_t each = value_bytes(node.element);
    const std::uint64_t least = each ? each : node.element == MetadataType::string ? 8 : 12;
    if (n > left() / least || n > gguf_max_header)
      return refuse("count",
                    of_key() + ": an array" + at_byte(begin) + " promises " + grouped(n) + " elements of type " +
                        std::string(name(node.element)) + ", but only " + grouped(left()) + " bytes follow in the file",
                    "the file is damaged or cut short; download or write it again");
    node.count = static_cast<std::uint32_t>(n);
    if (each) return read_numbers(node, node.element, n);
    if (n == 0) return true;
    std::vector<std::uint32_t> table;
    for (std::uint64_t i = 0; i < n; ++i) {
      detail::MetadataNode element;
      if (node.element == MetadataType::string) {
        if (!text(element.offset, element.count, "a text of an array")) return false;
        table.push_back(element.offset - 8);
        continue;
      }
      if (store_.nodes.size() >= max_nested_arrays)
        return refuse("count", of_key() + ": more than " + grouped(std::uint64_t{max_nested_arrays}) + " arrays lie in arrays");
      if (!read_value(type, element, depth)) return false;
      table.push_back(static_cast<std::uint32_t>(store_.nodes.size()));
      store_.nodes.push_back(element);
    }
    node.table = static_cast<std::uint32_t>(store_.tables.size());
    store_.tables.push_back(std::move(table));
    return true;
  }

  bool check_keys() {
    std::unordered_map<std::string_view, std::uint32_t> seen;
    for (std::uint32_t i = 0; i < store_.entries.size(); ++i) {
      const detail::MetadataEntry& e = store_.entries[i];
      const auto [first, fresh] = seen.emplace(view(e.key, e.key_size), i);
      if (!fresh)
        return refuse("duplicate-key", "duplicate metadata key " + quote(first->first, 80) + ": at byte " + grouped(e.key + fixed_bytes) +
                                           ", and before" + at_byte(store_.entries[first->second].key + fixed_bytes));
    }
    return true;
  }

  bool read_alignment() {
    for (const detail::MetadataEntry& e : store_.entries) {
      if (view(e.key, e.key_size) != "general.alignment") continue;
      if (e.value.type != MetadataType::u32)
        return refuse("alignment", "general.alignment is of type " + std::string(name(e.value.type)) + "; it must be u32");
      const std::uint32_t a = load_u32(store_.bytes.data() + e.value.offset);
      if (a == 0 || (a & (a - 1)) != 0 || a > gguf_max_alignment)
        return refuse("alignment", "general.alignment is " + grouped(std::uint64_t{a}) + "; it must be a power of two from 1 to " +
                                       grouped(gguf_max_alignment));
      out_.alignment = a;
    }
    return true;
  }

  // ---- tensors ----

  bool read_tensors() {
    std::unordered_set<std::string> names;
    for (std::uint64_t i = 0; i < tensors_; ++i) {
      TensorInfo t;
      if (!read_tensor(t)) return false;
      if (!names.insert(t.name).second)
        return refuse("duplicate-name", "duplicate tensor " + quote(t.name) + ": its second entry ends" + at_byte(at_));
      out_.tensors.push_back(std::move(t));
    }
    const std::uint64_t data = padded(at_);
    if (data > size_ && !out_.tensors.empty())
      return refuse("truncated", "the file ends before its data, which begin" + at_byte(data) + ": it has " + counted(size_, "byte"),
                    cut_short);
    out_.file.header_bytes = static_cast<std::size_t>(std::min(data, size_));
    store_.bytes.resize(static_cast<std::size_t>(metadata_end_ - fixed_bytes));
    store_.bytes.shrink_to_fit();
    out_.metadata = Metadata(std::move(store_));
    return place_tensors(data);
  }

  std::uint64_t padded(std::uint64_t n) const { return (n + out_.alignment - 1) & ~std::uint64_t{out_.alignment - 1}; }

  bool read_tensor(TensorInfo& t) {
    const std::uint64_t begin = at_;
    std::uint32_t offset = 0, length = 0;
    if (!text(offset, length, "a tensor's name")) return false;
    const std::string_view tensor = view(offset, length);
    if (tensor.size() > gguf_max_name)
      return refuse("name-length", "the tensor name " + quote(tensor, 80) + at_byte(begin) + " has " +
                                       grouped(std::uint64_t{tensor.size()}) + " bytes; at most " + grouped(gguf_max_name) +
                                       " are allowed");
    if (tensor.empty() || !is_utf8(tensor))
      return refuse("name", "the tensor name " + quote(tensor) + at_byte(begin) + (tensor.empty() ? " is empty" : " is not UTF-8"));
    t.name = tensor;
    const std::string what = "tensor " + quote(t.name) + ": ";
    std::uint32_t dimensions = 0, type = 0;
    if (!u32(dimensions, "a number of dimensions")) return false;
    if (dimensions > gguf_max_dimensions)
      return refuse("ndims", what + std::to_string(dimensions) + " dimensions" + at_byte(at_ - 4) + "; at most " +
                                 std::to_string(gguf_max_dimensions) + " are allowed");
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      std::uint64_t extent = 0;
      if (!u64(extent, "an extent")) return false;
      if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return refuse("shape", what + "an extent is " + grouped(extent) + at_byte(at_ - 8) + "; extents are at most 2^63 - 1");
      t.shape.insert(t.shape.begin(), static_cast<std::int64_t>(extent));
    }
    if (!u32(type, "a tensor's type")) return false;
    const std::optional<Encoding> encoding = encoding_from_gguf(type);
    if (!encoding) {
      const std::string number = "type " + std::to_string(type) + at_byte(at_ - 4);
      if (const std::string_view gone = removed_gguf_type(type); !gone.empty())
        return refuse("type-removed", what + number + " is " + std::string(gone) + ", which was taken out of the format",
                      "convert or download the model again, in a type that is still in use");
      if (const std::string_view known = undecoded_gguf_type(type); !known.empty())
        return refuse("dtype", what + number + " is " + std::string(known) + ", which is not read here");
      return refuse("dtype", what + number + " is not known");
    }
    t.encoding = *encoding;
    const std::optional<std::int64_t> bytes = stored_bytes(t.encoding, t.shape);
    if (!bytes) {
      const std::int64_t block = block_elements(t.encoding);
      if (block > 1 && (t.shape.empty() || t.shape.back() % block != 0))
        return refuse("block-size", what + std::string(modelc::name(t.encoding)) + " " + shape_text(t.shape) + ": rows of " +
                                        (t.shape.empty() ? "1" : grouped(t.shape.back())) + " elements are no multiple of its blocks of " +
                                        grouped(block));
      return refuse("shape", what + std::string(modelc::name(t.encoding)) + " " + shape_text(t.shape) + " takes more than 2^63 bytes");
    }
    t.size = static_cast<std::uint64_t>(*bytes);
    if (!u64(t.offset, "a tensor's offset")) return false;
    if (t.offset % out_.alignment != 0)
      return refuse("offset-alignment", what + "its offset " + grouped(t.offset) + at_byte(at_ - 8) + " is no multiple of the alignment " +
                                            grouped(std::uint64_t{out_.alignment}));
    return true;
  }

  // Offsets become those of the file. A tensor that would lie in the file if only the file were longer is cut off; one
  // that lies behind everything that the header names never was there.
  bool place_tensors(std::uint64_t data) {
    std::uint64_t whole = 0;
    for (const TensorInfo& t : out_.tensors)
      if (__builtin_add_overflow(whole, t.size, &whole) || whole > (std::uint64_t{1} << 63)) {
        whole = std::uint64_t{1} << 63;
        break;
      } else {
        whole = padded(whole);
      }
    const std::uint64_t there = size_ - out_.file.header_bytes;
    for (TensorInfo& t : out_.tensors) {
      if (t.size == 0 && t.offset <= there) {
        t.offset += data <= size_ ? data : size_;
        continue;
      }
      std::uint64_t end = 0;
      const bool wraps = __builtin_add_overflow(t.offset, t.size, &end);
#ifdef MODELC_PLANTED_FAULT                                 // tests/fuzz: the fuzzer must find this one
      constexpr bool past_the_end = false;
#else
      const bool past_the_end = wraps || end > there;
#endif
      if (past_the_end) {
        const std::string what = "tensor " + quote(t.name) + ": " + std::string(modelc::name(t.encoding)) + " " + shape_text(t.shape) +
                                 " takes " + counted(t.size, "byte") + " from offset " + grouped(t.offset) + " of the data";
        if (wraps || end > whole)
          return refuse("out-of-file", what + ", past all that the header names; the data are " + counted(there, "byte"));
        return refuse("truncated",
                      what + ", which needs a file of " + grouped(data + end) + " bytes; it has " + grouped(size_) + ", " +
                          grouped(data + end - size_) + " too few",
                      cut_short);
      }
      t.offset += data;
    }
    return true;
  }

  bool check_cover() {
    const std::vector<TensorInfo>& tensors = out_.tensors;
    const std::vector<std::uint32_t> order = by_offset(tensors);
    const std::uint64_t first = out_.file.header_bytes;
    std::uint64_t at = first, uncovered = 0;
    const TensorInfo* last = nullptr;
    const auto gap = [&](std::uint64_t to, const std::string& where) {
      // Up to the alignment it is padding.
      if (to - at < out_.alignment) return true;
      uncovered += to - at;
      return options_.allow_trailing || refuse("trailing-bytes", counted(to - at, "byte") + " " + where + " belong to no tensor",
                                               "--allow-trailing-bytes accepts such a file, if you trust the program that wrote it");
    };
    for (std::uint32_t i : order) {
      const TensorInfo& t = tensors[i];
      if (t.offset < at)
        return refuse("overlap", "tensors " + quote(last->name) + " and " + quote(t.name) + " overlap: bytes " + grouped(t.offset - first) +
                                     " to " + grouped(std::min(at, t.offset + t.size) - first) + " of the data belong to both");
      if (!gap(t.offset, "of data before tensor " + quote(t.name))) return false;
      at = t.offset + t.size;
      last = &t;
    }
    if (!gap(size_, last ? "after the last tensor" : "after the header")) return false;
    if (uncovered) out_.notes.push_back(printable(label_) + ": " + counted(uncovered, "byte") + " of data belong to no tensor");
    return true;
  }

  const ReadFile& file_;
  std::string label_;
  const GgufOptions& options_;
  std::uint64_t size_;
  std::uint64_t tensors_ = 0, entries_ = 0, metadata_end_ = fixed_bytes;
  std::uint32_t entry_ = 0;  // the one that is being read
  detail::MetadataStore store_;
  GgufHeader out_;
  Error error_;
};

}  // namespace

Result<GgufHeader> read_gguf_header(const std::string& path, const GgufOptions& options) {
  const Result<ReadFile> file = ReadFile::open(path);
  if (!file) return file.error();
  return HeaderReader(*file, options.label.empty() ? path : options.label, options).read();
}

}  // namespace modelc
