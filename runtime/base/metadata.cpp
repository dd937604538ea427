#include "runtime/base/metadata.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <numeric>

#include "runtime/base/strings.h"

namespace modelc {

using detail::MetadataNode;
using detail::MetadataStore;

static_assert(std::endian::native == std::endian::little, "values are read as they lie in the file");

namespace {

template <class T> T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::string_view text_at(const MetadataStore& store, std::uint32_t offset, std::uint32_t size) {
  return {reinterpret_cast<const char*>(store.bytes.data()) + offset, size};
}

}  // namespace

std::string_view name(MetadataType type) {
  constexpr std::string_view names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<std::uint32_t>(type)];
}

bool MetadataValue::is_integer() const {
  switch (node_.type) {
    case MetadataType::f32:
    case MetadataType::f64:
    case MetadataType::boolean:
    case MetadataType::string:
    case MetadataType::array: return false;
    default: return true;
  }
}

std::optional<bool> MetadataValue::as_bool() const {
  if (node_.type != MetadataType::boolean) return std::nullopt;
  return data()[0] != std::byte{0};
}

std::optional<std::int64_t> MetadataValue::as_int() const {
  const std::byte* p = is_integer() ? data() : nullptr;
  switch (node_.type) {
    case MetadataType::u8: return load<std::uint8_t>(p);
    case MetadataType::i8: return load<std::int8_t>(p);
    case MetadataType::u16: return load<std::uint16_t>(p);
    case MetadataType::i16: return load<std::int16_t>(p);
    case MetadataType::u32: return load<std::uint32_t>(p);
    case MetadataType::i32: return load<std::int32_t>(p);
    case MetadataType::i64: return load<std::int64_t>(p);
    case MetadataType::u64: {
      const auto v = load<std::uint64_t>(p);
      if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      return static_cast<std::int64_t>(v);
    }
    default: return std::nullopt;
  }
}

std::optional<std::uint64_t> MetadataValue::as_uint() const {
  if (node_.type == MetadataType::u64) return load<std::uint64_t>(data());
  const auto v = as_int();
  if (!v || *v < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*v);
}

std::optional<double> MetadataValue::as_double() const {
  if (node_.type == MetadataType::f32) return load<float>(data());
  if (node_.type == MetadataType::f64) return load<double>(data());
  if (node_.type == MetadataType::u64) return static_cast<double>(load<std::uint64_t>(data()));
  const auto v = as_int();
  if (!v) return std::nullopt;
  return static_cast<double>(*v);
}

std::optional<std::string_view> MetadataValue::as_string() const {
  if (!is_string()) return std::nullopt;
  return text_at(*store_, node_.offset, node_.count);
}

MetadataValue MetadataValue::at(std::size_t i) const {
  assert(i < size());
  MetadataNode node;
  node.type = node_.element;
  if (node_.element == MetadataType::array) return {store_, store_->nodes[store_->tables[node_.table][i]]};
  if (node_.element == MetadataType::string) {
    const std::uint32_t at = store_->tables[node_.table][i];
    node.count = static_cast<std::uint32_t>(load<std::uint64_t>(store_->bytes.data() + at));
    node.offset = at + 8;
  } else {
    node.offset = node_.offset + static_cast<std::uint32_t>(i * value_bytes(node_.element));
  }
  return {store_, node};
}

std::string MetadataValue::text(std::size_t max_elements, std::size_t max_text) const {
  if (const auto s = as_string()) return quote(*s, max_text);
  if (const auto b = as_bool()) return *b ? "true" : "false";
  if (node_.type == MetadataType::u64) return std::to_string(load<std::uint64_t>(data()));
  if (const auto n = as_int()) return std::to_string(*n);
  if (node_.type == MetadataType::f32) return shortest(load<float>(data()));
  if (node_.type == MetadataType::f64) return shortest(load<double>(data()));
  std::string out = "[";
  for (std::size_t i = 0; i < std::min(size(), max_elements); ++i) {
    if (i) out += ", ";
    out += at(i).text(max_elements, std::min<std::size_t>(max_text, 40));
  }
  if (size() > max_elements) out += (max_elements ? ", … " : "… ") + grouped(std::uint64_t{size()}) + " in all";
  return out + "]";
}

Metadata::Metadata() : store_(std::make_shared<const MetadataStore>()) {}

Metadata::Metadata(MetadataStore store) {
  store.by_key.resize(store.entries.size());
  std::iota(store.by_key.begin(), store.by_key.end(), 0u);
  std::sort(store.by_key.begin(), store.by_key.end(), [&](std::uint32_t a, std::uint32_t b) {
    const detail::MetadataEntry &x = store.entries[a], &y = store.entries[b];
    return text_at(store, x.key, x.key_size) < text_at(store, y.key, y.key_size);
  });
  store_ = std::make_shared<const MetadataStore>(std::move(store));
}

std::string_view Metadata::key(std::size_t i) const { return text_at(*store_, store_->entries[i].key, store_->entries[i].key_size); }

MetadataValue Metadata::value(std::size_t i) const { return {store_.get(), store_->entries[i].value}; }

std::optional<MetadataValue> Metadata::find(std::string_view wanted) const {
  const auto it = std::lower_bound(store_->by_key.begin(), store_->by_key.end(), wanted,
                                   [&](std::uint32_t i, std::string_view k) { return key(i) < k; });
  if (it == store_->by_key.end() || key(*it) != wanted) return std::nullopt;
  return value(*it);
}

std::vector<std::string_view> Metadata::keys() const {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < size(); ++i) out.push_back(key(i));
  return out;
}

// ---- the builder ----

template <class T> std::uint32_t MetadataBuilder::put(T value) {
  std::vector<std::byte>& bytes = store_.bytes;
  const std::size_t at = bytes.size();
  assert(at + sizeof value <= std::numeric_limits<std::uint32_t>::max());
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return static_cast<std::uint32_t>(at);
}

// The length and the text; gives the place of the length.
std::uint32_t MetadataBuilder::put_text(std::string_view text) {
  const std::uint32_t at = put(std::uint64_t{text.size()});
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  store_.bytes.insert(store_.bytes.end(), from, from + text.size());
  return at;
}

void MetadataBuilder::begin(std::string_view key, MetadataType type) {
  assert(!contains(key));
  detail::MetadataEntry entry;
  entry.key = put_text(key) + 8;
  entry.key_size = static_cast<std::uint32_t>(key.size());
  entry.value.type = type;
  put(static_cast<std::uint32_t>(type));
  entry.value.offset = static_cast<std::uint32_t>(store_.bytes.size());
  store_.entries.push_back(entry);
}

bool MetadataBuilder::contains(std::string_view key) const {
  return std::any_of(store_.entries.begin(), store_.entries.end(),
                     [&](const detail::MetadataEntry& e) { return text_at(store_, e.key, e.key_size) == key; });
}

MetadataBuilder& MetadataBuilder::add(std::string_view key, bool value) {
  begin(key, MetadataType::boolean);
  put(static_cast<std::uint8_t>(value));
  return *this;
}
MetadataBuilder& MetadataBuilder::add_string(std::string_view key, std::string_view value) {
  begin(key, MetadataType::string);
  MetadataNode& node = store_.entries.back().value;
  node.offset = put_text(value) + 8;
  node.count = static_cast<std::uint32_t>(value.size());
  return *this;
}
MetadataBuilder& MetadataBuilder::add_u32(std::string_view key, std::uint32_t value) {
  begin(key, MetadataType::u32);
  put(value);
  return *this;
}
MetadataBuilder& MetadataBuilder::add_i32(std::string_view key, std::int32_t value) {
  begin(key, MetadataType::i32);
  put(value);
  return *this;
}
MetadataBuilder& MetadataBuilder::add_u64(std::string_view key, std::uint64_t value) {
  begin(key, MetadataType::u64);
  put(value);
  return *this;
}
MetadataBuilder& MetadataBuilder::add_i64(std::string_view key, std::int64_t value) {
  begin(key, MetadataType::i64);
  put(value);
  return *this;
}
MetadataBuilder& MetadataBuilder::add_f32(std::string_view key, float value) {
  begin(key, MetadataType::f32);
  put(value);
  return *this;
}
MetadataBuilder& MetadataBuilder::add_f64(std::string_view key, double value) {
  begin(key, MetadataType::f64);
  put(value);
  return *this;
}

MetadataBuilder& MetadataBuilder::add_strings(std::string_view key, std::span<const std::string> values) {
  begin(key, MetadataType::array);
  put(static_cast<std::uint32_t>(MetadataType::string));
  put(std::uint64_t{values.size()});
  std::vector<std::uint32_t> table;
  for (const std::string& v : values) table.push_back(put_text(v));
  MetadataNode& node = store_.entries.back().value;
  node.element = MetadataType::string;
  node.count = static_cast<std::uint32_t>(values.size());
  node.table = static_cast<std::uint32_t>(store_.tables.size());
  store_.tables.push_back(std::move(table));
  return *this;
}

MetadataBuilder& MetadataBuilder::add_f32s(std::string_view key, std::span<const float> values) {
  begin(key, MetadataType::array);
  put(static_cast<std::uint32_t>(MetadataType::f32));
  MetadataNode& node = store_.entries.back().value;
  node.element = MetadataType::f32;
  node.count = static_cast<std::uint32_t>(values.size());
  node.offset = put(std::uint64_t{values.size()}) + 8;
  for (float v : values) put(v);
  return *this;
}

MetadataBuilder& MetadataBuilder::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
  begin(key, MetadataType::array);
  put(static_cast<std::uint32_t>(MetadataType::i32));
  MetadataNode& node = store_.entries.back().value;
  node.element = MetadataType::i32;
  node.count = static_cast<std::uint32_t>(values.size());
  node.offset = put(std::uint64_t{values.size()}) + 8;
  for (std::int32_t v : values) put(v);
  return *this;
}

MetadataBuilder& MetadataBuilder::add_bytes(std::string_view key, std::string_view bytes) {
  begin(key, MetadataType::array);
  put(static_cast<std::uint32_t>(MetadataType::u8));
  MetadataNode& node = store_.entries.back().value;
  node.element = MetadataType::u8;
  node.count = static_cast<std::uint32_t>(bytes.size());
  node.offset = put(std::uint64_t{bytes.size()}) + 8;
  for (char b : bytes) put(static_cast<std::uint8_t>(b));
  return *this;
}

MetadataBuilder& MetadataBuilder::add_bools(std::string_view key, const std::vector<bool>& values) {
  begin(key, MetadataType::array);
  put(static_cast<std::uint32_t>(MetadataType::boolean));
  MetadataNode& node = store_.entries.back().value;
  node.element = MetadataType::boolean;
  node.count = static_cast<std::uint32_t>(values.size());
  node.offset = put(std::uint64_t{values.size()}) + 8;
  for (bool v : values) put(static_cast<std::uint8_t>(v));
  return *this;
}

// The bytes of the value, appended; the node says where they lie now. Readers bound the depth of arrays.
MetadataNode MetadataBuilder::copy(const MetadataValue& value) {
  MetadataNode node;
  node.type = value.type();
  if (const auto text = value.as_string()) {
    node.offset = put_text(*text) + 8;
    node.count = static_cast<std::uint32_t>(text->size());
    return node;
  }
  const auto append = [&](const std::byte* from, std::size_t n) {
    node.offset = static_cast<std::uint32_t>(store_.bytes.size());
    store_.bytes.insert(store_.bytes.end(), from, from + n);
  };
  if (!value.is_array()) {
    append(value.data(), value_bytes(value.type()));
    return node;
  }
  node.element = value.element_type();
  node.count = static_cast<std::uint32_t>(value.size());
  put(static_cast<std::uint32_t>(node.element));
  put(std::uint64_t{value.size()});
  if (const std::size_t each = value_bytes(node.element)) {
    append(value.data(), value.size() * each);
    return node;
  }
  std::vector<std::uint32_t> table;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (node.element == MetadataType::string) {
      table.push_back(put_text(*value.at(i).as_string()));
    } else {
      const MetadataNode child = copy(value.at(i));
      table.push_back(static_cast<std::uint32_t>(store_.nodes.size()));
      store_.nodes.push_back(child);
    }
  }
  node.table = static_cast<std::uint32_t>(store_.tables.size());
  store_.tables.push_back(std::move(table));
  return node;
}

MetadataBuilder& MetadataBuilder::add_value(std::string_view key, const MetadataValue& value) {
  begin(key, value.type());
  const MetadataNode node = copy(value);
  store_.entries.back().value = node;
  return *this;
}

Metadata MetadataBuilder::build() const { return Metadata(store_); }

}  // namespace modelc
