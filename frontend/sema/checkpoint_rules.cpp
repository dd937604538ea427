#include "frontend/sema/checkpoint_rules.h"

#include <algorithm>
#include <set>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/sema/config.h"
#include "runtime/base/strings.h"
#include "runtime/checkpoint/tensor_pattern.h"

namespace modelc::sema {

namespace code = diag::code;
using graph::join_path;

std::string pattern_text(const ast::Tensor& tensor) { return tensor.text; }

// ---- names ----------------------------------------------------------------------------------------------------------

const NamesBelow& CheckpointRulesReader::names(ClassInfo& info) {
  if (const auto it = names_.find(&info); it != names_.end()) return it->second;
  NamesBelow out;
  const graph::Class& made = in_.class_of(info);
  const Instance& instance = *info.instance;
  for (std::size_t i = 0; i < instance.slots.size(); ++i) {
    const Slot& slot = instance.slots[i];
    const MemberDef& member = instance.def.members[i];
    if (member.kind != MemberKind::param && member.kind != MemberKind::child) continue;
    if (!slot.present || slot.failed) {
      const auto* param = ast::try_as<ast::ParamMember>(*member.item);
      const auto& at = param != nullptr ? param->at : ast::as<ast::ChildMember>(*member.item).at;
      out.absent.push_back(at && !at->self ? pattern_text(at->path) : member.name);
      continue;
    }
    if (member.kind == MemberKind::param) {
      const graph::WeightDecl& weight = made.weights[slot.index];
      out.weights.push_back({weight.path, &weight});
      continue;
    }
    const graph::ChildDecl& child = made.children[slot.index];
    if (slot.list) out.modules.push_back(child.path);
    for (std::size_t e = 0; e < slot.elements.size(); ++e) {
      const std::string path = slot.list ? join_path(child.path, std::to_string(e)) : child.path;
      const NamesBelow& below = names(*slot.elements[e]);
      out.modules.push_back(path);
      for (const auto& weight : below.weights) out.weights.push_back({join_path(path, weight.name), weight.decl});
      for (const std::string& module : below.modules) out.modules.push_back(join_path(path, module));
      for (const std::string& absent : below.absent) out.absent.push_back(join_path(path, absent));
    }
  }
  return names_[&info] = std::move(out);
}

// What a pattern on the model's side leads to: weights, or a module with all below it.
CheckpointRulesReader::Match CheckpointRulesReader::find(const NamesBelow& names, const ast::Tensor& tensor) {
  const TensorPattern pattern(pattern_text(tensor));
  for (const auto& weight : names.weights) {
    if (pattern.matches(weight.name)) return Match::present;
  }
  for (const std::string& module : names.modules) {
    if (pattern.matches(module)) return Match::present;
  }
  std::string rest;
  for (const std::string& absent : names.absent) {
    // Below an absent child the pattern may go on with any names.
    if (pattern.matches(absent) || TensorPattern(absent).match_prefix(pattern.text(), rest)) return Match::absent;
    const std::vector<std::string_view> have = split(absent, '.');
    const std::vector<std::string_view> want = split(pattern.text(), '.');
    if (want.size() < have.size()) continue;
    std::string head;
    for (std::size_t i = 0; i < have.size(); ++i) head += (i == 0 ? "" : ".") + std::string(want[i]);
    if (TensorPattern(head).matches(absent)) return Match::absent;
  }
  return Match::none;
}

// The same for a rule of a block: what a derived module has removed from the base in which the rule stands is absent.
CheckpointRulesReader::Match CheckpointRulesReader::target(Block& block, const ast::Tensor& tensor) {
  const Match found = find(names(block.info), tensor);
  if (found != Match::none || block.level == 0) return found;
  const std::string_view first = split(tensor.text, '.').front();
  for (std::size_t level = block.level; level < block.info.instance->def.levels.size(); ++level) {
    for (const ast::ItemPtr& item : block.info.instance->def.levels[level].decl->members) {
      const auto* param = ast::try_as<ast::ParamMember>(*item);
      const auto* child = ast::try_as<ast::ChildMember>(*item);
      if (param == nullptr && child == nullptr) continue;
      const auto& at = param != nullptr ? param->at : child->at;
      const std::string& name = param != nullptr ? param->name.text : child->name.text;
      if ((at && !at->self ? split(at->path.text, '.').front() : std::string_view(name)) == first) return Match::absent;
    }
  }
  return Match::none;
}

bool CheckpointRulesReader::check_target(Block& block, const ast::Tensor& tensor) {
  if (target(block, tensor) != Match::none) return true;
  const NamesBelow& below = names(block.info);
  std::vector<std::string> candidates;
  for (const auto& weight : below.weights) candidates.push_back(weight.name);
  for (const std::string& module : below.modules) candidates.push_back(module);
  in_.sink()
      .error(code::rule_target_unknown, tensor.span,
             "`" + block.info.instance->def.name() + "` has no weight or module `" + pattern_text(tensor) + "`")
      .label(block.info.instance->def.symbol->span, "names are relative to this module")
      .help(diag::did_you_mean(pattern_text(tensor), candidates));
  return false;
}

// ---- the walk -------------------------------------------------------------------------------------------------------

bool CheckpointRulesReader::has_blocks(ClassInfo& info) {
  if (const auto it = has_blocks_.find(&info); it != has_blocks_.end()) return it->second;
  bool found = !info.instance->def.checkpoints.empty();
  for (const Slot& slot : info.instance->slots) {
    for (ClassInfo* element : slot.elements) found = found || (element != nullptr && has_blocks(*element));
  }
  return has_blocks_[&info] = found;
}

void CheckpointRulesReader::read(ClassInfo& root) {
  rules_.format = "safetensors";
  walk(root, "");
  in_.module().checkpoints.push_back(std::move(rules_));
}

void CheckpointRulesReader::walk(ClassInfo& info, const std::string& path) {
  if (!has_blocks(info)) return;
  for (const CheckpointDef& def : info.instance->def.checkpoints) {
    // What is only checked, by names that are relative, is checked once a class.
    if (def.format != "safetensors" && !checked_.emplace(&info, &def).second) continue;
    Block block{info, path, file_name(path), def};
    read_block(block);
  }
  const graph::Class& made = in_.class_of(info);
  for (const Slot& slot : info.instance->slots) {
    if (slot.failed) continue;
    for (std::size_t e = 0; e < slot.elements.size(); ++e) {
      if (slot.elements[e] == nullptr || slot.index >= made.children.size()) continue;
      const std::string below = join_path(path, made.children[slot.index].path);
      walk(*slot.elements[e], slot.list ? join_path(below, std::to_string(e)) : below);
    }
  }
}

void CheckpointRulesReader::read_block(Block& block) {
  if (block.def.format != "safetensors" && block.def.format != "gguf") {
    const auto& format = block.def.blocks.front().item->format;
    in_.sink()
        .error(code::bad_rule, format.span, "there is no checkpoint format `" + format.text + "`")
        .help(diag::did_you_mean(format.text, {"safetensors", "gguf"}));
    return;
  }
  taken_.clear();
  own_.clear();
  for (const auto& leveled : block.def.blocks) {
    block.level = leveled.level;
    if (block.def.format == "gguf") check_rules(block, leveled.item->rules);
    else read_rules(block, leveled.item->rules);
    taken_.insert(taken_.end(), own_.begin(), own_.end());
    own_.clear();
  }
}

// A name that outer rules have given another prefix.
std::string CheckpointRulesReader::file_name(const std::string& path) const {
  for (const graph::RenameRule& rename : rules_.renames) {
    std::string rest;
    const auto captures = TensorPattern(rename.model).match_prefix(path, rest);
    if (!captures) continue;
    if (const auto file = TensorPattern(rename.file).fill(*captures)) return join_path(*file, rest);
  }
  return path;
}

// False where a more derived block has a rule for the same.
bool CheckpointRulesReader::take(const std::string& key) {
  if (std::find(taken_.begin(), taken_.end(), key) != taken_.end()) return false;
  own_.push_back(key);
  return true;
}

void CheckpointRulesReader::refuse(source::Span span, const std::string& what) {
  in_.sink().error(code::not_carried_out, span, what + " not carried out yet");
}

std::optional<bool> CheckpointRulesReader::when(Block& block, const ast::ExprPtr& condition,
                                                const std::vector<const ast::Tensor*>& tensors, bool& indices) {
  indices = false;
  if (!condition) return true;
  std::set<std::string, std::less<>> mentioned;
  mentioned_names(*condition, mentioned);
  for (const ast::Tensor* tensor : tensors) {
    for (const ast::Seg& seg : tensor->segs) {
      const bool variable = seg.kind == ast::SegKind::index || seg.kind == ast::SegKind::rest;
      indices = indices || (variable && mentioned.contains(seg.text));
    }
  }
  if (indices) {
    in_.evaluator().touch(*condition, block.info.instance->environment(block.level));
    return std::nullopt;
  }
  return in_.evaluator().condition(*condition, block.info.instance->environment(block.level));
}

// ---- safetensors ----------------------------------------------------------------------------------------------------

void CheckpointRulesReader::read_rules(Block& block, const std::vector<ast::RulePtr>& rules) {
  for (const ast::RulePtr& rule : rules) {
    switch (rule->kind) {
      case ast::RuleKind::alias: read_alias(block, ast::as<ast::AliasRule>(*rule)); break;
      case ast::RuleKind::map: read_map(block, ast::as<ast::MapRule>(*rule)); break;
      case ast::RuleKind::ignore: read_ignore(block, ast::as<ast::IgnoreRule>(*rule)); break;
      case ast::RuleKind::encode: read_encode(block, ast::as<ast::EncodeRule>(*rule)); break;
      case ast::RuleKind::via: {
        const auto& via = ast::as<ast::ViaRule>(*rule);
        check_target(block, via.tensor);
        check_via(via.via);
        refuse(via.span, "transforms of a checkpoint's tensors (`via`) are");
        break;
      }
      case ast::RuleKind::one_of: refuse(rule->span, "`one_of` is"); break;
      case ast::RuleKind::for_:
        refuse(rule->span,
               "rules for all modules of a type (`for " + ast::as<ast::ForRule>(*rule).module.text + "`) are");
        break;
      case ast::RuleKind::config:
        in_.sink().error(
            code::bad_rule, rule->span,
            "`config { … }` builds a configuration of a GGUF file's metadata: beside safetensors there is a config.json");
        break;
    }
  }
}

void CheckpointRulesReader::read_alias(Block& block, const ast::AliasRule& rule) {
  const std::string key = "alias " + pattern_text(rule.alias);
  if (!take(key)) return;
  bool indices = false;
  const auto holds = when(block, rule.when, {&rule.alias, &rule.target}, indices);
  if (indices) return refuse(rule.when->span, "conditions on an index are");
  if (!holds) return;
  const NamesBelow& below = names(block.info);
  const Match weight = target(block, rule.alias);
  const Match taken = target(block, rule.target);
  if (weight == Match::none) check_target(block, rule.alias);
  if (taken == Match::none) check_target(block, rule.target);
  if (weight != Match::present || taken != Match::present) return;  // an absent one makes the rule void

  const auto by_name = [&](const std::string& name) -> const graph::WeightDecl* {
    for (const auto& w : below.weights) {
      if (w.name == name) return w.decl;
    }
    return nullptr;
  };
  const TensorPattern pattern(pattern_text(rule.alias));
  const TensorPattern to(pattern_text(rule.target));
  bool any = false;
  for (const auto& w : below.weights) {
    const auto captures = pattern.match(w.name);
    if (!captures) continue;
    any = true;
    const auto filled = to.fill(*captures);
    const graph::WeightDecl* decl = filled ? by_name(*filled) : nullptr;
    if (decl == nullptr) {
      in_.sink().error(code::rule_target_unknown, rule.target.span,
                       filled ? "there is no weight `" + *filled + "`, which `" + w.name + "` is to take"
                              : "`" + to.text() + "` is no single weight for `" + w.name + "`");
      return;
    }
    if (decl->type.shape != w.decl->type.shape) {
      const auto& dims = in_.module().dims;
      const auto text = [&](const graph::WeightDecl& d) {
        const std::string sizes = graph::shape_text(d.type.shape, dims);
        std::string out = d.shape_text;
        if (!d.shape_numbers.empty()) out += " = " + d.shape_numbers;
        if (sizes != d.shape_text && sizes != d.shape_numbers) out += " = " + sizes;
        return out;
      };
      auto message = in_.sink().error(code::alias_shape, rule.span,
                                      "`" + w.name + "` cannot be `" + *filled + "`: their shapes differ");
      message.note("`" + w.name + "` is " + text(*w.decl)).note("`" + *filled + "` is " + text(*decl));
      for (const auto* d : {w.decl, decl}) {
        for (const std::string& origin : d->origins) message.note(origin);
      }
      return;
    }
    graph::AliasRule alias{join_path(block.path, w.name), join_path(block.path, *filled), in_.where(rule.span), "", ""};
    if (!*holds) {
      alias.off_when = in_.source_text(rule.when->span);
      const Value value = in_.evaluator().eval(*rule.when, block.info.instance->environment(block.level));
      for (const std::string& line : formula_origins(value.formula()))
        alias.off_because += (alias.off_because.empty() ? "" : ", ") + line;
    }
    rules_.aliases.push_back(std::move(alias));
  }
  if (!any) check_target(block, rule.alias);
}

void CheckpointRulesReader::read_map(Block& block, const ast::MapRule& rule) {
  bool indices = false;
  std::vector<const ast::Tensor*> tensors;
  for (const ast::Tensor& t : rule.file.items) tensors.push_back(&t);
  for (const ast::Tensor& t : rule.model.items) tensors.push_back(&t);
  const auto holds = when(block, rule.when, tensors, indices);
  if (indices) return refuse(rule.when->span, "conditions on an index are");
  bool known = true;
  for (const ast::Tensor& t : rule.model.items) known = check_target(block, t) && known;
  check_via(rule.via);
  if (!known || !holds || !*holds) return;
  if (!rule.via.empty()) return refuse(rule.span, "transforms of a checkpoint's tensors (`via`) are");
  if (rule.file.bracketed || rule.model.bracketed)
    return refuse(rule.span, "a rule that joins or splits tensors (`[a, b]`) is");
  const ast::Tensor& file = rule.file.items.front();
  const ast::Tensor& model = rule.model.items.front();
  const std::string key = "map " + pattern_text(model);
  if (!take(key)) return;
  // Every variable stands on both sides: from the model's name follows the file's.
  for (const ast::Tensor* side : {&file, &model}) {
    const ast::Tensor& other = side == &file ? model : file;
    for (const ast::Seg& seg : side->segs) {
      if (seg.kind == ast::SegKind::star || seg.kind == ast::SegKind::double_star) {
        in_.sink()
            .error(code::bad_rule, seg.span, "`" + pattern_text(*side) + "` cannot tell which name goes with which")
            .help("give the part a name: `{i}` for an index, `{rest*}` for any number of components");
        return;
      }
      if (seg.kind != ast::SegKind::index && seg.kind != ast::SegKind::rest) continue;
      const bool both = std::any_of(other.segs.begin(), other.segs.end(),
                                    [&](const ast::Seg& s) { return s.kind == seg.kind && s.text == seg.text; });
      if (both) continue;
      if (side == &file) return refuse(rule.span, "an index that is in the file alone (it needs `via stack`) is");
      in_.sink().error(code::bad_rule, seg.span,
                       "`{" + seg.text + "}` stands on the model's side alone: all those weights would be one tensor");
      return;
    }
  }
  rules_.renames.push_back({join_path(block.file_path, pattern_text(file)), join_path(block.path, pattern_text(model)),
                            in_.where(rule.span)});
}

void CheckpointRulesReader::read_ignore(Block& block, const ast::IgnoreRule& rule) {
  bool indices = false;
  std::vector<const ast::Tensor*> tensors;
  for (const ast::Tensor& t : rule.tensors) tensors.push_back(&t);
  const auto holds = when(block, rule.when, tensors, indices);
  if (indices) return refuse(rule.when->span, "conditions on an index are");
  if (!holds || !*holds) return;
  for (const ast::Tensor& t : rule.tensors) {
    rules_.ignores.push_back({join_path(block.file_path, pattern_text(t)), in_.where(t.span)});
  }
}

void CheckpointRulesReader::read_encode(Block& block, const ast::EncodeRule& rule) {
  const std::string key = "encode " + pattern_text(rule.tensor);
  if (!take(key)) return;
  bool indices = false;
  const auto holds = when(block, rule.when, {&rule.tensor}, indices);
  if (indices) return refuse(rule.when->span, "conditions on an index are");
  if (!holds) return;
  const Value encoding = in_.evaluator().eval(*rule.encoding, block.info.instance->environment(block.level));
  if (!*holds || encoding.is_error()) return;
  if (!encoding.is(ValueKind::encoding)) {
    in_.sink().error(code::bad_rule, rule.encoding->span,
                     "`encode … as` takes an encoding, as fp8_block(128, 128) or plain, not " + kind_name(encoding));
    return;
  }
  if (encoding.as_recipe().symbol == nullptr) return;  // plain
  refuse(rule.span, "the encoding " + show(encoding) + " is");
}

// ---- gguf -----------------------------------------------------------------------------------------------------------

namespace {

struct Transform {
  std::string_view name;
  std::size_t least, most;
};
constexpr Transform transforms[] = {
    {"transpose", 2, 2},
    {"reshape", 1, 1},
    {"stack", 1, 1},
    {"split", 1, 1},
    {"concat", 2, 2},
    {"unzip", 1, 1},
    {"deinterleave_rope_rows", 1, 2},
    {"offset", 1, 1},
    {"cast", 1, 1},
};

}  // namespace

void CheckpointRulesReader::check_via(const std::vector<ast::Call>& via) {
  for (const ast::Call& call : via) {
    const auto it = std::find_if(std::begin(transforms), std::end(transforms),
                                 [&](const Transform& t) { return t.name == call.name.text; });
    if (it == std::end(transforms)) {
      std::vector<std::string> names;
      for (const Transform& t : transforms) names.emplace_back(t.name);
      const std::string near = diag::did_you_mean(call.name.text, names);
      in_.sink()
          .error(code::bad_rule, call.name.span, "there is no transform `" + call.name.text + "`")
          .help(near.empty() ? "there are " + listed(names, names.size()) : near);
      continue;
    }
    const std::size_t given = call.args ? call.args->items.size() : 0;
    if (given >= it->least && given <= it->most) continue;
    in_.sink().error(code::bad_rule, call.span,
                     "`" + call.name.text + "` takes " + counted(it->least, "argument") +
                         (it->most > it->least ? " or " + std::to_string(it->most) : "") + ", not " +
                         std::to_string(given));
  }
}

void CheckpointRulesReader::check_rules(Block& block, const std::vector<ast::RulePtr>& rules) {
  const auto condition = [&](const ast::ExprPtr& expr, const std::vector<const ast::Tensor*>& tensors) {
    bool indices = false;
    when(block, expr, tensors, indices);
  };
  for (const ast::RulePtr& rule : rules) {
    switch (rule->kind) {
      case ast::RuleKind::alias: {
        const auto& alias = ast::as<ast::AliasRule>(*rule);
        check_target(block, alias.alias);
        check_target(block, alias.target);
        condition(alias.when, {&alias.alias, &alias.target});
        break;
      }
      case ast::RuleKind::map: {
        const auto& map = ast::as<ast::MapRule>(*rule);
        std::vector<const ast::Tensor*> tensors;
        for (const ast::Tensor& t : map.file.items) tensors.push_back(&t);
        for (const ast::Tensor& t : map.model.items) {
          tensors.push_back(&t);
          check_target(block, t);
        }
        check_via(map.via);
        for (const ast::Call& call : map.via) {
          if (!call.args) continue;
          for (const ast::Arg& arg : call.args->items)
            in_.evaluator().touch(*arg.value, block.info.instance->environment(block.level));
        }
        condition(map.when, tensors);
        break;
      }
      case ast::RuleKind::via: {
        const auto& via = ast::as<ast::ViaRule>(*rule);
        check_target(block, via.tensor);
        check_via(via.via);
        condition(via.when, {&via.tensor});
        break;
      }
      case ast::RuleKind::ignore: {
        const auto& ignore = ast::as<ast::IgnoreRule>(*rule);
        std::vector<const ast::Tensor*> tensors;
        for (const ast::Tensor& t : ignore.tensors) tensors.push_back(&t);
        condition(ignore.when, tensors);
        break;
      }
      case ast::RuleKind::encode: {
        const auto& encode = ast::as<ast::EncodeRule>(*rule);
        in_.evaluator().touch(*encode.encoding, block.info.instance->environment(block.level));
        condition(encode.when, {&encode.tensor});
        break;
      }
      case ast::RuleKind::one_of:
        for (const auto& alternative : ast::as<ast::OneOfRule>(*rule).alternatives)
          check_rules(block, alternative.rules);
        break;
      case ast::RuleKind::for_: {
        // Rules relative to each instance of a type: their names are that module's own.
        const auto& per_type = ast::as<ast::ForRule>(*rule);
        bool failed = false;
        const FileSymbols& file = *block.info.instance->def.levels[block.level].symbol->file;
        const Symbol* symbol = resolve(file, per_type.module.text, per_type.module.span, in_.sink(), failed);
        if (symbol == nullptr && !failed) {
          in_.evaluator().report_unknown_name(per_type.module, Environment(&file));
        } else if (symbol != nullptr && symbol->kind != SymbolKind::module) {
          in_.sink().error(code::bad_rule, per_type.module.span,
                           "`" + per_type.module.text + "` is a " + std::string(word(*symbol)) + ", not a module");
        }
        for (const ast::RulePtr& inner : per_type.rules) {
          if (const auto* via = ast::try_as<ast::ViaRule>(*inner)) check_via(via->via);
        }
        break;
      }
      case ast::RuleKind::config: check_config(ast::as<ast::ConfigRule>(*rule)); break;
    }
  }
}

// The keys that a config block builds are keys that some configuration reads.
void CheckpointRulesReader::check_config(const ast::ConfigRule& rule) {
  std::vector<std::string> keys;
  for (const auto& [name, value] : in_.info(in_.module().root)->instance->recipe.arguments) {
    if (!value.is(ValueKind::config)) continue;
    for (const FieldDef& field : value.as_config().definition->fields) {
      if (field.item == nullptr || field.item->from.empty()) {
        keys.push_back(field.name);
        continue;
      }
      for (const ast::Path& path : field.item->from) keys.push_back(path.parts.front().text);
    }
  }
  if (keys.empty()) return;
  for (const ast::ConfigRule::Entry& entry : rule.entries) {
    if (!entry.ignored.empty()) continue;
    const ast::Name& key = entry.key.parts.front();
    if (std::find(keys.begin(), keys.end(), key.text) != keys.end()) continue;
    in_.sink()
        .error(code::rule_target_unknown, key.span,
               "no field of the model's configuration reads the key `" + key.text + "`")
        .help(diag::did_you_mean(key.text, keys));
  }
}

}  // namespace modelc::sema
