#include "runtime/vulkan/cut.h"

#include <algorithm>

namespace modelc::vulkan {
namespace {

// Bytes from the first that a block of so many places touches to the last.
std::int64_t extent(const Walk& w, std::span<const std::int64_t> counts) {
  std::int64_t n = w.bytes;
  for (std::size_t k = 0; k < counts.size(); ++k) n += (counts[k] - 1) * w.steps[k];
  return n;
}

// So many places along axis k as fit `room` bytes of every tensor, the other axes as they are; 0: none does.
std::int64_t fitting(std::size_t k, std::span<const std::int64_t> counts, std::span<const Walk> walks, std::int64_t room) {
  std::int64_t most = counts[k];
  for (const Walk& w : walks) {
    const std::int64_t others = extent(w, counts) - (counts[k] - 1) * w.steps[k];
    if (others > room) return 0;
    if (w.steps[k] > 0) most = std::min(most, (room - others) / w.steps[k] + 1);
  }
  return most;
}

// Rows that together are not more work than one submission may have: whole workgroups of them where it can be, one at least.
std::int64_t rows_of_work(const Dispatch& d, const DevicePlan& plan) {
  if (plan.work == 0 || d.work <= plan.work || d.rows.count < 2) return std::max<std::int64_t>(d.rows.count, 1);
  const auto each = std::max<std::int64_t>(static_cast<std::int64_t>(d.work / static_cast<std::uint64_t>(d.rows.count)), 1);
  const std::int64_t fit = std::max<std::int64_t>(static_cast<std::int64_t>(plan.work) / each, 1);
  const std::int64_t things = std::max<std::int64_t>(d.rows.items / d.rows.count, 1);             // of a row
  const std::int64_t group = std::max<std::int64_t>(d.rows.of_group / things, 1);                 // rows of a workgroup
  return fit > group ? fit / group * group : fit;
}

}  // namespace

bool is_seen(std::int64_t at, std::int64_t bytes, const DevicePlan& plan) {
  const std::int64_t skipped = at % static_cast<std::int64_t>(plan.alignment);
  return (skipped + bytes + 3) / 4 * 4 <= static_cast<std::int64_t>(plan.binding_bytes);     // whole words are read
}

std::vector<Places> cut(std::span<const std::int64_t> sizes, std::span<const Walk> walks, const DevicePlan& plan, Order order) {
  std::vector<std::int64_t> counts(sizes.begin(), sizes.end());
  const std::size_t axes = sizes.size();
  const auto seen = [&](const Walk& w) { return is_seen(w.at, extent(w, counts), plan); };
  if (std::all_of(walks.begin(), walks.end(), seen)) return {{std::vector<std::int64_t>(axes, 0), counts}};

  // A block may begin anywhere: at worst just before a place where a binding may begin, and a word at the end is read whole.
  std::vector<Walk> walked;
  for (const Walk& w : walks) {
    if (std::any_of(w.steps.begin(), w.steps.end(), [](std::int64_t s) { return s > 0; })) walked.push_back(w);
    else if (!seen(w)) return {};                          // every block sees all of it, where it is
  }
  const std::int64_t room = static_cast<std::int64_t>(plan.binding_bytes) - static_cast<std::int64_t>(plan.alignment) - 4;
  if (order == Order::outer_first) {
    for (std::size_t k = 0; k < axes; ++k) {
      const std::int64_t n = fitting(k, counts, walked, room);
      counts[k] = std::max<std::int64_t>(n, 1);
      if (n > 0) break;
    }
  } else {
    // The axis along which the tensor that is too large goes farthest.
    for (const Walk& w : walked)
      while (extent(w, counts) > room) {
        std::size_t far = 0;
        for (std::size_t k = 1; k < axes; ++k)
          if ((counts[k] - 1) * w.steps[k] > (counts[far] - 1) * w.steps[far]) far = k;
        if (axes == 0 || (counts[far] - 1) * w.steps[far] == 0) return {};
        const std::int64_t others = extent(w, counts) - (counts[far] - 1) * w.steps[far];
        counts[far] = others > room ? 1 : (room - others) / w.steps[far] + 1;
      }
  }
  for (const Walk& w : walked)
    if (extent(w, counts) > room) return {};

  std::vector<Places> blocks;
  Places next{std::vector<std::int64_t>(axes, 0), counts};
  while (true) {
    for (std::size_t k = 0; k < axes; ++k) next.count[k] = std::min(counts[k], sizes[k] - next.first[k]);
    blocks.push_back(next);
    std::size_t k = axes;
    while (k > 0 && next.first[k - 1] + counts[k - 1] >= sizes[k - 1]) next.first[--k] = 0;
    if (k == 0) return blocks;
    next.first[k - 1] += counts[k - 1];
  }
}

std::vector<Dispatch> in_parts(const Dispatch& d, const DevicePlan& plan) {
  const auto seen = [&](const Binding& b) { return !b.tensor || is_seen(b.tensor.offset, b.bytes, plan); };
  const std::int64_t asked = d.rows.most > 0 ? d.rows.most : d.rows.count, most = std::min(rows_of_work(d, plan), asked);
  if (d.rows.count < 2 || (d.rows.count <= most && std::all_of(d.bindings.begin(), d.bindings.end(), seen))) return {};
  std::vector<Walk> walks;
  for (const Binding& b : d.bindings) {
    if (!b.tensor || b.bytes == 0) continue;
    walks.push_back({b.tensor.offset, b.bytes - (d.rows.count - 1) * b.row_bytes, {b.row_bytes}});
  }
  std::vector<Dispatch> parts;
  const auto add = [&](std::int64_t first, std::int64_t n) {
    Dispatch part = d;
    for (Binding& b : part.bindings) {
      if (!b.tensor || b.row_bytes == 0) continue;
      b.tensor.offset += first * b.row_bytes;
      b.bytes -= (d.rows.count - n) * b.row_bytes;
    }
    part.rows.count = n;
    for (const auto& t : d.rows.told) part.arguments[t.argument] = static_cast<std::uint32_t>((n * t.unit + t.per - 1) / t.per);
    for (const auto& [argument, from] : d.rows.begun) part.arguments[argument] = static_cast<std::uint32_t>(from + first);
    part.groups = d.groups_of(n);
    part.work = d.work / static_cast<std::uint64_t>(d.rows.count) * static_cast<std::uint64_t>(n);
    parts.push_back(std::move(part));
  };
  for (const Places& p : cut({&d.rows.count, 1}, walks, plan, Order::outer_first))
    for (std::int64_t done = 0; done < p.count[0]; done += most) add(p.first[0] + done, std::min(most, p.count[0] - done));
  return parts;
}

}  // namespace modelc::vulkan
