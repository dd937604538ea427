// Mutations for texts in JSON, included by one file of a target: three of four change, or write anew, what stands between two quotes
// and leave the rest as it is. Bytes changed anywhere seldom leave a text that is JSON, and what a file says stands in its strings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<std::size_t> quotes;
  for (std::size_t i = 0; i < size; ++i)
    if (data[i] == '"') quotes.push_back(i);
  const unsigned way = random() % 4;
  if (way == 0 || quotes.size() < 2) return LLVMFuzzerMutate(data, size, max_size);
  const std::size_t pick = random() % (quotes.size() / 2) * 2, begin = quotes[pick] + 1, end = quotes[pick + 1];
  std::vector<std::uint8_t> inner(data + begin, data + end);
  if (way == 1) inner.clear();
  const std::size_t before = inner.size(), most = std::min<std::size_t>(max_size - (size - (end - begin)), before + 64);
  if (most == 0) return LLVMFuzzerMutate(data, size, max_size);
  inner.resize(std::max(before, most));
  const std::size_t made = LLVMFuzzerMutate(inner.data(), std::min(before, most), most);
  const std::vector<std::uint8_t> rest(data + end, data + size);
  std::memcpy(data + begin, inner.data(), made);
  if (!rest.empty()) std::memcpy(data + begin + made, rest.data(), rest.size());
  return begin + made + rest.size();
}
