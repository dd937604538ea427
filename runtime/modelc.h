// All that generated code includes, and all that a program needs that uses a generated model.
#pragma once

#include "runtime/abi/dtype.h"
#include "runtime/base/result.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/open.h"
#include "runtime/device/batch.h"
#include "runtime/device/device.h"
#include "runtime/device/map.h"
#include "runtime/device/math.h"
#include "runtime/device/matrix.h"
#include "runtime/device/mixed.h"
#include "runtime/device/model.h"
#include "runtime/device/module.h"
#include "runtime/device/step.h"
#include "runtime/kv_cache/kv_cache.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

// Raised when generated code must be generated again. Generated code holds
//   static_assert(modelc::generated_code_version == 1, "…: build it again with the modelc of this runtime");
inline constexpr int generated_code_version = 1;

}  // namespace modelc
