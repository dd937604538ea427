#include "runtime/cpu/kernels/table.h"

#define MODELC_JOIN_(a, b) a##b
#define MODELC_JOIN(a, b) MODELC_JOIN_(a, b)
#define MODELC_TEXT_(a) #a
#define MODELC_TEXT(a) MODELC_TEXT_(a)

namespace modelc::cpu {

const Kernels MODELC_JOIN(kernels_, MODELC_ISA) = {
    .isa = MODELC_TEXT(MODELC_ISA),
    .product_rows = MODELC_ISA::product_rows,
    .product_scratch = MODELC_ISA::product_scratch,
    .product = MODELC_ISA::product,
    .combine_scratch = MODELC_ISA::combine_scratch,
    .combine = MODELC_ISA::combine,
    .rounded_size = MODELC_ISA::rounded_size,
    .round = MODELC_ISA::round,
    .attend = MODELC_ISA::attend,
    .attend_join = MODELC_ISA::attend_join,
    .attend_finish = MODELC_ISA::attend_finish,
    .convert = MODELC_ISA::convert,
    .narrow = MODELC_ISA::narrow,
    .rms_norm = MODELC_ISA::rms_norm,
    .add_rms_norm = MODELC_ISA::add_rms_norm,
    .layer_norm = MODELC_ISA::layer_norm,
    .rope = MODELC_ISA::rope,
    .conv_row = MODELC_ISA::conv_row,
    .ssd_scan = MODELC_ISA::ssd_scan,
    .gated_delta = MODELC_ISA::gated_delta,
};

}  // namespace modelc::cpu
