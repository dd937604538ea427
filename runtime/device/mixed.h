// Lists of modules that are not all of one type: a stack with a few layers of another kind.
#pragma once

#include <initializer_list>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device/module.h"

namespace modelc {

namespace detail {
template <class V, std::size_t I = 0> void emplace_kind(V& v, std::size_t kind) {
  if constexpr (I < std::variant_size_v<V>) {
    if (kind == I) v.template emplace<I>();
    else emplace_kind<V, I + 1>(v, kind);
  }
}
}  // namespace detail

// One element a number: the type with that place in Types.
template <class... Types> std::vector<std::variant<Types...>> mixed(std::initializer_list<std::size_t> kinds) {
  std::vector<std::variant<Types...>> list(kinds.size());
  std::size_t i = 0;
  for (const std::size_t kind : kinds) detail::emplace_kind(list[i++], kind);
  return list;
}

template <class... Types> Module& module_of(std::variant<Types...>& v) {
  return std::visit([](auto& m) -> Module& { return m; }, v);
}

}  // namespace modelc
