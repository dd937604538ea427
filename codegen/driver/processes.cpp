// Child processes and temporary folders.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/driver/host_compiler.h"
#include "codegen/driver/interrupts.h"

namespace modelc::driver {

namespace fs = std::filesystem;

namespace {

std::vector<char*> argument_pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> p;
  for (const std::string& a : arguments) p.push_back(const_cast<char*>(a.c_str()));
  p.push_back(nullptr);
  return p;
}

}  // namespace

Result<int> run_program(const std::vector<std::string>& arguments, std::string* output) {
  int pipe_ends[2] = {-1, -1};
  if (output && pipe2(pipe_ends, O_CLOEXEC) != 0)
    return Error{"process", std::string("cannot make a pipe: ") + std::strerror(errno), {}, ""};
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return Error{"process", std::string("cannot make a pipe: ") + std::strerror(errno), {}, ""};
  std::vector<char*> argv = argument_pointers(arguments);
  const pid_t child = fork();
  if (child < 0) return Error{"process", std::string("cannot start a process: ") + std::strerror(errno), {}, ""};
  if (child == 0) {
    if (output) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      dup2(pipe_ends[1], STDERR_FILENO);
    }
    execvp(argv[0], argv.data());
    const int error = errno;
    const ssize_t ignored = write(failure[1], &error, sizeof error);
    static_cast<void>(ignored);
    _exit(127);
  }
  close(failure[1]);
  // A signal to this process alone ends the child too; from a terminal it has come to both.
  const auto again = [child] {
    if (errno != EINTR) return false;
    if (const int signal = interrupted()) kill(child, signal);
    return true;
  };
  if (output) {
    close(pipe_ends[1]);
    char buffer[4096];
    ssize_t n;
    while ((n = read(pipe_ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && again()))
      if (n > 0 && output->size() < (4u << 20)) output->append(buffer, static_cast<std::size_t>(n));
    close(pipe_ends[0]);
  }
  int error = 0;
  ssize_t n;
  while ((n = read(failure[0], &error, sizeof error)) < 0 && again()) {}
  const bool failed = n == sizeof error;
  close(failure[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && again()) {}
  end_if_interrupted();
  if (failed) return Error{"process", "cannot run " + arguments[0] + ": " + std::strerror(error), {}, ""};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Error become_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = argument_pointers(arguments);
  execvp(argv[0], argv.data());
  return Error{"process", "cannot run " + arguments[0] + ": " + std::strerror(errno), {}, ""};
}

std::string temporary_parent() {
  const char* t = std::getenv("TMPDIR");
  return t && *t ? t : "/tmp";
}

Result<TemporaryFolder> TemporaryFolder::create(const std::string& parent, const std::string& prefix) {
  std::string path = (fs::path(parent) / (prefix + "XXXXXX")).string();
  if (!mkdtemp(path.data())) return Error{"cannot-write", "cannot make a folder in " + parent + ": " + std::strerror(errno), {}, ""};
  TemporaryFolder f;
  f.path_ = path;
  return f;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace modelc::driver
