// Tokens and their numbers, both ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

std::uint64_t hash_bytes(std::string_view bytes);

class Vocabulary {
 public:
  // Room for so many tokens, so that adding them does not grow the tables.
  void reserve(std::size_t tokens, std::size_t bytes);

  enum class Added : std::uint8_t { yes, token_twice, id_twice };
  Added add(std::string_view token, std::int32_t id);

  // The id, or -1. `hash` is hash_bytes(token), for those who have it already.
  std::int32_t find(std::string_view token) const { return find(token, hash_bytes(token)); }
  std::int32_t find(std::string_view token, std::uint64_t hash) const;
  // Begins to bring into the cache what find() with this hash will look at.
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[static_cast<std::uint32_t>(hash) & (slots_.size() - 1)]);
  }

  bool has(std::int32_t id) const { return id >= 0 && id < end() && spans_[static_cast<std::size_t>(id)].size != none; }
  // Of an id that it has. The view holds until the next add().
  std::string_view token(std::int32_t id) const {
    const Span& s = spans_[static_cast<std::size_t>(id)];
    return std::string_view(text_).substr(s.begin, s.size);
  }
  std::size_t size() const { return size_; }
  std::int32_t end() const { return static_cast<std::int32_t>(spans_.size()); }  // one more than the largest id

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct Span {
    std::uint32_t begin = 0, size = none;
  };
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t id = -1;
  };
  void grow(std::size_t slots);

  std::string text_;         // all tokens, one after another
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_;  // open addressing, a power of 2, at most half full
  std::size_t size_ = 0;
};

}  // namespace modelc
