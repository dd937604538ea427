#include "runtime/device/whereabouts.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>

namespace modelc {

std::vector<Whereabouts::Move> Whereabouts::missing(std::int64_t begin, std::int64_t end, int member) const {
  assert(begin >= 0 && end <= size_ && member >= 0 && member < max_members);
  std::vector<Move> moves;
  for (auto at = std::prev(pieces_.upper_bound(begin)); at != pieces_.end() && at->first < end; ++at) {
    if (at->second == 0 || (at->second >> member & 1U) != 0) continue;
    const auto next = std::next(at);
    const std::int64_t first = std::max(at->first, begin), last = std::min(next == pieces_.end() ? size_ : next->first, end);
    const int from = std::countr_zero(at->second);
    if (first >= last) continue;
    if (!moves.empty() && moves.back().end == first && moves.back().from == from) moves.back().end = last;
    else moves.push_back({first, last, from});
  }
  return moves;
}

int Whereabouts::holder(std::int64_t begin, std::int64_t end, int preferred) const {
  Set all = ~Set{0};
  for (auto at = std::prev(pieces_.upper_bound(begin)); at != pieces_.end() && at->first < end; ++at)
    if (at->second != 0) all &= at->second;
  if (all == ~Set{0} || (all >> preferred & 1U) != 0) return preferred;
  return all == 0 ? -1 : std::countr_zero(all);
}

void Whereabouts::cut(std::int64_t at) {
  if (at >= size_) return;
  const auto piece = std::prev(pieces_.upper_bound(at));
  if (piece->first != at) pieces_.emplace_hint(std::next(piece), at, piece->second);
}

template <class F> void Whereabouts::change(std::int64_t begin, std::int64_t end, F&& f) {
  assert(begin >= 0 && end <= size_);
  if (begin >= end) return;
  cut(begin);
  cut(end);
  const auto first = pieces_.find(begin);
  auto at = first;
  for (; at != pieces_.end() && at->first < end; ++at) at->second = f(at->second);
  // Equal neighbours are one piece again, so that their number does not grow from step to step.
  at = first == pieces_.begin() ? first : std::prev(first);
  while (at != pieces_.end() && at->first <= end) {
    const auto next = std::next(at);
    if (next == pieces_.end()) break;
    if (next->first <= end && next->second == at->second) pieces_.erase(next);
    else at = next;
  }
}

void Whereabouts::brought(std::int64_t begin, std::int64_t end, int member) {
  change(begin, end, [&](Set s) { return s | Set{1} << member; });
}
void Whereabouts::wrote(std::int64_t begin, std::int64_t end, int member) {
  change(begin, end, [&](Set) { return Set{1} << member; });
}

}  // namespace modelc
