// Many tensor names as a few patterns: "model.layers.{0..79}.self_attn.rotary_emb.inv_freq, 80 tensors".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modelc {

// Parts of a name beyond this many are left together: a name of a hostile file may hold millions of dots.
inline constexpr std::size_t max_name_parts = 32;

struct NamePattern {
  std::string text;  // "layers.{0..79}.experts.{0..3,5}.w1.weight"; the name itself where it stands alone
  std::vector<std::string> parts;     // the same between the dots of the name; sets of numbers have dots of their own
  std::size_t count = 0;              // how many names it stands for
  std::vector<std::size_t> members;   // positions in the input, ascending
};

// Groups names that differ only in parts that are whole numbers, in the order of each group's first name. A pattern
// stands for exactly its names: where a set of index tuples is no product of sets, it is split.
std::vector<NamePattern> group_names(std::span<const std::string> names);
std::vector<NamePattern> group_names(std::span<const std::string_view> names);

// "{0..79}", "{0..3,5}", "7": ascending numbers without repetition.
std::string number_set(std::span<const std::uint64_t> numbers);

// Lines for a message: each pattern with its count where it is above 1, at most `cap`, then "… and 12 more patterns (80
// tensors)". Names are made printable.
std::vector<std::string> name_lines(std::span<const std::string> names, std::size_t cap = 10);

}  // namespace modelc
