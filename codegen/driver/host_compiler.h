// Compiles generated C++ into a program with the host's compiler, and keeps it: the next run of the same model starts at once.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/emit.h"
#include "runtime/base/result.h"

namespace modelc::driver {

// The path of the program that the files make (a main is among them). It lies in the cache
// (MODELC_CACHE, else XDG_CACHE_HOME/modelc, else ~/.cache/modelc, else a folder of the user's in the temporary one) under
// a name made of all that enters: the files' text, the compiler and its version, the flags, the runtime library.
// Kinds of errors: "no-compiler", "no-runtime", "compile", "cannot-write".
Result<std::string> compile_program(const std::vector<emit::File>& files);

// A folder that is removed with all that it holds when this goes.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(const std::string& parent, const std::string& prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

// Where things that last shorter than the cache may lie.
std::string temporary_parent();

// Runs a program and waits; its exit status, or 128 + the signal that ended it. Its output is collected when `output` is given.
// Where an Interruptible lives, a signal to this process ends the program too, and then Interrupted is thrown.
Result<int> run_program(const std::vector<std::string>& arguments, std::string* output = nullptr);
// Becomes the program; returns only when that failed.
Error become_program(const std::vector<std::string>& arguments);

}  // namespace modelc::driver
