// How a run is handed out. The caller publishes the job (its fields, then a new epoch) and takes part; workers that are
// awake see the epoch, take chunks and count them done; the caller returns when all chunks are done. A worker that was
// asleep or not scheduled is not waited for: it may come when the run is over, or in the middle of the next one.
// Therefore
//   - the epoch and the next chunk share one 64-bit word, `ticket`, and a chunk is taken by compare-and-swap: it
//     succeeds only while the run of that epoch has a chunk left, and such a run cannot end before that chunk is done;
//   - the job's fields are atomics: a late worker may read them while the next job is written, and then fails to take a
//     chunk.
// In a static run chunk i belongs to worker i % size. There `ticket` is not moved; a worker that has chunks is waited
// for, and one that has none must not be misled by fields of the next job: it reads the epoch again after the fields,
// and they are written while the epoch is odd.
#include "runtime/base/thread_team.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace modelc {
namespace {

using Clock = std::chrono::steady_clock;

// Between two loops of a decode step lie a few microseconds, between two steps some tens; a sleeping thread takes about
// fifty to wake. Waiting longer than this only takes the processor from others.
constexpr auto spin_time = std::chrono::microseconds(100);
// The ticket's low bits count chunks, the rest runs: 2^39 of them, a month of the shortest ones, before an epoch comes
// again.
constexpr int chunk_bits = 24;
constexpr std::int64_t max_chunks = (std::int64_t{1} << chunk_bits) - 1;

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready()` holds; false when it did not within the time.
template <class Ready> bool spin_until(Ready ready, std::chrono::nanoseconds time) {
  if (ready()) return true;
  if (time.count() == 0) return false;
  const auto until = Clock::now() + time;
  do {
    for (int i = 0; i < 64; ++i) {
      pause();
      if (ready()) return true;
    }
  } while (Clock::now() < until);
  return false;
}

std::uint64_t epoch_of(std::uint64_t ticket) { return ticket >> chunk_bits; }
std::uint32_t next_of(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket & ((1u << chunk_bits) - 1)); }
// With no chunk taken.
std::uint64_t ticket_of(std::uint64_t epoch) { return epoch << chunk_bits; }

// The runs that this thread is inside of, innermost first.
struct Frame {
  const void* team;
  int worker;
  const Frame* outer;
};
thread_local const Frame* current = nullptr;

class Enter {
 public:
  Enter(const void* team, int worker) : frame_{team, worker, current} { current = &frame_; }
  ~Enter() { current = frame_.outer; }
  Enter(const Enter&) = delete;
  Enter& operator=(const Enter&) = delete;

 private:
  Frame frame_;
};

}  // namespace

struct ThreadTeam::Shared {
  struct Job {
    void* body;
    Call call;
    std::int64_t count, grain;
    std::uint32_t chunks;
    Schedule schedule;

    void run_chunk(std::uint32_t chunk, int worker) const {
      const std::int64_t begin = std::int64_t{chunk} * grain;
      call(body, begin, count - begin < grain ? count : begin + grain, worker);
    }
  };

  // Each on its own cache line: the first is written at every chunk, the second when one is done.
  alignas(64) std::atomic<std::uint64_t> ticket{0};
  alignas(64) std::atomic<std::uint32_t> done{0};
  // The job, written while the epoch is odd.
  alignas(64) std::atomic<void*> body{nullptr};
  std::atomic<Call> call{nullptr};
  std::atomic<std::int64_t> count{0}, grain{1};
  std::atomic<std::uint32_t> chunks{0};
  std::atomic<Schedule> schedule{Schedule::dynamic};

  alignas(64) std::mutex lock;                // for going to sleep and waking up
  std::condition_variable wake_workers, wake_caller;
  std::atomic<int> sleeping_workers{0};
  std::atomic<bool> caller_sleeps{false}, stop{false};

  std::mutex turn;                            // one outside thread at a time
  std::chrono::nanoseconds spin{spin_time};
  int size = 1;
  std::vector<std::thread> threads;

  // Reads the job of `epoch`; false where it is over and another may be on its way. Acquire loads keep the second look
  // at the ticket behind the fields.
  bool read_job(std::uint64_t epoch, Job& job) const {
    job = Job{body.load(std::memory_order_acquire),  call.load(std::memory_order_acquire),   count.load(std::memory_order_acquire),
              grain.load(std::memory_order_acquire), chunks.load(std::memory_order_acquire), schedule.load(std::memory_order_acquire)};
    return epoch_of(ticket.load(std::memory_order_acquire)) == epoch;
  }

  void chunk_done(std::uint32_t all) {
    if (done.fetch_add(1, std::memory_order_seq_cst) + 1 != all) return;
    if (caller_sleeps.load(std::memory_order_seq_cst)) {
      std::lock_guard held(lock);
      wake_caller.notify_all();
    }
  }

  // Takes part in the run of `epoch` until no chunk is left to take.
  void work(std::uint64_t epoch, const Job& job, int worker) {
    if (job.schedule == Schedule::static_) {
      for (std::uint64_t c = static_cast<std::uint64_t>(worker); c < job.chunks; c += static_cast<std::uint64_t>(size)) {
        job.run_chunk(static_cast<std::uint32_t>(c), worker);
        chunk_done(job.chunks);
      }
      return;
    }
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while (epoch_of(seen) == epoch && next_of(seen) < job.chunks) {
      if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      job.run_chunk(next_of(seen), worker);
      chunk_done(job.chunks);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void worker_main(int worker) {
#ifdef __linux__
    char name[16];
    std::snprintf(name, sizeof name, "team-%d", worker);
    pthread_setname_np(pthread_self(), name);
#endif
    const Enter enter(this, worker);
    std::uint64_t finished = 0;  // the newest epoch that this worker has been through; even
    const auto news = [&] {
      const std::uint64_t e = epoch_of(ticket.load(std::memory_order_seq_cst));
      return (e != finished && e % 2 == 0) || stop.load(std::memory_order_seq_cst);
    };
    for (;;) {
      if (!spin_until(news, spin)) {
        std::unique_lock held(lock);
        sleeping_workers.fetch_add(1, std::memory_order_seq_cst);
        wake_workers.wait(held, news);
        sleeping_workers.fetch_sub(1, std::memory_order_seq_cst);
      }
      if (stop.load(std::memory_order_seq_cst)) return;
      const std::uint64_t epoch = epoch_of(ticket.load(std::memory_order_acquire));
      Job job;
      if (epoch % 2 == 1 || epoch == finished || !read_job(epoch, job)) continue;
      work(epoch, job, worker);
      finished = epoch;
    }
  }

  // By the caller, who holds `turn`.
  void run(const Job& job) {
    const std::uint64_t before = epoch_of(ticket.load(std::memory_order_relaxed));
    ticket.store(ticket_of(before + 1), std::memory_order_seq_cst);
    // Release keeps the odd epoch visible before any field of the new job.
    done.store(0, std::memory_order_release);
    body.store(job.body, std::memory_order_release);
    call.store(job.call, std::memory_order_release);
    count.store(job.count, std::memory_order_release);
    grain.store(job.grain, std::memory_order_release);
    chunks.store(job.chunks, std::memory_order_release);
    schedule.store(job.schedule, std::memory_order_release);
    const std::uint64_t epoch = before + 2;
    ticket.store(ticket_of(epoch), std::memory_order_seq_cst);
    // A worker counts itself as sleeping before it looks at the epoch for the last time, so one of the two sees the
    // other.
    if (sleeping_workers.load(std::memory_order_seq_cst) > 0) {
      { std::lock_guard held(lock); }
      wake_workers.notify_all();
    }
    {
      const Enter enter(this, 0);
      work(epoch, job, 0);
    }
    const auto all_done = [&] { return done.load(std::memory_order_seq_cst) == job.chunks; };
    if (spin_until(all_done, spin)) return;
    std::unique_lock held(lock);
    caller_sleeps.store(true, std::memory_order_seq_cst);
    wake_caller.wait(held, all_done);
    caller_sleeps.store(false, std::memory_order_seq_cst);
  }
};

ThreadTeam::ThreadTeam(int threads) : shared_(std::make_unique<Shared>()) {
  assert(threads >= 0);
  const int processors = available_processors();
  size_ = threads > 0 ? threads : processors;
  shared_->size = size_;
  // With more threads than processors a spinning thread keeps a working one from its processor.
  if (size_ > processors) shared_->spin = std::chrono::nanoseconds(0);
  shared_->threads.reserve(static_cast<std::size_t>(size_ - 1));
  for (int w = 1; w < size_; ++w) shared_->threads.emplace_back([s = shared_.get(), w] { s->worker_main(w); });
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard held(shared_->lock);
    shared_->stop.store(true, std::memory_order_seq_cst);
  }
  shared_->wake_workers.notify_all();
  for (std::thread& t : shared_->threads) t.join();
}

void ThreadTeam::run_erased(std::int64_t count, std::int64_t grain, Schedule schedule, void* body, Call call) noexcept {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if ((count - 1) / grain >= max_chunks) grain = (count - 1) / max_chunks + 1;
  const auto chunks = static_cast<std::uint32_t>((count - 1) / grain + 1);
  const Shared::Job job{body, call, count, grain, chunks, schedule};
  for (const Frame* f = current; f; f = f->outer) {
    if (f->team != shared_.get()) continue;
    for (std::uint32_t c = 0; c < chunks; ++c) job.run_chunk(c, f->worker);
    return;
  }
  std::lock_guard taken(shared_->turn);
  if (size_ == 1 || chunks == 1) {
    const Enter enter(shared_.get(), 0);
    for (std::uint32_t c = 0; c < chunks; ++c) job.run_chunk(c, 0);
    return;
  }
  shared_->run(job);
}

int ThreadTeam::available_processors() {
  int n = static_cast<int>(std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  // A container's share of time: "200000 100000" is two processors, "max 100000" no bound.
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re")) {
    long long time = 0, period = 0;
    if (std::fscanf(file, "%lld %lld", &time, &period) == 2 && time > 0 && period > 0)
      n = static_cast<int>(std::min<long long>(n, (time + period - 1) / period));
    std::fclose(file);
  }
#endif
  return n > 1 ? n : 1;
}

}  // namespace modelc
