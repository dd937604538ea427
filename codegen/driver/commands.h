// One function a command; each gives the exit status.
#pragma once

#include <string>

#include "codegen/driver/options.h"

namespace modelc::driver {

int check_command(const Options&);
int build_command(const Options&);
int run_command(const Options&);                 // run, verify, bench, pack: the stock main of the compiled model
int test_command(const Options&);
int inspect_command(const Options&);
int fmt_command(const Options&);
int convert_command(const Options&);
int flatten_command(const Options&);
int dump_command(const Options&);
int explain_command(const Options&);
int devices_command(const Options&);
int version_command();

}  // namespace modelc::driver
