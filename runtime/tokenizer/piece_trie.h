// All tokens that a text begins with, found byte by byte.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/vocabulary.h"

namespace modelc {

// A trie whose edges stand in one hash table: (node, byte) -> node.
class PieceTrie {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr std::uint32_t root = 0;

  explicit PieceTrie(std::size_t bytes = 0) { grow(std::bit_ceil(bytes + bytes / 2 + 16)); }

  void add(std::string_view token, std::int32_t id) {
    std::uint32_t node = root;
    for (const char c : token) node = add_edge(node, static_cast<unsigned char>(c));
    ids_[node] = id;
  }
  // The node after `byte`; `none` where no token goes on so.
  std::uint32_t next(std::uint32_t node, char byte) const {
    const std::uint64_t key = pack(node, static_cast<unsigned char>(byte));
    for (std::size_t at = slot(key);; at = (at + 1) & mask_) {
      if (edges_[at].key == key) return edges_[at].to;
      if (edges_[at].key == empty) return none;
    }
  }
  // The token that ends at the node, or -1.
  std::int32_t id(std::uint32_t node) const { return ids_[node]; }

 private:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  struct Edge {
    std::uint64_t key = empty;
    std::uint32_t to = none;
  };
  static std::uint64_t pack(std::uint32_t node, unsigned char byte) { return (std::uint64_t{node} << 8) | byte; }
  std::size_t slot(std::uint64_t key) const { return ((key * 0x9E3779B97F4A7C15u) >> 24) & mask_; }

  std::uint32_t add_edge(std::uint32_t node, unsigned char byte) {
    if (4 * (ids_.size() + 1) > 3 * edges_.size()) grow(2 * edges_.size());
    const std::uint64_t key = pack(node, byte);
    std::size_t at = slot(key);
    for (; edges_[at].key != empty; at = (at + 1) & mask_)
      if (edges_[at].key == key) return edges_[at].to;
    edges_[at] = {key, static_cast<std::uint32_t>(ids_.size())};
    ids_.push_back(-1);
    return edges_[at].to;
  }
  void grow(std::size_t slots) {
    std::vector<Edge> old(slots);
    old.swap(edges_);
    mask_ = slots - 1;
    for (const Edge& e : old) {
      if (e.key == empty) continue;
      std::size_t at = slot(e.key);
      while (edges_[at].key != empty) at = (at + 1) & mask_;
      edges_[at] = e;
    }
  }

  std::vector<Edge> edges_;
  std::vector<std::int32_t> ids_ = {-1};  // by node
  std::size_t mask_ = 0;
};

}  // namespace modelc
