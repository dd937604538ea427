#include "codegen/driver/interrupts.h"

#include <csignal>
#include <iterator>

namespace modelc::driver {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int number) { noted = number; }

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

struct Interruptible::Before {
  struct sigaction actions[std::size(signals)];
};

Interruptible::Interruptible() : before_(new Before{}) {
  struct sigaction ours = {};
  ours.sa_handler = note;
  ours.sa_flags = static_cast<int>(SA_RESETHAND);          // not SA_RESTART: a wait ends
  for (std::size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before_->actions[i]);
    if (before_->actions[i].sa_handler != SIG_IGN) sigaction(signals[i], &ours, nullptr);
  }
}

Interruptible::~Interruptible() {
  for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_->actions[i], nullptr);
  delete before_;
}

int interrupted() { return noted; }

void end_if_interrupted() {
  if (noted != 0) throw Interrupted{noted};
}

}  // namespace modelc::driver
