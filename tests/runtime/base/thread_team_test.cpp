#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "runtime/base/thread_team.h"

using namespace modelc;
using Schedule = ThreadTeam::Schedule;

// Counts allocations of the whole program, for the test that a run makes none. Not inlined: g++ would see malloc on one
// side and delete on the other and warn of a mismatch.
namespace {
std::atomic<long> allocations{0};
}
[[gnu::noinline]] void* operator new(std::size_t n) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

TEST_CASE("every element once, by every size of team") {
  for (int threads : {1, 2, 3, 8}) {
    ThreadTeam team(threads);
    REQUIRE(team.size() == threads);
    for (Schedule schedule : {Schedule::dynamic, Schedule::static_})
      for (std::int64_t count : {0, 1, 2, 7, 100, 1000})
        for (std::int64_t grain : {-1, 0, 1, 3, 64, 5000}) {
          std::vector<int> seen(static_cast<std::size_t>(count));   // not atomic: each element has one writer
          std::atomic<bool> good{true};
          team.run(
              count, grain,
              [&](std::int64_t begin, std::int64_t end, int worker) {
                if (begin >= end || worker < 0 || worker >= threads || end - begin > std::max<std::int64_t>(grain, 1)) good = false;
                for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
              },
              schedule);
          CHECK(good);
          for (int n : seen) REQUIRE(n == 1);
        }
  }
}

TEST_CASE("many tiny runs, one after the other") {
  ThreadTeam team(3);
  std::vector<std::int64_t> data(16);
  std::int64_t expected = 0;
  for (int round = 0; round < 30'000; ++round) {
    const Schedule schedule = round % 3 == 0 ? Schedule::static_ : Schedule::dynamic;
    const std::int64_t count = 2 + round % 15;
    team.run(
        count, 1 + round % 2,
        [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t i = begin; i < end; ++i) data[static_cast<std::size_t>(i)] += i + 1;
        },
        schedule);
    expected += count * (count + 1) / 2;
    if (round % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));   // lets the workers fall asleep
  }
  std::int64_t sum = 0;
  for (std::int64_t v : data) sum += v;
  CHECK(sum == expected);
}

TEST_CASE("a static run gives a worker the same chunks each time") {
  ThreadTeam team(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> by(50);
    team.run(
        50, 4,
        [&](std::int64_t begin, std::int64_t end, int worker) {
          for (std::int64_t i = begin; i < end; ++i) by[static_cast<std::size_t>(i)] = worker;
        },
        Schedule::static_);
    for (std::size_t i = 0; i < by.size(); ++i) REQUIRE(by[i] == static_cast<int>(i / 4 % 3));
  }
}

TEST_CASE("a run within a run stays with its worker") {
  ThreadTeam team(2), other(2);
  std::vector<int> seen(400);
  std::atomic<int> wrong{0};
  team.run(20, 1, [&](std::int64_t outer, std::int64_t, int worker) {
    std::int64_t chunks = 0;
    team.run(20, 3, [&](std::int64_t begin, std::int64_t end, int inner) {
      if (inner != worker) ++wrong;
      ++chunks;
      for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(outer * 20 + i)];
    });
    if (chunks != 7) ++wrong;
    // Another team may be used from within.
    std::atomic<std::int64_t> sum{0};
    other.run(10, 1, [&](std::int64_t i, std::int64_t, int) { sum += i; });
    if (sum != 45) ++wrong;
  });
  CHECK(wrong == 0);
  for (int n : seen) REQUIRE(n == 1);
}

TEST_CASE("outside threads take turns") {
  ThreadTeam team(2);
  std::vector<std::thread> outside;
  std::vector<std::int64_t> sums(3);
  std::vector<int> busy(2);          // not atomic: workers of two runs at once would race on it
  for (std::size_t t = 0; t < sums.size(); ++t)
    outside.emplace_back([&, t] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<std::int64_t> sum{0};
        team.run(8, 1, [&](std::int64_t i, std::int64_t, int worker) {
          ++busy[static_cast<std::size_t>(worker)];
          sum += i;
        });
        sums[t] += sum;
      }
    });
  for (std::thread& t : outside) t.join();
  for (std::int64_t s : sums) CHECK(s == 300 * 28);
  CHECK(busy[0] + busy[1] == 3 * 300 * 8);
}

TEST_CASE("the work is shared") {
  ThreadTeam team(2);
  std::atomic<int> arrived{0};
  // Each of two chunks waits until the other has begun: with one thread this would not end.
  team.run(2, 1, [&](std::int64_t, std::int64_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("a run allocates nothing") {
  ThreadTeam team(2);
  std::atomic<std::int64_t> sum{0};
  const auto body = [&](std::int64_t begin, std::int64_t, int) { sum += begin; };
  team.run(10, 1, body);
  const long before = allocations;
  for (int i = 0; i < 100; ++i) team.run(10, 1, body);
  CHECK(allocations == before);
  CHECK(sum == 101 * 45);
}

TEST_CASE("more chunks than the counter holds") {
  ThreadTeam team(2);
  std::atomic<std::int64_t> covered{0};
  const std::int64_t count = std::int64_t{1} << 40;
  team.run(count, 1'000, [&](std::int64_t begin, std::int64_t end, int) { covered.fetch_add(end - begin, std::memory_order_relaxed); });
  CHECK(covered == count);
}

TEST_CASE("teams come and go") {
  for (int i = 0; i < 100; ++i) {
    ThreadTeam team(1 + i % 4);
    if (i % 2) {
      std::atomic<int> n{0};
      team.run(3, 1, [&](std::int64_t, std::int64_t, int) { ++n; });
      REQUIRE(n == 3);
    }
  }
  CHECK(ThreadTeam::available_processors() >= 1);
  CHECK(ThreadTeam(0).size() == ThreadTeam::available_processors());
}

TEST_CASE("time of an empty run" * doctest::may_fail()) {
  ThreadTeam team(2);
  std::atomic<int> n{0};
  const auto body = [&](std::int64_t, std::int64_t, int) { n.fetch_add(1, std::memory_order_relaxed); };
  for (int i = 0; i < 100; ++i) team.run(2, 1, body);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int rounds = 2'000;
  for (int i = 0; i < rounds; ++i) team.run(2, 1, body, Schedule::static_);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  MESSAGE("one static run of 2 threads: " << took.count() / rounds << " us");
  // A machine shared with others may take any time; far beyond this something is wrong.
  CHECK(took.count() / rounds < 1'000);
}
