// Where the bytes of a buffer that several devices hold are right: plain data, of which DeviceSet makes transfers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace modelc {

class Whereabouts {
 public:
  static constexpr int max_members = 32;

  // Of `size` bytes, none of which is written yet: what nobody wrote is brought nowhere.
  explicit Whereabouts(std::int64_t size) : size_(size) { pieces_.emplace(0, 0); }

  struct Move {
    std::int64_t begin, end;
    int from;
    bool operator==(const Move&) const = default;
  };
  // What has to be brought to the member so that it can read [begin, end), in order; neighbours from one member are one.
  // From the least member that has it right.
  std::vector<Move> missing(std::int64_t begin, std::int64_t end, int member) const;
  void brought(std::int64_t begin, std::int64_t end, int member);    // right there, too
  void wrote(std::int64_t begin, std::int64_t end, int member);      // right there alone
  // A member that has all of [begin, end) right; `preferred` where it is one of them, -1 where there is none.
  int holder(std::int64_t begin, std::int64_t end, int preferred) const;

 private:
  using Set = std::uint32_t;                               // of members, a bit each
  void cut(std::int64_t at);
  template <class F> void change(std::int64_t begin, std::int64_t end, F&& f);
  std::int64_t size_;
  std::map<std::int64_t, Set> pieces_;                     // by where they begin; each ends where the next begins
};

}  // namespace modelc
