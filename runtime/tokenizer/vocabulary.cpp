#include "runtime/tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace modelc {

std::uint64_t hash_bytes(std::string_view bytes) {
  // Multiply and fold, eight bytes at a time. The multiplier is 2^64 divided by the golden ratio.
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  const auto mix = [](std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) * multiplier;
    return h ^ (h >> 32);
  };
  std::uint64_t h = bytes.size() * multiplier;
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    h = mix(h, word);
  }
  std::uint64_t word = 0;
  if (left > 0) std::memcpy(&word, p, left);
  h = mix(h, word);
  return mix(h, left);
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  text_.reserve(bytes);
  spans_.reserve(tokens);
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * tokens, 16));
  if (slots > slots_.size()) grow(slots);
}

void Vocabulary::grow(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  const std::size_t mask = slots - 1;
  for (const Slot& s : old) {
    if (s.id < 0) continue;
    std::size_t at = s.hash & mask;
    while (slots_[at].id >= 0) at = (at + 1) & mask;
    slots_[at] = s;
  }
}

Vocabulary::Added Vocabulary::add(std::string_view token, std::int32_t id) {
  if (has(id)) return Added::id_twice;
  if (slots_.size() < 2 * (size_ + 1)) grow(std::max<std::size_t>(16, 2 * slots_.size()));
  const auto hash = static_cast<std::uint32_t>(hash_bytes(token));
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at].id >= 0; at = (at + 1) & mask)
    if (slots_[at].hash == hash && this->token(slots_[at].id) == token) return Added::token_twice;
  slots_[at] = {hash, id};
  const auto index = static_cast<std::size_t>(id);
  if (index >= spans_.size()) spans_.resize(index + 1);
  spans_[index] = {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(token.size())};
  text_.append(token);
  ++size_;
  return Added::yes;
}

std::int32_t Vocabulary::find(std::string_view token, std::uint64_t hash) const {
  if (slots_.empty()) return -1;
  const auto short_hash = static_cast<std::uint32_t>(hash);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = short_hash & mask; slots_[at].id >= 0; at = (at + 1) & mask)
    if (slots_[at].hash == short_hash && this->token(slots_[at].id) == token) return slots_[at].id;
  return -1;
}

}  // namespace modelc
