#include <algorithm>
#include <optional>

#include "runtime/base/strings.h"
#include "runtime/chat/syntax.h"

namespace modelc::chat {

Node::~Node() {
  std::vector<NodePointer> left;
  const auto take = [&left](Node& node) {
    for (NodePointer& child : node.children) left.push_back(std::move(child));
    for (auto& argument : node.named) left.push_back(std::move(argument.second));
    node.children.clear();
    node.named.clear();
  };
  take(*this);
  while (!left.empty()) {
    const NodePointer node = std::move(left.back());
    left.pop_back();
    if (node) take(*node);
  }
}

namespace {

// Statements in statements and brackets in brackets.
constexpr int deepest = 100;

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& name) : tokens_(std::move(tokens)), name_(name) {}

  Result<NodePointer> run() {
    NodePointer body = statements({});
    if (error_) return std::move(*error_);
    return body;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_sign(std::string_view s) const { return now().kind == TokenKind::sign && now().text == s; }
  bool is_name(std::string_view s) const { return now().kind == TokenKind::name && now().text == s; }
  bool take_sign(std::string_view s) {
    if (!is_sign(s)) return false;
    next();
    return true;
  }
  bool take_name(std::string_view s) {
    if (!is_name(s)) return false;
    next();
    return true;
  }
  // After an error nothing is read any more: every loop ends at the end of the tokens.
  void fail(Place place, const std::string& message, std::string kind = "template-syntax", std::string help = {}) {
    if (error_) return;
    error_ = error_at(std::move(kind), name_, place, message, std::move(help));
    at_ = tokens_.size() - 1;
  }
  std::string found() const {
    switch (now().kind) {
      case TokenKind::text: return "text";
      case TokenKind::block_begin: return "`{%`";
      case TokenKind::block_end: return "`%}`";
      case TokenKind::value_begin: return "`{{`";
      case TokenKind::value_end: return "`}}`";
      case TokenKind::string: return "the string " + quote(now().text);
      case TokenKind::end: return "the end of the template";
      default: return "`" + printable(now().text) + "`";
    }
  }
  void expect_sign(std::string_view s) {
    if (!take_sign(s)) fail(now().place, "expected `" + std::string(s) + "`, found " + found());
  }
  void expect_block_end() {
    if (now().kind != TokenKind::block_end) return fail(now().place, "expected `%}`, found " + found());
    next();
  }
  std::string expect_name(const std::string& what) {
    if (now().kind != TokenKind::name) {
      fail(now().place, "expected " + what + ", found " + found());
      return {};
    }
    std::string text = now().text;
    next();
    return text;
  }
  NodePointer make(NodeKind kind, Place place, std::string name = {}) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->place = place;
    node->name = std::move(name);
    return node;
  }
  template <class... C> NodePointer make_with(NodeKind kind, Place place, std::string name, C... children) const {
    NodePointer node = make(kind, place, std::move(name));
    (node->children.push_back(std::move(children)), ...);
    return node;
  }
  struct Deeper {
    explicit Deeper(Parser& p) : parser(p) {
      if (++parser.depth_ > deepest) parser.fail(parser.now().place, "nested deeper than " + std::to_string(deepest), "template-limit");
    }
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };

  // Up to a block that begins with one of `ends`, whose name is the token that is read next; or to the end.
  NodePointer statements(std::initializer_list<std::string_view> ends) {
    const Deeper deeper(*this);
    const Place begin = now().place;
    NodePointer body = make(NodeKind::sequence, begin);
    while (!error_) {
      if (now().kind == TokenKind::text) {
        body->children.push_back(make(NodeKind::text, now().place, now().text));
        next();
      } else if (now().kind == TokenKind::value_begin) {
        const Place place = now().place;
        next();
        body->children.push_back(make_with(NodeKind::output, place, "", tuple_expression(true)));
        if (now().kind != TokenKind::value_end) fail(now().place, "expected `}}`, found " + found());
        else next();
      } else if (now().kind == TokenKind::block_begin) {
        next();
        if (now().kind == TokenKind::name && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return body;
        statement(*body);
      } else {
        if (ends.size() > 0) fail(block_, "the block is not ended: expected `" + std::string(*(ends.end() - 1)) + "`");
        return body;
      }
    }
    return body;
  }

  void statement(Node& body) {
    const Place place = now().place;
    const std::string word = expect_name("the name of a block");
    if (error_) return;
    const Place outer = block_;
    block_ = place;
    if (word == "if") {
      body.children.push_back(if_statement(place));
    } else if (word == "for") {
      body.children.push_back(for_statement(place));
    } else if (word == "set") {
      body.children.push_back(set_statement(place));
    } else if (word == "macro") {
      const std::string name = expect_name("the name of the macro");
      body.children.push_back(macro_rest(place, name, "endmacro"));
    } else if (word == "call") {
      call_statement(body, place);
    } else if (word == "filter") {
      NodePointer chain = filters(make(NodeKind::captured, place), true);
      expect_block_end();
      NodePointer inside = statements({"endfilter"});
      end_block();
      body.children.push_back(make_with(NodeKind::filter_block, place, "", std::move(chain), std::move(inside)));
    } else if (word == "with") {
      NodePointer with = make_with(NodeKind::with, place, "", NodePointer());
      while (!error_ && now().kind != TokenKind::block_end) {
        if (with->children.size() > 1) expect_sign(",");
        with->children.push_back(target());
        expect_sign("=");
        with->children.push_back(expression());
      }
      expect_block_end();
      with->children[0] = statements({"endwith"});
      end_block();
      body.children.push_back(std::move(with));
    } else if (word == "generation") {  // marks what the assistant says; the text is the same
      expect_block_end();
      body.children.push_back(statements({"endgeneration"}));
      end_block();
    } else if (word == "break" || word == "continue") {
      if (loops_ == 0) fail(place, "`" + word + "` stands in no loop");
      expect_block_end();
      body.children.push_back(make(word == "break" ? NodeKind::break_ : NodeKind::continue_, place));
    } else if (word.starts_with("end") || word == "else" || word == "elif") {
      fail(place, "`" + word + "` ends or continues nothing");
    } else {
      fail(place, "the block `" + printable(word) + "` is not carried out", "template-unsupported",
           "carried out here: if, for, set, macro, call, filter, with, generation, break, continue, raw");
    }
    block_ = outer;
  }
  void end_block() {
    next();
    expect_block_end();
  }

  NodePointer if_statement(Place place) {
    NodePointer condition = tuple_expression(true);
    expect_block_end();
    NodePointer then = statements({"elif", "else", "endif"}), otherwise;
    if (is_name("elif")) {
      const Deeper deeper(*this);
      const Place again = now().place;
      next();
      otherwise = if_statement(again);
      return make_with(NodeKind::if_, place, "", std::move(condition), std::move(then), std::move(otherwise));
    }
    if (take_name("else")) {
      expect_block_end();
      otherwise = statements({"endif"});
    }
    end_block();
    return make_with(NodeKind::if_, place, "", std::move(condition), std::move(then), std::move(otherwise));
  }

  NodePointer for_statement(Place place) {
    NodePointer to = targets();
    if (!take_name("in")) fail(now().place, "expected `in`, found " + found());
    NodePointer from = tuple_expression(false), condition, otherwise;
    if (take_name("if")) condition = expression();
    const bool recursive = take_name("recursive");
    expect_block_end();
    ++loops_;
    NodePointer body = statements({"else", "endfor"});
    --loops_;
    if (take_name("else")) {
      expect_block_end();
      otherwise = statements({"endfor"});
    }
    end_block();
    return make_with(NodeKind::for_, place, recursive ? "recursive" : "", std::move(to), std::move(from), std::move(condition),
                     std::move(body), std::move(otherwise));
  }

  NodePointer set_statement(Place place) {
    NodePointer to = targets();
    if (take_sign("=")) {
      NodePointer value = tuple_expression(true);
      expect_block_end();
      return make_with(NodeKind::set, place, "", std::move(to), std::move(value));
    }
    NodePointer chain;
    if (is_sign("|")) chain = filters(make(NodeKind::captured, place));
    expect_block_end();
    NodePointer body = statements({"endset"});
    end_block();
    return make_with(NodeKind::set_block, place, "", std::move(to), std::move(body), std::move(chain));
  }

  // "(a, b=1) %} body": what macros and call blocks have in common.
  NodePointer macro_rest(Place place, const std::string& name, std::string_view end) {
    NodePointer macro = make(NodeKind::macro, place, name);
    if (take_sign("(")) {
      while (!error_ && !is_sign(")")) {
        if (!macro->named.empty()) expect_sign(",");
        std::string parameter = expect_name("the name of a parameter");
        NodePointer otherwise;
        if (take_sign("=")) otherwise = expression();
        macro->named.emplace_back(std::move(parameter), std::move(otherwise));
      }
      expect_sign(")");
    }
    if (end == "endcall") return macro;
    expect_block_end();
    const int loops = std::exchange(loops_, 0);
    macro->children.push_back(statements({end}));
    loops_ = loops;
    end_block();
    return macro;
  }

  void call_statement(Node& body, Place place) {
    NodePointer macro = macro_rest(place, "caller", "endcall");
    NodePointer call = expression();
    if (!error_ && call->kind != NodeKind::call) fail(place, "expected a call");
    expect_block_end();
    const int loops = std::exchange(loops_, 0);
    macro->children.push_back(statements({"endcall"}));
    loops_ = loops;
    end_block();
    body.children.push_back(make_with(NodeKind::call_block, place, "", std::move(call), std::move(macro)));
  }

  // A name, or ns.name.
  NodePointer target() {
    const Place place = now().place;
    if (take_sign("(")) {
      NodePointer inner = targets();
      expect_sign(")");
      return inner;
    }
    const std::string name = expect_name("a name to set");
    for (const char* taken : {"true", "false", "none", "True", "False", "None"})
      if (name == taken) fail(place, "`" + name + "` cannot be set");
    NodePointer node = make(NodeKind::variable, place, name);
    if (!take_sign(".")) return node;
    return make_with(NodeKind::attribute, place, expect_name("a name to set"), std::move(node));
  }
  NodePointer targets() {
    const Deeper deeper(*this);
    const Place place = now().place;
    NodePointer first = target();
    if (!is_sign(",")) return first;
    NodePointer all = make_with(NodeKind::tuple, place, "", std::move(first));
    while (take_sign(",")) {
      if (is_name("in") || is_sign("=")) break;
      all->children.push_back(target());
    }
    return all;
  }

  bool ends_tuple() const {
    return now().kind == TokenKind::block_end || now().kind == TokenKind::value_end || now().kind == TokenKind::end || is_sign(")") ||
           is_name("recursive");
  }
  NodePointer tuple_expression(bool with_choice) {
    const Place place = now().place;
    NodePointer first = with_choice ? expression() : or_expression();
    if (!is_sign(",")) return first;
    NodePointer tuple = make_with(NodeKind::tuple, place, "", std::move(first));
    while (take_sign(",")) {
      if (ends_tuple()) break;
      tuple->children.push_back(with_choice ? expression() : or_expression());
    }
    return tuple;
  }

  NodePointer expression() {
    const Deeper deeper(*this);
    NodePointer value = or_expression();
    while (!error_ && is_name("if")) {
      const Place place = now().place;
      next();
      NodePointer condition = or_expression(), otherwise;
      if (take_name("else")) otherwise = expression();
      value = make_with(NodeKind::choice, place, "", std::move(condition), std::move(value), std::move(otherwise));
    }
    return value;
  }
  NodePointer or_expression() {
    NodePointer left = and_expression();
    while (!error_ && is_name("or")) {
      const Place place = now().place;
      next();
      left = make_with(NodeKind::or_, place, "", std::move(left), and_expression());
    }
    return left;
  }
  NodePointer and_expression() {
    NodePointer left = not_expression();
    while (!error_ && is_name("and")) {
      const Place place = now().place;
      next();
      left = make_with(NodeKind::and_, place, "", std::move(left), not_expression());
    }
    return left;
  }
  NodePointer not_expression() {
    if (!is_name("not")) return comparison();
    const Deeper deeper(*this);
    const Place place = now().place;
    next();
    return make_with(NodeKind::not_, place, "", not_expression());
  }
  NodePointer comparison() {
    const Place place = now().place;
    NodePointer left = sum();
    NodePointer all;
    while (!error_) {
      std::string sign;
      for (const char* s : {"==", "!=", "<=", ">=", "<", ">"})
        if (is_sign(s)) sign = s;
      if (is_name("in")) sign = "in";
      if (is_name("not") && after().kind == TokenKind::name && after().text == "in") {
        sign = "not in";
        next();
      }
      if (sign.empty()) break;
      next();
      if (!all) all = make_with(NodeKind::compare, place, "", std::move(left));
      all->names.push_back(sign);
      all->children.push_back(sum());
    }
    return all ? std::move(all) : std::move(left);
  }
  NodePointer sum() {
    NodePointer left = joined();
    while (!error_ && (is_sign("+") || is_sign("-"))) left = binary(std::move(left), &Parser::joined);
    return left;
  }
  NodePointer joined() {
    NodePointer left = product();
    while (!error_ && is_sign("~")) left = binary(std::move(left), &Parser::product);
    return left;
  }
  NodePointer product() {
    NodePointer left = power();
    while (!error_ && (is_sign("*") || is_sign("/") || is_sign("//") || is_sign("%"))) left = binary(std::move(left), &Parser::power);
    return left;
  }
  NodePointer power() {
    NodePointer left = unary(true);
    while (!error_ && is_sign("**")) {
      const Place place = now().place;
      next();
      left = make_with(NodeKind::binary, place, "**", std::move(left), unary(true));
    }
    return left;
  }
  NodePointer binary(NodePointer left, NodePointer (Parser::*right)()) {
    const Place place = now().place;
    const std::string sign = now().text;
    next();
    return make_with(NodeKind::binary, place, sign, std::move(left), (this->*right)());
  }

  NodePointer unary(bool with_filters) {
    const Deeper deeper(*this);
    const Place place = now().place;
    NodePointer node;
    if (is_sign("-") || is_sign("+")) {
      const NodeKind kind = is_sign("-") ? NodeKind::negative : NodeKind::positive;
      next();
      node = make_with(kind, place, "", unary(false));
    } else {
      node = primary();
    }
    node = postfix(std::move(node));
    return with_filters ? filters(std::move(node)) : std::move(node);
  }

  NodePointer primary() {
    const Token token = now();
    NodePointer node = make(NodeKind::constant, token.place);
    switch (token.kind) {
      case TokenKind::name:
        next();
        if (token.text == "true" || token.text == "True") {
          node->value = true;
        } else if (token.text == "false" || token.text == "False") {
          node->value = false;
        } else if (token.text == "none" || token.text == "None") {
          node->value = None{};
        } else {
          node->kind = NodeKind::variable;
          node->name = token.text;
        }
        return node;
      case TokenKind::string: {
        std::string text;
        for (; now().kind == TokenKind::string; next()) text += now().text;
        node->value = std::move(text);
        return node;
      }
      case TokenKind::whole: {
        next();
        const auto value = parse_int(token.text);
        if (!value) fail(token.place, "the number " + token.text + " is too large");
        node->value = value.value_or(0);
        return node;
      }
      case TokenKind::number: {
        next();
        const auto value = parse_double(token.text);
        if (!value) fail(token.place, "the number " + token.text + " is not understood");
        node->value = value.value_or(0);
        return node;
      }
      case TokenKind::sign: break;
      default: fail(token.place, "expected an expression, found " + found()); return node;
    }
    if (take_sign("(")) {
      if (take_sign(")")) {
        node->kind = NodeKind::tuple;
        return node;
      }
      NodePointer inner = tuple_expression(true);
      expect_sign(")");
      return inner;
    }
    if (take_sign("[")) {
      node->kind = NodeKind::list;
      while (!error_ && !is_sign("]")) {
        if (!node->children.empty()) expect_sign(",");
        if (is_sign("]")) break;
        node->children.push_back(expression());
      }
      expect_sign("]");
      return node;
    }
    if (take_sign("{")) {
      node->kind = NodeKind::dict;
      while (!error_ && !is_sign("}")) {
        if (!node->children.empty()) expect_sign(",");
        if (is_sign("}")) break;
        node->children.push_back(expression());
        expect_sign(":");
        node->children.push_back(expression());
      }
      expect_sign("}");
      return node;
    }
    fail(token.place, "expected an expression, found " + found());
    return node;
  }

  NodePointer postfix(NodePointer node) {
    for (int length = 0; !error_; ++length) {
      const Place place = now().place;
      // A chain is a tree as deep as it is long.
      if (length > 10 * deepest) fail(place, "a chain of more than " + std::to_string(10 * deepest) + " parts", "template-limit");
      if (take_sign(".")) {
        if (now().kind == TokenKind::whole) {
          NodePointer key = make(NodeKind::constant, now().place);
          key->value = parse_int(now().text).value_or(0);
          next();
          node = make_with(NodeKind::item, place, "", std::move(node), std::move(key));
        } else {
          node = make_with(NodeKind::attribute, place, expect_name("a name"), std::move(node));
        }
      } else if (take_sign("[")) {
        node = subscript(std::move(node), place);
      } else if (is_sign("(")) {
        NodePointer call = make_with(NodeKind::call, place, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        break;
      }
    }
    return node;
  }

  NodePointer subscript(NodePointer node, Place place) {
    NodePointer parts[3];
    int part = 0;
    bool slice = false;
    while (!error_ && !is_sign("]")) {
      if (take_sign(":")) {
        slice = true;
        if (++part > 2) fail(now().place, "a slice has at most three parts");
        continue;
      }
      if (part > 2 || parts[part]) {
        fail(now().place, "expected `]`, found " + found());
        break;
      }
      parts[part] = expression();
    }
    expect_sign("]");
    if (slice) return make_with(NodeKind::slice, place, "", std::move(node), std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
    if (!parts[0]) fail(place, "expected an expression in `[]`");
    return make_with(NodeKind::item, place, "", std::move(node), std::move(parts[0]));
  }

  void arguments(Node& call) {
    expect_sign("(");
    bool first = true;
    while (!error_ && !is_sign(")")) {
      if (!first) expect_sign(",");
      first = false;
      if (is_sign(")")) break;
      if (is_sign("*") || is_sign("**"))
        return fail(now().place, "arguments from a list or mapping are not carried out", "template-unsupported");
      if (now().kind == TokenKind::name && after().kind == TokenKind::sign && after().text == "=") {
        std::string name = now().text;
        next();
        next();
        call.named.emplace_back(std::move(name), expression());
      } else {
        if (!call.named.empty()) fail(now().place, "an argument without a name after one with a name");
        call.children.push_back(expression());
      }
    }
    expect_sign(")");
  }

  // | name(..) and `is name ..` after a value. `begins`: the first `|` is left out, as in {% filter upper %}.
  NodePointer filters(NodePointer node, bool begins = false) {
    for (int length = 0; !error_; ++length) {
      const Place place = now().place;
      if (length > 10 * deepest) fail(place, "a chain of more than " + std::to_string(10 * deepest) + " parts", "template-limit");
      if (begins || take_sign("|")) {
        begins = false;
        std::string name = expect_name("the name of a filter");
        while (take_sign(".")) name += "." + expect_name("the name of a filter");
        node = make_with(NodeKind::filter, place, std::move(name), std::move(node));
        if (is_sign("(")) arguments(*node);
      } else if (is_name("is")) {
        next();
        const bool negated = take_name("not");
        std::string name = expect_name("the name of a test");
        node = make_with(NodeKind::test, place, std::move(name), std::move(node));
        const bool argument = now().kind == TokenKind::string || now().kind == TokenKind::whole || now().kind == TokenKind::number ||
                              is_sign("[") || is_sign("{") ||
                              (now().kind == TokenKind::name && !is_name("else") && !is_name("or") && !is_name("and") && !is_name("is") &&
                               !is_name("if") && !is_name("in") && !is_name("not") && !is_name("recursive"));
        if (is_sign("(")) arguments(*node);
        else if (argument) node->children.push_back(postfix(primary()));
        if (negated) node = make_with(NodeKind::not_, place, "", std::move(node));
      } else if (is_sign("(")) {
        NodePointer call = make_with(NodeKind::call, place, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        break;
      }
    }
    return node;
  }

  std::vector<Token> tokens_;
  const std::string& name_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  Place block_;  // of the statement being read
  std::optional<Error> error_;
};

}  // namespace

Result<NodePointer> parse_template(std::string_view source, const std::string& name) {
  Result<std::vector<Token>> tokens = tokenize(source, name);
  if (!tokens) return std::move(tokens.error());
  return Parser(std::move(*tokens), name).run();
}

}  // namespace modelc::chat
