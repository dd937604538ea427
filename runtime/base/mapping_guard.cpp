// The handler runs wherever a thread happens to be, so it may use nothing but atomics and system calls. Ranges form a
// list that only grows: one that is given up stays in it, empty, and is used again.
#include "runtime/base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace modelc {
namespace {

struct Range {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // both 0: free
  std::atomic<bool> lost{false};
  bool used = false;  // under the lock
  Range* next = nullptr;
};

std::atomic<Range*> first{nullptr};
std::mutex lock;
struct sigaction before;
std::uintptr_t page = 4096;

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Range* r = first.load(std::memory_order_acquire); r; r = r->next) {
    const std::uintptr_t begin = r->begin.load(std::memory_order_acquire), end = r->end.load(std::memory_order_acquire);
    if (at < begin || at >= end) continue;
    // Zeros from this page to the end: what is behind is as little to be trusted, and one fault is enough.
    const std::uintptr_t from = at / page * page;
    void* const here = static_cast<std::byte*>(info->si_addr) - (at - from);
    if (::mmap(here, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    r->lost.store(true, std::memory_order_release);
    errno = saved;
    return;
  }
  errno = saved;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // The access is tried again and ends the program as it would have.
    ::sigaction(SIGBUS, &before, nullptr);
  }
}

void install() {
  page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &before);
}

}  // namespace

MappingGuard::MappingGuard(const void* begin, std::size_t size) {
  const std::lock_guard held(lock);
  static const bool installed = (install(), true);
  (void)installed;
  Range* range = first.load(std::memory_order_relaxed);
  while (range && range->used) range = range->next;
  if (!range) {
    range = new Range;
    range->next = first.load(std::memory_order_relaxed);
    first.store(range, std::memory_order_release);
  }
  range->used = true;
  range->lost.store(false, std::memory_order_relaxed);
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  range->end.store(at + (size + page - 1) / page * page, std::memory_order_release);
  range->begin.store(at, std::memory_order_release);
  range_ = range;
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept : range_(std::exchange(other.range_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (!range_) return;
  const std::lock_guard held(lock);
  auto* range = static_cast<Range*>(range_);
  range->end.store(0, std::memory_order_release);
  range->begin.store(0, std::memory_order_release);
  range->used = false;
}

bool MappingGuard::lost() const { return range_ && static_cast<Range*>(range_)->lost.load(std::memory_order_acquire); }

}  // namespace modelc
