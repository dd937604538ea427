// A persistent team of threads for short parallel loops: a decode step runs hundreds of them, so that starting one
// costs a few microseconds, allocates nothing, and the calling thread works too.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace modelc {

class ThreadTeam {
 public:
  // dynamic: workers take the next chunk when they are done with one; static_: chunk i goes to worker i % size, so that
  // the same rows meet the same core (and its cache) in every run.
  enum class Schedule : std::uint8_t { dynamic, static_ };

  // `threads` counts the caller: 1 starts none, 0 takes available_processors().
  explicit ThreadTeam(int threads);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();  // joins; no run may be in progress

  int size() const { return size_; }

  // Calls f(begin, end, worker) for disjoint ranges that cover [0, count), each of `grain` elements but for the last,
  // with worker in [0, size()). Returns when all are done; what they wrote is then visible to the caller. f must not
  // throw. A run from within a run executes in the calling worker, under its number. Runs by different outside threads
  // take turns.
  template <class F> void run(std::int64_t count, std::int64_t grain, F&& f, Schedule schedule = Schedule::dynamic) {
    using Body = std::remove_reference_t<F>;
    run_erased(count, grain, schedule, const_cast<void*>(static_cast<const void*>(std::addressof(f))),
               [](void* body, std::int64_t begin, std::int64_t end, int worker) { (*static_cast<Body*>(body))(begin, end, worker); });
  }

  // Processors that this process may run on, at least 1.
  static int available_processors();

 private:
  using Call = void (*)(void* body, std::int64_t begin, std::int64_t end, int worker);
  void run_erased(std::int64_t count, std::int64_t grain, Schedule schedule, void* body, Call call) noexcept;

  struct Shared;
  int size_ = 1;
  std::unique_ptr<Shared> shared_;
};

}  // namespace modelc
