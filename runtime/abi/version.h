// The form of generated code, raised when what generated code says to the runtime changes. Generated code holds
//   static_assert(modelc::generated_code_version == 3, "…: build it again with the modelc of this runtime");
#pragma once

namespace modelc {

inline constexpr int generated_code_version = 3;

}  // namespace modelc
