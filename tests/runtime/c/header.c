/* The sizes of the structs as C sees them, for c_test.cpp to compare with C++'s. */
#include "runtime/c/modelc.h"

size_t size_in_c(int which);
size_t size_in_c(int which) {
  switch (which) {
    case 0: return sizeof(modelc_load_options);
    case 1: return sizeof(modelc_model_info);
    case 2: return sizeof(modelc_generate_options);
    case 3: return sizeof(modelc_generate_result);
    default: return 0;
  }
}
