#include <csignal>
#include <cstdio>
#include <exception>

#include "codegen/driver/commands.h"
#include "codegen/driver/interrupts.h"

int main(int argc, char** argv) {
  using namespace modelc::driver;
  try {
    Options options;
    if (const auto status = parse(argc, argv, options)) return *status;
    if (options.command == "check") return check_command(options);
    if (options.command == "build") return build_command(options);
    if (options.command == "test") return test_command(options);
    if (options.command == "inspect") return inspect_command(options);
    if (options.command == "convert") return convert_command(options);
    if (options.command == "fmt") return fmt_command(options);
    if (options.command == "flatten") return flatten_command(options);
    if (options.command == "dump") return dump_command(options);
    if (options.command == "explain") return explain_command(options);
    if (options.command == "devices") return devices_command(options);
    return run_command(options);
  } catch (const Interrupted& i) {
    std::fflush(stdout);
    std::signal(i.signal, SIG_DFL);
    std::raise(i.signal);
    return 128 + i.signal;
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n  help: this is a fault of modelc; please report it with the command line\n", e.what());
    return 3;
  }
}
