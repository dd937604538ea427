// The main of a generated binary: everything that a program does with a model whose class it does not know.
//
//   int main(int argc, char** argv) { return modelc::stock_main(argc, argv, llama::llama_factory); }
#pragma once

#include "runtime/device/model.h"

namespace modelc {

// Exit status: 0 success, 1 the input is wrong or a comparison failed, 2 the call is wrong, 3 an internal error.
int stock_main(int argc, const char* const* argv, const ModelFactory& factory);

}  // namespace modelc
