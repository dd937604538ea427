// Typed values by key, as the header of a GGUF file holds them: what configurations, tokenizers and chat templates are
// read from where there is no JSON beside the weights. Kept as the bytes of the file, so that a vocabulary of 256,000
// texts costs little more than itself; values are views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

// The numbers are those of the format.
enum class MetadataType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
inline constexpr std::uint32_t metadata_type_count = 13;

// "u32", "string", "array": for messages.
std::string_view name(MetadataType type);
// Bytes of one value; 0 for texts and arrays, whose length varies.
constexpr std::size_t value_bytes(MetadataType type) {
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<std::uint32_t>(type)];
}

namespace detail {
// Where a value lies in the bytes. Arrays of texts and of arrays have a table: of the offsets of their texts, or of the
// numbers of their nodes.
struct MetadataNode {
  MetadataType type = MetadataType::u8;
  MetadataType element = MetadataType::u8;  // of an array
  std::uint32_t count = 0;                  // elements of an array, bytes of a text
  std::uint32_t offset = 0;                 // of the scalar, of the text's first byte, of the first number of an array
  std::uint32_t table = 0;
};
struct MetadataEntry {
  std::uint32_t key = 0, key_size = 0;
  MetadataNode value;
};
struct MetadataStore {
  std::vector<std::byte> bytes;
  std::vector<MetadataEntry> entries;
  std::vector<std::uint32_t> by_key;  // entry numbers in the order of their keys
  std::vector<std::vector<std::uint32_t>> tables;
  std::vector<MetadataNode> nodes;    // arrays within arrays
};
}  // namespace detail

// One value. Views the Metadata that it came from, which must outlive it.
class MetadataValue {
 public:
  MetadataType type() const { return node_.type; }
  bool is_array() const { return node_.type == MetadataType::array; }
  bool is_string() const { return node_.type == MetadataType::string; }
  bool is_integer() const;

  // The value if it is of that kind, else nothing. Integers of any width convert where they fit, and all numbers are
  // doubles (an f32 exactly).
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int() const;
  std::optional<std::uint64_t> as_uint() const;
  std::optional<double> as_double() const;
  std::optional<std::string_view> as_string() const;

  // Of an array; size() is 0 for everything else. `at` needs i < size().
  std::size_t size() const { return is_array() ? node_.count : 0; }
  MetadataType element_type() const { return node_.element; }
  MetadataValue at(std::size_t i) const;

  // As text: numbers shortest, texts quoted, arrays in brackets with at most `max_elements`.
  std::string text(std::size_t max_elements = 8, std::size_t max_text = 200) const;

 private:
  friend class Metadata;
  friend class MetadataBuilder;
  MetadataValue(const detail::MetadataStore* store, detail::MetadataNode node) : store_(store), node_(node) {}
  const std::byte* data() const { return store_->bytes.data() + node_.offset; }
  const detail::MetadataStore* store_;
  detail::MetadataNode node_;
};

// Cheap to copy: copies share the bytes.
class Metadata {
 public:
  Metadata();
  // Takes over what a reader found, or a builder made; keys are unique.
  explicit Metadata(detail::MetadataStore store);

  std::size_t size() const { return store_->entries.size(); }
  bool empty() const { return size() == 0; }
  // In the order of the file.
  std::string_view key(std::size_t i) const;
  MetadataValue value(std::size_t i) const;
  // By its whole key ("general.architecture"); nothing where there is none.
  std::optional<MetadataValue> find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key).has_value(); }
  // All keys, for messages that name the nearest.
  std::vector<std::string_view> keys() const;
  // The entries as they stand in the file: key, type, value, one after the other.
  std::span<const std::byte> bytes() const { return store_->bytes; }

 private:
  std::shared_ptr<const detail::MetadataStore> store_;
};

// Makes metadata in memory: for writers and tests. A key that comes twice replaces nothing and asserts.
class MetadataBuilder {
 public:
  MetadataBuilder& add(std::string_view key, bool value);
  MetadataBuilder& add_string(std::string_view key, std::string_view value);
  MetadataBuilder& add_u32(std::string_view key, std::uint32_t value);
  MetadataBuilder& add_i32(std::string_view key, std::int32_t value);
  MetadataBuilder& add_u64(std::string_view key, std::uint64_t value);
  MetadataBuilder& add_i64(std::string_view key, std::int64_t value);
  MetadataBuilder& add_f32(std::string_view key, float value);
  MetadataBuilder& add_f64(std::string_view key, double value);
  MetadataBuilder& add_strings(std::string_view key, std::span<const std::string> values);
  MetadataBuilder& add_f32s(std::string_view key, std::span<const float> values);
  MetadataBuilder& add_i32s(std::string_view key, std::span<const std::int32_t> values);
  MetadataBuilder& add_bytes(std::string_view key, std::string_view bytes);              // an array of u8
  MetadataBuilder& add_bools(std::string_view key, const std::vector<bool>& values);
  // A value of another file's metadata under this key, with its type.
  MetadataBuilder& add_value(std::string_view key, const MetadataValue& value);
  bool contains(std::string_view key) const;
  Metadata build() const;

 private:
  void begin(std::string_view key, MetadataType type);
  detail::MetadataNode copy(const MetadataValue& value);
  template <class T> std::uint32_t put(T value);
  std::uint32_t put_text(std::string_view text);
  detail::MetadataStore store_;
};

}  // namespace modelc
