// What the kernels' files of one instruction set define, gathered into its table by table.cpp.
#pragma once

#include "runtime/cpu/kernels.h"

namespace modelc::cpu::MODELC_ISA {

using std::int64_t;

// product.cpp
int product_rows();
int64_t product_scratch(int64_t m, int64_t n, int64_t k);
void product(const ProductArgs& args);
// combine.cpp
int64_t combine_scratch();
void combine(const CombineArgs& args);
// rounded.cpp
std::int64_t rounded_size(int64_t k);
void round(const float* x, int64_t k, std::byte* to);
int64_t rounded_scratch(int64_t m, int64_t k);
void rounded_product(const ProductArgs& args);
// attend.cpp
void attend(const AttendChunk& chunk);
void attend_join(float* max, float* sum, float* acc, float other_max, float other_sum, const float* other_acc, int64_t dv);
void attend_finish(float max, float sum, const float* acc, const float* sink, int64_t dv, float* out);
// rows.cpp
void convert(Stored encoding, const std::byte* from, int64_t n, float scale, float* to);
void narrow(Stored as, const float* from, int64_t n, std::uint16_t* to);
void rms_norm(const float* x, const float* w, float eps, float offset, int64_t n, float* out);
void add_rms_norm(const float* x, const float* y, const float* w, float eps, float offset, int64_t n, float* sum, float* out);
void layer_norm(const float* x, const float* w, const float* b, float eps, int64_t n, float* out);
void rope(const float* x, const float* cos, const float* sin, int64_t heads, int64_t d, int64_t half, bool adjacent, float* out);
// recurrence.cpp
void conv_row(const float* const* rows, const float* w, int64_t w_stride, const float* bias, int64_t k, int64_t c, float* out);
void ssd_scan(const SsdPiece& piece);
void gated_delta(const DeltaPiece& piece);

}  // namespace modelc::cpu::MODELC_ISA
