#include "runtime/checkpoint/name_patterns.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "runtime/base/strings.h"

namespace modelc {
namespace {

// A name's numbers, and where the name stood in the input.
struct Row {
  std::vector<std::uint64_t> numbers;
  std::size_t position;
};

// A part of a name that is a whole number as it would be printed: "10", not "007".
std::optional<std::uint64_t> number_part(std::string_view part) {
  if (part.empty() || part[0] < '0' || part[0] > '9' || (part.size() > 1 && part[0] == '0')) return std::nullopt;
  return parse_uint(part);
}

// A set of number tuples that is a product: one set a column.
struct Product {
  std::vector<std::vector<std::uint64_t>> columns;
  std::vector<std::size_t> members;
};

// Splits rows (distinct, sorted by numbers) into products. The rows that share a first number are split by their other
// numbers; first numbers whose rests are the same products then stand together.
std::vector<Product> products(const std::vector<Row>& rows, std::size_t column, std::size_t begin, std::size_t end) {
  if (rows[begin].numbers.size() == column) return {Product{{}, {rows[begin].position}}};
  std::vector<Product> out;
  std::map<std::vector<std::vector<std::uint64_t>>, std::size_t> by_rest;
  for (std::size_t at = begin; at < end;) {
    const std::uint64_t first = rows[at].numbers[column];
    std::size_t next = at;
    while (next < end && rows[next].numbers[column] == first) ++next;
    for (Product& rest : products(rows, column + 1, at, next)) {
      const auto [known, fresh] = by_rest.emplace(rest.columns, out.size());
      if (fresh) {
        rest.columns.insert(rest.columns.begin(), {first});
        out.push_back(std::move(rest));
      } else {
        Product& same = out[known->second];
        same.columns[0].push_back(first);
        same.members.insert(same.members.end(), rest.members.begin(), rest.members.end());
      }
    }
    at = next;
  }
  return out;
}

template <class Text> std::vector<NamePattern> group_any(std::span<const Text> names) {
  struct Group {
    std::vector<std::string_view> parts;  // of its first name
    std::vector<bool> is_number;
    std::vector<Row> rows;
  };
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> by_skeleton;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string_view> parts = split(names[i], '.', max_name_parts);
    std::vector<bool> is_number;
    Row row{{}, i};
    std::string skeleton;
    for (std::string_view part : parts) {
      const auto number = number_part(part);
      is_number.push_back(number.has_value());
      if (number) row.numbers.push_back(*number);
      // A part that is no number is preceded by '=', so that a part "#" is not taken for a number.
      skeleton += number ? std::string("#") : "=" + std::string(part);
      skeleton += '.';
    }
    const auto [at, fresh] = by_skeleton.emplace(std::move(skeleton), groups.size());
    if (fresh) groups.push_back(Group{std::move(parts), std::move(is_number), {}});
    groups[at->second].rows.push_back(std::move(row));
  }

  std::vector<NamePattern> patterns;
  for (Group& g : groups) {
    std::sort(g.rows.begin(), g.rows.end(),
              [](const Row& a, const Row& b) { return a.numbers != b.numbers ? a.numbers < b.numbers : a.position < b.position; });
    // The same name twice counts twice but is listed once.
    std::vector<Row> distinct;
    std::unordered_map<std::size_t, std::vector<std::size_t>> repeats;
    for (Row& r : g.rows) {
      if (!distinct.empty() && distinct.back().numbers == r.numbers) repeats[distinct.back().position].push_back(r.position);
      else distinct.push_back(std::move(r));
    }
    for (Product& p : products(distinct, 0, 0, distinct.size())) {
      NamePattern pattern;
      std::size_t column = 0;
      for (std::size_t i = 0; i < g.parts.size(); ++i) {
        pattern.parts.push_back(g.is_number[i] ? number_set(p.columns[column++]) : std::string(g.parts[i]));
      }
      pattern.text = join(pattern.parts, ".");
      for (std::size_t m : std::vector<std::size_t>(p.members))
        if (const auto again = repeats.find(m); again != repeats.end())
          p.members.insert(p.members.end(), again->second.begin(), again->second.end());
      std::sort(p.members.begin(), p.members.end());
      pattern.count = p.members.size();
      pattern.members = std::move(p.members);
      patterns.push_back(std::move(pattern));
    }
  }
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const NamePattern& a, const NamePattern& b) { return a.members[0] < b.members[0]; });
  return patterns;
}

}  // namespace

std::string number_set(std::span<const std::uint64_t> numbers) {
  if (numbers.size() == 1) return std::to_string(numbers[0]);
  std::string s = "{";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (i) s += ',';
    s += std::to_string(numbers[i]);
    // Two neighbours are as short with a comma.
    if (last == i + 1) s += "," + std::to_string(numbers[last]);
    if (last > i + 1) s += ".." + std::to_string(numbers[last]);
    i = last + 1;
  }
  return s + "}";
}

std::vector<NamePattern> group_names(std::span<const std::string> names) { return group_any(names); }
std::vector<NamePattern> group_names(std::span<const std::string_view> names) { return group_any(names); }

std::vector<std::string> name_lines(std::span<const std::string> names, std::size_t cap) {
  const std::vector<NamePattern> patterns = group_names(names);
  const std::size_t shown = patterns.size() <= cap + 1 ? patterns.size() : cap;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string line = printable(patterns[i].text);
    if (patterns[i].count > 1) line += ", " + counted(patterns[i].count, "tensor");
    lines.push_back(std::move(line));
  }
  if (shown < patterns.size()) {
    std::size_t rest = 0;
    for (std::size_t i = shown; i < patterns.size(); ++i) rest += patterns[i].count;
    const std::size_t more = patterns.size() - shown;
    std::string line = "… and " + grouped(static_cast<std::uint64_t>(more)) + " more";
    if (rest != more) line += " patterns (" + counted(rest, "tensor") + ")";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace modelc
