#include "frontend/sema/scope.h"

#include <utility>

#include "frontend/sema/value.h"

namespace modelc::sema {

// One definition, or one source with its names; `next` is what stood before.
struct Environment::Node {
  std::string name;
  Value value;
  source::Span span;
  const NameSource* source = nullptr;
  mutable std::shared_ptr<const Node> next;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  // A long chain is taken apart by a loop: a block may hold very many definitions.
  ~Node() {
    std::shared_ptr<const Node> rest = std::move(next);
    while (rest && rest.use_count() == 1) {
      std::shared_ptr<const Node> after = std::move(rest->next);
      rest = std::move(after);
    }
  }
};

Environment Environment::with(const NameSource& source) const {
  auto node = std::make_shared<Node>();
  node->source = &source;
  node->next = head_;
  Environment inner(file_);
  inner.head_ = std::move(node);
  return inner;
}

void Environment::define(std::string name, Value value, source::Span span) {
  auto node = std::make_shared<Node>();
  node->name = std::move(name);
  node->value = std::move(value);
  node->span = span;
  node->next = std::move(head_);
  head_ = std::move(node);
}

const Environment::Node* Environment::find(std::string_view name) const {
  for (const Node* node = head_.get(); node != nullptr; node = node->next.get()) {
    if (node->source != nullptr ? node->source->declared(name).has_value() : node->name == name) return node;
  }
  return nullptr;
}

std::optional<Value> Environment::lookup(std::string_view name, source::Span use) const {
  const Node* node = find(name);
  if (node == nullptr) return std::nullopt;
  return node->source != nullptr ? node->source->lookup(name, use) : node->value;
}

std::optional<Value> Environment::peek(std::string_view name) const {
  const Node* node = find(name);
  if (node == nullptr) return std::nullopt;
  if (node->source == nullptr) return node->value;
  auto value = node->source->peek(name);
  return value ? std::move(*value) : Value::error();
}

std::optional<source::Span> Environment::declared(std::string_view name) const {
  const Node* node = find(name);
  if (node == nullptr) return std::nullopt;
  return node->source != nullptr ? node->source->declared(name) : node->span;
}

bool Environment::is_local(std::string_view name) const {
  const Node* node = find(name);
  return node != nullptr && node->source == nullptr;
}

const NameSource* Environment::source_of(std::string_view name) const {
  const Node* node = find(name);
  return node != nullptr ? node->source : nullptr;
}

void Environment::names(std::vector<std::string>& into) const {
  for (const Node* node = head_.get(); node != nullptr; node = node->next.get()) {
    if (node->source != nullptr) {
      node->source->names(into);
    } else {
      into.push_back(node->name);
    }
  }
}

}  // namespace modelc::sema
