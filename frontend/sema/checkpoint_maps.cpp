// Rules that say which tensors make a weight: `file = model via …`, `weight via …`.
#include <algorithm>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/sema/checkpoint_rules.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/tensor_pattern.h"
#include "runtime/checkpoint/transform.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::join_path;

namespace {

struct Signature {
  TransformKind kind;
  std::size_t least, most;
};
constexpr Signature signatures[] = {
    {TransformKind::transpose, 2, 2},
    {TransformKind::reshape, 1, 1},
    {TransformKind::stack, 1, 1},
    {TransformKind::split, 1, 1},
    {TransformKind::concat, 2, 2},
    {TransformKind::unzip, 1, 1},
    {TransformKind::deinterleave_rope_rows, 1, 2},
    {TransformKind::offset, 1, 1},
    {TransformKind::log_negated, 0, 0},
    {TransformKind::cast, 1, 1},
};

bool has_kind(const std::vector<ast::Call>& via, TransformKind kind) {
  return std::any_of(via.begin(), via.end(), [&](const ast::Call& c) { return c.name.text == name(kind); });
}

}  // namespace

std::optional<std::string> CheckpointRulesReader::via_text(Block& block, const std::vector<ast::Call>& via) {
  const Environment env = block.info.instance->environment(block.level);
  std::string text;
  for (const ast::Call& call : via) {
    const auto* it =
        std::find_if(std::begin(signatures), std::end(signatures), [&](const Signature& s) { return name(s.kind) == call.name.text; });
    if (it == std::end(signatures)) {
      std::vector<std::string> names;
      for (const Signature& s : signatures) names.emplace_back(name(s.kind));
      const std::string near = diag::did_you_mean(call.name.text, names);
      in_.sink()
          .error(code::bad_rule, call.name.span, "there is no transform `" + call.name.text + "`")
          .help(near.empty() ? "there are " + listed(names, names.size()) : near);
      return std::nullopt;
    }
    const std::size_t given = call.args ? call.args->items.size() : 0;
    if (given < it->least || given > it->most) {
      in_.sink().error(code::bad_rule, call.span,
                       "`" + call.name.text + "` takes " + counted(it->least, "argument") +
                           (it->most > it->least ? " or " + std::to_string(it->most) : "") + ", not " + std::to_string(given));
      return std::nullopt;
    }
    std::string arguments;
    for (const ast::Arg& arg : call.args->items) {
      std::string one;
      const auto wrong = [&](const std::string& wanted) {
        in_.sink().error(code::bad_rule, arg.span,
                         "`" + call.name.text + "` takes " + wanted + " here, not `" + in_.source_text(arg.value->span) + "`");
      };
      const auto* word = ast::try_as<ast::NameExpr>(arg.value);
      if (it->kind == TransformKind::stack || it->kind == TransformKind::cast) {
        if (word == nullptr || (it->kind == TransformKind::cast && !dtype_from_name(word->name.text))) {
          wrong(it->kind == TransformKind::stack ? "the name of an index of the file's pattern" : "an element type");
          return std::nullopt;
        }
        one = word->name.text;
      } else {
        const Value value = in_.evaluator().eval(*arg.value, env);
        if (value.is_error()) return std::nullopt;
        const bool list = it->kind == TransformKind::reshape || (it->kind == TransformKind::concat && !arguments.empty());
        if (list) {
          bool numbers = value.is(ValueKind::list);
          std::vector<std::int64_t> sizes;
          if (numbers)
            for (const Value& v : value.items()) {
              numbers = numbers && v.is(ValueKind::integer) && v.as_int() >= 0;
              if (numbers) sizes.push_back(v.as_int());
            }
          if (!numbers) {
            wrong("a list of sizes");
            return std::nullopt;
          }
          one = shape_text(sizes);
        } else if (it->kind == TransformKind::offset && value.is_number()) {
          one = shortest(value.as_real());
        } else if (it->kind != TransformKind::offset && value.is(ValueKind::integer)) {
          one = std::to_string(value.as_int());
        } else {
          wrong(it->kind == TransformKind::offset ? "a number" : "a whole number");
          return std::nullopt;
        }
      }
      arguments += (arguments.empty() ? "" : ", ") + one;
    }
    const std::string step = call.name.text + "(" + arguments + ")";
    if (!parse_transforms(step)) {
      in_.sink().error(code::bad_rule, call.span, "`" + step + "` is no transform: counts are above 0");
      return std::nullopt;
    }
    text += (text.empty() ? "" : ", ") + step;
  }
  return text;
}

bool CheckpointRulesReader::check_shapes(Block& block, const std::vector<const ast::Tensor*>& model, const std::string& via,
                                         source::Span span) {
  const auto steps = parse_transforms(via);
  if (!steps || steps->empty()) return true;
  const NamesBelow& below = names(block.info);
  const auto shape_of = [&](const graph::WeightDecl& d) {
    TensorShape s;
    for (graph::DimId dim : d.type.shape) s.push_back(in_.module().dims.value(dim).value_or(-1));
    return s;
  };
  const TensorPattern first(pattern_text(*model[0]));
  std::set<std::string> seen;
  for (const auto& w : below.weights) {
    std::string rest;
    const auto captures = first.match_prefix(w.name, rest);
    if (!captures) continue;
    std::vector<TensorShape> shapes = {shape_of(*w.decl)};
    for (std::size_t i = 1; i < model.size(); ++i) {
      const auto mate = TensorPattern(pattern_text(*model[i])).fill(*captures);
      const std::string name = mate ? join_path(*mate, rest) : "";
      const auto at = std::find_if(below.weights.begin(), below.weights.end(), [&](const auto& o) { return o.name == name; });
      if (at == below.weights.end()) {
        in_.sink().error(code::bad_rule, model[i]->span,
                         "`" + w.name + "` has no partner `" + pattern_text(*model[i]) + "`: one tensor makes them all");
        return false;
      }
      shapes.push_back(shape_of(*at->decl));
    }
    std::string key;
    for (const TensorShape& s : shapes) key += shape_text(s);
    if (!seen.insert(key).second) continue;
    const auto plan = plan_transforms(*steps, shapes);
    if (plan) continue;
    in_.sink()
        .error(code::bad_rule, span,
               "the transforms do not make `" + w.name + "`, which is " + w.decl->shape_text +
                   (w.decl->shape_numbers.empty() ? "" : " = " + w.decl->shape_numbers))
        .note(plan.error().message)
        .help("transforms run from the file's tensor to the model's weight, left to right");
    return false;
  }
  return true;
}

void CheckpointRulesReader::add(Block& block, graph::CheckpointRules::Map map, source::Span span) {
  for (std::string& f : map.file) f = join_path(block.file_path, f);
  for (std::string& m : map.model) m = join_path(block.path, m);
  map.set = block.set;
  map.alternative = block.alternative;
  map.where = place(span);
  rules_.maps.push_back(std::move(map));
}

void CheckpointRulesReader::read_via(Block& block, const ast::ViaRule& rule) {
  const auto only = when(block, rule.when, {&rule.tensor});
  const Match there = target(block, rule.tensor);
  if (there == Match::none) check_target(block, rule.tensor);
  const auto via = via_text(block, rule.via);
  if (!only || !via || there != Match::present) return;
  for (TransformKind kind : {TransformKind::stack, TransformKind::split, TransformKind::concat, TransformKind::unzip})
    if (has_kind(rule.via, kind)) {
      in_.sink()
          .error(code::bad_rule, rule.span, "`" + std::string(name(kind)) + "` joins or cuts tensors, and the rule names none")
          .help("write which: `[a, b] = " + pattern_text(rule.tensor) + " via …`");
      return;
    }
  if (!take("via " + pattern_text(rule.tensor)) || !check_shapes(block, {&rule.tensor}, *via, rule.span)) return;
  add(block, {.file = {}, .model = {pattern_text(rule.tensor)}, .via = *via, .only = *only}, rule.span);
}

bool CheckpointRulesReader::read_const(Block& block, const ast::MapRule& rule) {
  const NamesBelow& below = names(block.info);
  const auto is_const = [&](const ast::Tensor& t) {
    return std::find(below.consts.begin(), below.consts.end(), pattern_text(t)) != below.consts.end();
  };
  const auto at = std::find_if(rule.model.items.begin(), rule.model.items.end(), is_const);
  if (at == rule.model.items.end()) return false;
  const auto bad = [&](source::Span span, const std::string& what, const std::string& help) {
    in_.sink().error(code::bad_rule, span, what).help(help);
    return true;
  };
  const std::string constant = pattern_text(*at);
  if (rule.model.items.size() > 1 || rule.file.items.size() > 1 || !rule.via.empty())
    return bad(rule.span, "`" + constant + "` is a const, which is written as it is to one tensor",
               "compute in the const what the file is to hold");
  const ast::Tensor& file = rule.file.items.front();
  const bool one = std::all_of(file.segs.begin(), file.segs.end(),
                               [](const ast::Seg& s) { return s.kind == ast::SegKind::name || s.kind == ast::SegKind::integer; });
  if (!one || file.quoted || !block.only.empty())
    return bad(one ? rule.span : file.span, "the const `" + constant + "` is one tensor, and the rule would write several",
               "name it in full, in a block of the model itself");
  // Asked for by the names of the language, which `at` may change.
  const std::string path = join_path(block.path, constant);
  const auto member = graph::find_member(in_.module(), in_.module().root, path);
  const graph::ConstDecl* decl = member ? graph::const_of(in_.module(), *member) : nullptr;
  if (decl == nullptr)
    return bad(at->span, "`" + constant + "` lies in a module that an `at` has put elsewhere",
               "a const of the model itself can be written");
  if (!is_float(decl->type.dtype))
    return bad(at->span, "`" + constant + "` is a const of whole numbers, and the file would hold f32", "declare it as f32");
  const auto only = when(block, rule.when, {});
  if (!only || !take("map " + constant)) return true;
  rules_.ignores.push_back({join_path(block.file_path, pattern_text(file)), {}, place(rule.span), path});
  return true;
}

void CheckpointRulesReader::read_map(Block& block, const ast::MapRule& rule) {
  if (read_const(block, rule)) return;
  std::vector<const ast::Tensor*> tensors, model;
  for (const ast::Tensor& t : rule.file.items) tensors.push_back(&t);
  for (const ast::Tensor& t : rule.model.items) {
    tensors.push_back(&t);
    model.push_back(&t);
  }
  const auto only = when(block, rule.when, tensors);
  bool known = true, present = true;
  for (const ast::Tensor* t : model) {
    known = check_target(block, *t) && known;
    present = present && known && target(block, *t) == Match::present;
  }
  const auto via = via_text(block, rule.via);
  if (!known || !present || !only || !via) return;          // on an absent weight it is void
  bool fresh = false;
  for (const ast::Tensor* t : model) fresh = take("map " + pattern_text(*t)) || fresh;
  if (!fresh) return;

  const auto bad = [&](source::Span span, const std::string& what, const std::string& help) {
    in_.sink().error(code::bad_rule, span, what).help(help);
  };
  if (model.size() > 1 && !has_kind(rule.via, TransformKind::split) && !has_kind(rule.via, TransformKind::unzip))
    return bad(rule.model.span, "one tensor becomes several weights only by a transform", "`via split(axis)` or `via unzip(axis)`");
  if (rule.file.items.size() > 1 && (!has_kind(rule.via, TransformKind::concat) || has_kind(rule.via, TransformKind::stack)))
    return bad(rule.file.span, "several tensors become one weight only by a transform",
               "`via concat(axis, [sizes])`; numbered ones by `{e} … via stack(e)`");

  // From the model's name follow the file's.
  const auto stands_in = [](const std::vector<ast::Tensor>& side, const ast::Seg& seg) {
    return std::all_of(side.begin(), side.end(), [&](const ast::Tensor& t) {
      return std::any_of(t.segs.begin(), t.segs.end(), [&](const ast::Seg& s) { return s.kind == seg.kind && s.text == seg.text; });
    });
  };
  std::set<std::string> stacked;
  for (const ast::Call& call : rule.via)
    if (call.name.text == name(TransformKind::stack)) stacked.insert(ast::as<ast::NameExpr>(*call.args->items[0].value).name.text);
  for (const ast::Tensor& t : rule.file.items)
    for (const ast::Seg& seg : t.segs) {
      if (seg.kind == ast::SegKind::star || seg.kind == ast::SegKind::double_star)
        return bad(seg.span, "`" + pattern_text(t) + "` cannot tell which name goes with which",
                   "give the part a name: `{i}` for an index, `{rest*}` for any number of components");
      if (seg.kind != ast::SegKind::index && seg.kind != ast::SegKind::rest) continue;
      if (seg.kind == ast::SegKind::index && stacked.erase(seg.text) > 0) continue;
      if (!stands_in(rule.model.items, seg))
        return bad(seg.span, "`{" + seg.text + "}` stands in the file's name alone: which of those tensors is the weight?",
                   seg.kind == ast::SegKind::index ? "all of them, on a new first axis, are `via stack(" + seg.text + ")`"
                                                   : "it stands in the model's name too");
    }
  if (!stacked.empty())
    return bad(rule.span, "`stack(" + *stacked.begin() + ")`: the file's name has no `{" + *stacked.begin() + "}`",
               "write the index where the number stands in the file's names");
  if (model.size() > 1)
    for (const ast::Tensor* t : model)
      for (const ast::Seg& seg : t->segs) {
        if (seg.kind == ast::SegKind::star || seg.kind == ast::SegKind::double_star || !stands_in(rule.model.items, seg)) {
          if (seg.kind == ast::SegKind::name || seg.kind == ast::SegKind::integer) continue;
          return bad(seg.span, "`" + pattern_text(*t) + "` cannot tell which weights come of one tensor",
                     "the same names in braces stand in each");
        }
      }
  if (!check_shapes(block, model, *via, rule.span)) return;
  graph::CheckpointRules::Map map{.file = {}, .model = {}, .via = *via, .only = *only};
  for (const ast::Tensor& t : rule.file.items) map.file.push_back(pattern_text(t));
  for (const ast::Tensor* t : model) map.model.push_back(pattern_text(*t));
  add(block, std::move(map), rule.span);
}

}  // namespace modelc::sema
