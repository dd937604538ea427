// The ids of words that were met before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

// A table of fixed size in which a new word takes the place of another with the same slot. One thread at a time uses
// it; who finds it taken does without.
class WordCache {
 public:
  static constexpr std::size_t slots = 1u << 13;
  static constexpr std::size_t longest = 64;  // bytes of a word that is kept

  // Holds the cache while it lives; where another thread does, it finds and keeps nothing.
  class Use {
   public:
    explicit Use(WordCache& cache) : cache_(cache), lock_(cache.mutex_, std::try_to_lock) {}
    // The ids, or null. `hash` is hash_bytes(word).
    const std::vector<std::int32_t>* find(std::string_view word, std::uint64_t hash) const;
    void keep(std::string_view word, std::uint64_t hash, const std::vector<std::int32_t>& ids);

   private:
    WordCache& cache_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::string word;
    std::vector<std::int32_t> ids;
  };
  std::mutex mutex_;
  std::unique_ptr<Entry[]> entries_;  // made when the first word comes
};

}  // namespace modelc
