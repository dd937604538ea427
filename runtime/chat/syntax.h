// A template's text as a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/chat/value.h"

namespace modelc::chat {

struct Place {
  std::uint32_t line = 1, column = 1;
};

enum class TokenKind : std::uint8_t { text, block_begin, block_end, value_begin, value_end, name, string, whole, number, sign, end };
struct Token {
  TokenKind kind;
  std::string text;  // of a string: what it stands for
  Place place;
};
// The template cut into tokens, white space controlled as with trim_blocks and lstrip_blocks.
Result<std::vector<Token>> tokenize(std::string_view source, const std::string& name);

enum class NodeKind : std::uint8_t {
  // Statements. children: what is said here.
  text,        // name: the text
  output,      // [expression]
  sequence,    // statements
  if_,         // [condition, then, else or null]
  for_,        // [target, iterable, condition or null, body, else or null]; name "recursive" or empty
  set,         // [target, expression]
  set_block,   // [target, body, filter chain or null]: the chain ends in a `captured` node
  macro,       // [body]; name; named: parameters and their defaults (null: none)
  call_block,  // [call, macro]
  filter_block,  // [filter chain, body]
  with,        // [body, targets and values by turns]
  break_,
  continue_,
  // Expressions
  constant,    // value
  variable,    // name
  captured,    // what a block has printed
  list,
  tuple,
  dict,  // children; of a dict keys and values by turns
  attribute,   // [object]; name
  item,        // [object, key]
  slice,       // [object, begin, end, step], null where left out
  call,        // [function, arguments...]; named: arguments by name
  filter,      // [value, arguments...]; name, named
  test,        // [value, arguments...]; name, named
  not_,
  negative,
  positive,  // [operand]
  and_,
  or_,   // [left, right]
  binary,      // [left, right]; name: the sign
  compare,     // [operand, operand...]; names: the signs between them
  choice,      // [condition, then, else or null]
};

struct Node {
  NodeKind kind = {};
  Place place = {};
  std::string name;
  Value value;
  std::vector<std::unique_ptr<Node>> children;
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> named;
  std::vector<std::string> names;

  Node() = default;
  Node(Node&&) = default;
  Node& operator=(Node&&) = default;
  // Without recursion: a sum is a tree as deep as it is long.
  ~Node();
};
using NodePointer = std::unique_ptr<Node>;

Result<NodePointer> parse_template(std::string_view source, const std::string& name);

Error error_at(std::string kind, const std::string& name, Place place, const std::string& message, std::string help = {});

}  // namespace modelc::chat
