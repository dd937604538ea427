// The names of types: which word, config, variant or interface a named type means.
#pragma once

#include <optional>

#include "frontend/sema/evaluator.h"

namespace modelc::sema {

struct TypeName {
  enum class Kind : std::uint8_t {
    failed,      // reported
    dim,
    integer,
    real,
    boolean,
    string,
    module,
    tensor,      // a dtype: f32
    batch,       // Batch, Sequences
    symbol,      // a config, a variant, an interface
  };
  Kind kind = Kind::failed;
  const Symbol* symbol = nullptr;
};

// Reports a name that is no type. `bool` without a shape is the value's type, with one the tensor's.
TypeName resolve_type(Evaluator& evaluator, const ast::NamedType& type, const Environment& env);

// A type that only configurations' values may have: no module, fn, interface, tensor. Reports the first that is not.
bool check_config_type(Evaluator& evaluator, const ast::Type& type, const Environment& env);

// A literal type, or a list or option of one literal: any other value would have been refused, so the field reads
// itself.
bool reads_itself(const ast::Type& type);

}  // namespace modelc::sema
