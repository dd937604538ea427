// `encode pattern as E`: an encoding's shapes and its value as the lists that runtime/checkpoint/coded.h reads, its parameters
// being numbers by then.
#include <algorithm>

#include "frontend/graph/members.h"
#include "frontend/sema/checkpoint_rules.h"
#include "runtime/abi/encoding.h"
#include "runtime/base/strings.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::join_path;

namespace {

class Lists {
 public:
  Lists(Evaluator& evaluator, const Environment& env, const ast::EncodingDecl& decl) : ev_(evaluator), env_(env) {
    for (const ast::Axis& axis : decl.shape.axes)
      if (axis.size)
        if (const auto* name = ast::try_as<ast::NameExpr>(axis.size)) sizes_.insert(name->name.text);
    for (const ast::EncodingPart& part : decl.parts) parts_.insert(part.name.text);
  }

  bool ok() const { return ok_; }
  bool is_size(const std::string& name) const { return sizes_.contains(name); }

  // A number of the sizes that `of` binds.
  std::string size(const ast::Expr& e) {
    std::set<std::string, std::less<>> mentioned;
    mentioned_names(e, mentioned);
    const bool open = std::any_of(sizes_.begin(), sizes_.end(), [&](const std::string& s) { return mentioned.contains(s); });
    if (!open) {
      const Value value = ev_.eval(e, env_);
      if (value.is(ValueKind::integer)) return std::to_string(value.as_int());
      return value.is_error() ? failed() : refuse(e, "a size is a whole number");
    }
    if (const auto* name = ast::try_as<ast::NameExpr>(e)) return name->name.text;
    if (const auto* b = ast::try_as<ast::BinaryExpr>(e)) {
      static constexpr std::pair<ast::BinaryOp, const char*> ops[] = {
          {ast::BinaryOp::add, "+"}, {ast::BinaryOp::sub, "-"}, {ast::BinaryOp::mul, "*"}, {ast::BinaryOp::div, "/"}};
      for (const auto& [op, word] : ops)
        if (op == b->op) return "(" + std::string(word) + " " + size(*b->left) + " " + size(*b->right) + ")";
    }
    if (const auto* call = ast::try_as<ast::CallExpr>(e)) {
      const auto* name = ast::try_as<ast::NameExpr>(call->callee);
      if (name != nullptr && name->name.text == "ceil_div" && call->args.items.size() == 2)
        return "(ceil_div " + size(*call->args.items[0].value) + " " + size(*call->args.items[1].value) + ")";
    }
    return refuse(e, "sizes of an encoding are made by + - * / and ceil_div");
  }

  std::string value(const ast::Expr& e) {
    switch (e.kind) {
      case ast::ExprKind::literal: {
        const auto& l = ast::as<ast::LiteralExpr>(e).value;
        if (l.kind == ast::LiteralKind::integer) return std::to_string(l.integer);
        if (l.kind == ast::LiteralKind::floating) return shortest(l.floating);
        break;
      }
      case ast::ExprKind::name: {
        const std::string& name = ast::as<ast::NameExpr>(e).name.text;
        if (parts_.contains(name) || sizes_.contains(name)) return name;
        const Value v = ev_.eval(e, env_);
        if (v.is_number()) return shortest(v.as_real());
        if (v.is_error()) return failed();
        break;
      }
      case ast::ExprKind::cast: {
        const auto& cast = ast::as<ast::CastExpr>(e);
        if (cast.type.dtype && cast.type.dtype->text == "f32" && !cast.type.shape) return "(f32 " + value(*cast.operand) + ")";
        break;
      }
      case ast::ExprKind::binary: {
        const auto& b = ast::as<ast::BinaryExpr>(e);
        static constexpr std::pair<ast::BinaryOp, const char*> ops[] = {
            {ast::BinaryOp::add, "+"}, {ast::BinaryOp::sub, "-"}, {ast::BinaryOp::mul, "*"}, {ast::BinaryOp::div, "/"}};
        for (const auto& [op, word] : ops)
          if (op == b.op) return "(" + std::string(word) + " " + value(*b.left) + " " + value(*b.right) + ")";
        break;
      }
      case ast::ExprKind::index: {
        const auto& index = ast::as<ast::IndexExpr>(e);
        std::string list = "(slice " + value(*index.object);
        const std::size_t count = index.slices.size();
        bool fits = count > 0 && index.slices[0].kind == ast::SliceKind::ellipsis;
        for (std::size_t i = 1; i < count && fits; ++i) {
          const ast::Slice& s = index.slices[i];
          if (s.kind == ast::SliceKind::whole) continue;
          fits = s.kind == ast::SliceKind::range && s.low && s.high && !s.step;
          if (fits) list += " -" + std::to_string(count - i) + " " + size(*s.low) + " " + size(*s.high);
        }
        if (fits) return list + ")";
        break;
      }
      case ast::ExprKind::call: return call(ast::as<ast::CallExpr>(e));
      default: break;
    }
    return refuse(
        e, "an encoding's value is made by + - * /, `as f32`, slices [..., a..b], repeat, flatten, unflatten, nibbles, e2m1 and exp2");
  }

 private:
  std::string failed() {
    ok_ = false;
    return "0";
  }
  std::string refuse(const ast::Expr& e, const std::string& what) {
    if (ok_) ev_.sink().error(code::not_carried_out, e.span, "this is not carried out in an encoding yet").note(what);
    return failed();
  }
  // A whole number that is known, as an axis.
  std::optional<std::int64_t> known(const ast::Expr& e) {
    const Value v = ev_.eval(e, env_);
    if (v.is(ValueKind::integer)) return v.as_int();
    return std::nullopt;
  }

  std::string call(const ast::CallExpr& e) {
    const auto* callee = ast::try_as<ast::NameExpr>(e.callee);
    const std::string name = callee != nullptr ? callee->name.text : "";
    const auto& args = e.args.items;
    if ((name == "e2m1" || name == "nibbles" || name == "exp2") && args.size() == 1) return "(" + name + " " + value(*args[0].value) + ")";
    if (name == "repeat" && args.size() == 3) {
      const auto axis = known(*args[2].value);
      if (axis && *axis < 0) return "(repeat " + value(*args[0].value) + " " + size(*args[1].value) + " " + std::to_string(*axis) + ")";
    }
    if (name == "flatten" && args.size() == 3) {
      const auto from = known(*args[1].value), to = known(*args[2].value);
      if (from && to && *to == -1 && *from < -1) return "(shape " + value(*args[0].value) + " " + std::to_string(-*from) + " -1)";
    }
    if (name == "unflatten" && args.size() == 3) {
      const auto axis = known(*args[1].value);
      const auto* sizes = ast::try_as<ast::ListExpr>(args[2].value);
      if (axis && *axis == -1 && sizes != nullptr) {
        std::string list = "(shape " + value(*args[0].value) + " 1";
        for (const auto& s : sizes->items) list += " " + size(*s);
        return list + ")";
      }
    }
    return refuse(e, "axes of an encoding's value count from the end, and flatten and unflatten are of the last ones");
  }

  Evaluator& ev_;
  const Environment& env_;
  std::set<std::string> sizes_, parts_;
  bool ok_ = true;
};

}  // namespace

bool CheckpointRulesReader::encoding_of(Block&, const Recipe& recipe, source::Span, graph::CheckpointRules::Encode& to) {
  const auto& decl = ast::as<ast::EncodingDecl>(*recipe.symbol->decl);
  Environment env(recipe.symbol->file);
  std::string arguments;
  for (const auto& [name, value] : recipe.arguments) {
    env.define(name, value, decl.name.span);
    arguments += (arguments.empty() ? "" : ", ") + show(value);
  }
  to.name = decl.name.text + "(" + arguments + ")";
  Lists lists(in_.evaluator(), env, decl);
  for (std::size_t i = 0; i < decl.shape.axes.size(); ++i) {
    const ast::Axis& axis = decl.shape.axes[i];
    const auto* name = axis.size ? ast::try_as<ast::NameExpr>(axis.size) : nullptr;
    if ((axis.ellipsis && i > 0) || (!axis.ellipsis && name == nullptr)) {
      in_.sink().error(code::not_carried_out, axis.span,
                       "an encoding is of named axes, the last ones of a tensor: others are not carried out yet");
      return false;
    }
    to.axes += (to.axes.empty() ? "" : " ") + (axis.ellipsis ? std::string("...") : name->name.text);
  }
  for (const ast::EncodingPart& part : decl.parts) {
    const auto* type = ast::try_as<ast::NamedType>(part.type);
    const std::string dtype = type != nullptr && type->path.parts.size() == 1 ? type->path.parts[0].text : "";
    if (type == nullptr || !type->shape || !encoding_from_name(dtype)) {
      in_.sink().error(code::bad_rule, part.span,
                       "a part is a stored type and a shape, as u8[..., n], not `" + in_.source_text(part.type->span) + "`");
      return false;
    }
    std::string shape;
    for (const ast::Axis& axis : type->shape->axes)
      shape += (shape.empty() ? "" : " ") + (axis.ellipsis ? std::string("...") : lists.size(*axis.size));
    to.parts.push_back({part.name.text, part.at.value, dtype, "(" + shape + ")"});
  }
  to.value = lists.value(*decl.value);
  return lists.ok();
}

void CheckpointRulesReader::read_encode(Block& block, const ast::EncodeRule& rule) {
  const std::string key = "encode " + pattern_text(rule.tensor);
  if (!take(key)) return;
  const auto only = when(block, rule.when, {&rule.tensor});
  const Value encoding = in_.evaluator().eval(*rule.encoding, block.info.instance->environment(block.level));
  if (!only || encoding.is_error()) return;
  if (!encoding.is(ValueKind::encoding)) {
    in_.sink().error(code::bad_rule, rule.encoding->span,
                     "`encode … as` takes an encoding, as fp8_block(128, 128) or plain, not " + kind_name(encoding));
    return;
  }
  if (encoding.as_recipe().symbol == nullptr) return;  // plain
  graph::CheckpointRules::Encode out;
  if (!encoding_of(block, encoding.as_recipe(), rule.span, out)) return;
  out.pattern = join_path(block.file_path, pattern_text(rule.tensor));
  out.only = *only;
  rules_.encodes.push_back(std::move(out));
}

}  // namespace modelc::sema
