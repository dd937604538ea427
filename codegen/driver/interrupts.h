// SIGINT, SIGTERM and SIGHUP while something is under way that has to be tidied up: temporary folders, half-written files,
// a compiler that runs.
#pragma once

#include <cstddef>

namespace modelc::driver {

// As long as it lives, the first such signal is only noted; the second one is the system's again. Signals that were
// ignored before stay ignored.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct Before;
  Before* before_;
};

// The signal that was noted, 0: none.
int interrupted();

// Thrown where work cannot go on after a signal, so that everything under way is tidied up; main ends by the signal.
struct Interrupted {
  int signal;
};
void end_if_interrupted();

}  // namespace modelc::driver
