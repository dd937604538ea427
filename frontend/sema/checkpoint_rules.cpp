#include "frontend/sema/checkpoint_rules.h"

#include <algorithm>
#include <set>

#include "frontend/graph/members.h"
#include "frontend/graph/types.h"
#include "frontend/sema/config.h"
#include "frontend/sema/habits.h"
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
    if (member.kind == MemberKind::constant && slot.present && !slot.failed) out.consts.push_back(member.name);
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
      for (const std::string& constant : below.consts) out.consts.push_back(join_path(path, constant));
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
  // Where an index stands in a name of the model the rule may have a name for it.
  for (const ast::Seg& seg : tensor.segs) {
    if (seg.kind != ast::SegKind::index) continue;
    std::set<std::string> indexed;
    for (const std::string& name : candidates) {
      const auto parts = split(name, '.');
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!parse_uint(parts[i])) continue;
        std::string with;
        for (std::size_t k = 0; k < parts.size(); ++k)
          with += (k == 0 ? "" : ".") + (k == i ? "{" + seg.text + "}" : std::string(parts[k]));
        indexed.insert(std::move(with));
      }
    }
    candidates.insert(candidates.end(), indexed.begin(), indexed.end());
    break;
  }
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
  for (const char* format : {"safetensors", "gguf"}) read(format, root);
}

void CheckpointRulesReader::read(const std::string& format, ClassInfo& root) {
  rules_ = {};
  rules_.format = format;
  walk(root, "", "", 0);
  // Every model reads safetensors; a GGUF file needs rules.
  if (format == "safetensors" || !rules_.maps.empty() || !rules_.architecture.empty())
    in_.module().checkpoints.push_back(std::move(rules_));
}

std::string CheckpointRulesReader::place(source::Span span) const { return in_.sources().place(span); }

template <class F> void CheckpointRulesReader::children(ClassInfo& info, const std::string& path, const std::string& only, int depth, F f) {
  const graph::Class& made = in_.class_of(info);
  for (const Slot& slot : info.instance->slots) {
    if (slot.failed || slot.elements.empty() || slot.index >= made.children.size()) continue;
    const std::string below = join_path(path, made.children[slot.index].path);
    if (!slot.list) {
      if (slot.elements[0] != nullptr) f(*slot.elements[0], below, only, depth);
      continue;
    }
    // Which elements share a class, in the order of their first.
    std::vector<std::pair<ClassInfo*, std::vector<std::size_t>>> groups;
    std::unordered_map<ClassInfo*, std::size_t> at;
    for (std::size_t e = 0; e < slot.elements.size(); ++e) {
      if (slot.elements[e] == nullptr) continue;
      const auto [it, fresh] = at.emplace(slot.elements[e], groups.size());
      if (fresh) groups.push_back({slot.elements[e], {}});
      groups[it->second].second.push_back(e);
    }
    for (const auto& [element, indices] : groups) {
      // An outer rule may speak of one element alone: then each is read for itself.
      const std::string index = "{" + std::to_string(depth + 1) + "}";
      const std::string together = join_path(below, index);
      const std::string named = file_name(together);
      bool alike = indices.size() > 1;
      for (std::size_t e : indices)
        alike = alike && file_name(join_path(below, std::to_string(e))) == replace_all(named, index, std::to_string(e));
      if (!alike) {
        for (std::size_t e : indices) f(*element, join_path(below, std::to_string(e)), only, depth);
        continue;
      }
      std::string ranges;
      for (std::size_t i = 0; i < indices.size();) {
        std::size_t end = i;
        while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
        ranges += (ranges.empty() ? "" : ",") + std::to_string(indices[i]) + (end > i ? ".." + std::to_string(indices[end]) : "");
        i = end + 1;
      }
      f(*element, together, only + (only.empty() ? "" : "; ") + std::to_string(depth + 1) + " in " + ranges, depth + 1);
    }
  }
}

void CheckpointRulesReader::walk(ClassInfo& info, const std::string& path, const std::string& only, int depth) {
  if (!has_blocks(info)) return;
  for (const CheckpointDef& def : info.instance->def.checkpoints) {
    if (def.format != "safetensors" && def.format != "gguf") {
      const auto& format = def.blocks.front().item->format;
      const std::string near = diag::did_you_mean(format.text, {"safetensors", "gguf"});
      if (rules_.format == "safetensors")
        in_.sink()
            .error(code::bad_rule, format.span, "there is no checkpoint format `" + format.text + "`")
            .help(near.empty() ? habit_of_format(format.text) : near);
      continue;
    }
    if (def.format != rules_.format) continue;
    Block block{info, path, file_name(path), only, def};
    read_block(block);
  }
  children(info, path, only, depth,
           [this](ClassInfo& child, const std::string& below, const std::string& bounds, int deep) { walk(child, below, bounds, deep); });
}

void CheckpointRulesReader::read_block(Block& block) {
  taken_.clear();
  own_.clear();
  for (const auto& leveled : block.def.blocks) {
    block.level = leveled.level;
    const auto& architecture = leveled.item->architecture;
    if (architecture && rules_.architecture.empty()) rules_.architecture = architecture->value;
    read_rules(block, leveled.item->rules);
    taken_.insert(taken_.end(), own_.begin(), own_.end());
    own_.clear();
  }
}

// A module's name in the file: what the most particular of the outer rules says. In a GGUF file modules without a rule
// have their parent's name.
std::string CheckpointRulesReader::file_name(const std::string& path) const {
  std::optional<std::string> name;
  int most = 0;
  for (const auto& map : rules_.maps) {
    if (map.file.size() != 1 || map.model.size() != 1 || map.set >= 0) continue;
    const TensorPattern model(map.model[0]);
    std::string rest;
    const auto captures = model.match_prefix(path, rest);
    if (!captures || (name && model.size() <= most)) continue;
    const auto file = TensorPattern(map.file[0]).fill(*captures);
    if (!file) continue;
    name = rules_.format == "gguf" ? *file : join_path(*file, rest);
    most = model.size();
  }
  return name.value_or(rules_.format == "gguf" ? "" : path);
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

// ---- conditions -----------------------------------------------------------------------------------------------------

namespace {

// `a and b and c` as its parts.
void conjuncts(const ast::Expr& expr, std::vector<const ast::Expr*>& into) {
  if (const auto* both = ast::try_as<ast::BinaryExpr>(expr); both != nullptr && both->op == ast::BinaryOp::and_) {
    conjuncts(*both->left, into);
    conjuncts(*both->right, into);
    return;
  }
  into.push_back(&expr);
}

// How far an index is followed; from half of it on nothing may change, so that the rest is known.
constexpr std::int64_t most_indices = 4096;

}  // namespace

std::optional<bool> CheckpointRulesReader::when_static(Block& block, const ast::ExprPtr& condition) {
  if (!condition) return true;
  return in_.evaluator().condition(*condition, block.info.instance->environment(block.level));
}

std::optional<std::string> CheckpointRulesReader::when(Block& block, const ast::ExprPtr& condition,
                                                       const std::vector<const ast::Tensor*>& tensors) {
  if (!condition) return block.only;
  std::set<std::string> indices;
  for (const ast::Tensor* tensor : tensors)
    for (const ast::Seg& seg : tensor->segs)
      if (seg.kind == ast::SegKind::index) indices.insert(seg.text);
  std::vector<const ast::Expr*> parts;
  conjuncts(*condition, parts);
  std::string only = block.only;
  bool holds = true;
  for (const ast::Expr* part : parts) {
    std::set<std::string, std::less<>> mentioned;
    mentioned_names(*part, mentioned);
    std::vector<std::string> of;
    for (const std::string& i : indices)
      if (mentioned.contains(i)) of.push_back(i);
    Environment env = block.info.instance->environment(block.level);
    if (of.size() > 1) {
      in_.sink()
          .error(code::bad_rule, part->span, "a condition on " + listed(of) + " together bounds neither of them")
          .help("write one comparison for each index, joined by `and`");
      return std::nullopt;
    }
    if (of.empty()) {
      const auto value = in_.evaluator().condition(*part, env);
      if (!value) return std::nullopt;
      holds = holds && *value;
      continue;
    }
    std::string ranges;
    std::int64_t first = -1, last_change = 0;
    bool before = false;
    for (std::int64_t i = 0; i <= most_indices; ++i) {
      bool now = false;
      if (i < most_indices) {
        Environment with = env;
        with.define(of[0], Value::integer(i), part->span);
        const auto value = in_.evaluator().condition(*part, with);
        if (!value) return std::nullopt;
        now = *value;
      }
      if (now && !before) first = i;
      if (!now && before) {
        const bool open = i == most_indices;
        ranges += (ranges.empty() ? "" : ",") + std::to_string(first);
        if (open) ranges += "..";
        else if (first != i - 1) ranges += ".." + std::to_string(i - 1);
      }
      if (now != before && i < most_indices && i > 0) last_change = i;
      before = now;
    }
    if (last_change > most_indices / 2) {
      in_.sink().error(code::bad_rule, part->span,
                       "the condition still changes at `" + of[0] + "` = " + std::to_string(last_change) + ": indices are followed to " +
                           std::to_string(most_indices / 2));
      return std::nullopt;
    }
    holds = holds && !ranges.empty();
    only += (only.empty() ? "" : "; ") + of[0] + " in " + ranges;
  }
  if (!holds) return std::nullopt;
  return only;
}

// ---- rules ----------------------------------------------------------------------------------------------------------

void CheckpointRulesReader::read_rules(Block& block, const std::vector<ast::RulePtr>& rules) {
  for (const ast::RulePtr& rule : rules) {
    switch (rule->kind) {
      case ast::RuleKind::alias: read_alias(block, ast::as<ast::AliasRule>(*rule)); break;
      case ast::RuleKind::map: read_map(block, ast::as<ast::MapRule>(*rule)); break;
      case ast::RuleKind::ignore: read_ignore(block, ast::as<ast::IgnoreRule>(*rule)); break;
      case ast::RuleKind::encode: read_encode(block, ast::as<ast::EncodeRule>(*rule)); break;
      case ast::RuleKind::via: read_via(block, ast::as<ast::ViaRule>(*rule)); break;
      case ast::RuleKind::one_of: read_one_of(block, ast::as<ast::OneOfRule>(*rule)); break;
      case ast::RuleKind::for_: read_for(block, ast::as<ast::ForRule>(*rule)); break;
      case ast::RuleKind::config: check_config(block, ast::as<ast::ConfigRule>(*rule)); break;
    }
  }
}

void CheckpointRulesReader::read_alias(Block& block, const ast::AliasRule& rule) {
  const std::string key = "alias " + pattern_text(rule.alias);
  if (!take(key)) return;
  // A condition on an index is asked for each weight; else once.
  std::set<std::string, std::less<>> mentioned;
  if (rule.when) mentioned_names(*rule.when, mentioned);
  const bool by_index = std::any_of(rule.alias.segs.begin(), rule.alias.segs.end(),
                                    [&](const ast::Seg& s) { return s.kind == ast::SegKind::index && mentioned.contains(s.text); });
  std::optional<bool> holds = true;
  if (!by_index) holds = when_static(block, rule.when);
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
    if (by_index) {
      Environment env = block.info.instance->environment(block.level);
      for (const auto& [name, text] : *captures)
        if (const auto n = parse_int(text)) env.define(name, Value::integer(*n), rule.when->span);
      const auto here = in_.evaluator().condition(*rule.when, env);
      if (!here) return;
      if (!*here) continue;
    }
    const auto filled = to.fill(*captures);
    if (filled && *filled == w.name) continue;
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
      auto message = in_.sink().error(code::alias_shape, rule.span, "`" + w.name + "` cannot be `" + *filled + "`: their shapes differ");
      message.note("`" + w.name + "` is " + text(*w.decl)).note("`" + *filled + "` is " + text(*decl));
      for (const auto* d : {w.decl, decl}) {
        for (const std::string& origin : d->origins) message.note(origin);
      }
      return;
    }
    graph::CheckpointRules::Alias alias{join_path(block.path, w.name), join_path(block.path, *filled), {}, {}, place(rule.span)};
    if (!*holds) {
      alias.when = in_.source_text(rule.when->span);
      const Value value = in_.evaluator().eval(*rule.when, block.info.instance->environment(block.level));
      for (const std::string& line : formula_origins(value.formula())) alias.because += (alias.because.empty() ? "" : ", ") + line;
    }
    rules_.aliases.push_back(std::move(alias));
  }
  if (!any) check_target(block, rule.alias);
}

void CheckpointRulesReader::read_ignore(Block& block, const ast::IgnoreRule& rule) {
  std::vector<const ast::Tensor*> tensors;
  for (const ast::Tensor& t : rule.tensors) tensors.push_back(&t);
  const auto only = when(block, rule.when, tensors);
  if (!only) return;
  for (const ast::Tensor& t : rule.tensors) rules_.ignores.push_back({join_path(block.file_path, pattern_text(t)), *only, place(t.span)});
}

void CheckpointRulesReader::read_one_of(Block& block, const ast::OneOfRule& rule) {
  if (block.set >= 0) return refuse(rule.span, "a `one_of` within a `one_of` is");
  // One choice for the whole file: the instances of a module share it.
  const std::string where = place(rule.span);
  std::size_t set = 0;
  while (set < rules_.sets.size() && rules_.sets[set].where != where) ++set;
  if (set == rules_.sets.size()) {
    rules_.sets.push_back({where, {}});
    for (const auto& alternative : rule.alternatives) rules_.sets[set].alternatives.push_back(alternative.name.text);
  }
  // Alternatives speak of the same weights: only a more derived block's rule is in their way.
  const std::vector<std::string> own = own_;
  std::vector<std::string> all = own;
  for (std::size_t a = 0; a < rule.alternatives.size(); ++a) {
    block.set = static_cast<int>(set);
    block.alternative = static_cast<int>(a);
    for (const ast::RulePtr& inner : rule.alternatives[a].rules) {
      if (inner->kind == ast::RuleKind::one_of) continue;               // refused where it is read
      if (inner->kind != ast::RuleKind::map && inner->kind != ast::RuleKind::via) {
        in_.sink()
            .error(code::bad_rule, inner->span, "the sets of a `one_of` consist of `file = model` and `via` rules")
            .help("write it beside the `one_of`");
      }
    }
    own_ = own;
    read_rules(block, rule.alternatives[a].rules);
    all.insert(all.end(), own_.begin(), own_.end());
  }
  own_ = std::move(all);
  block.set = -1;
}

// Rules relative to each instance of a type: their names are that module's own.
void CheckpointRulesReader::read_for(Block& block, const ast::ForRule& rule) {
  bool failed = false;
  const FileSymbols& file = *block.info.instance->def.levels[block.level].symbol->file;
  const Symbol* symbol = resolve(file, rule.module.text, rule.module.span, in_.sink(), failed);
  if (symbol == nullptr) {
    if (!failed) in_.evaluator().report_unknown_name(rule.module, Environment(&file));
    return;
  }
  if (symbol->kind != SymbolKind::module) {
    in_.sink().error(code::bad_rule, rule.module.span, "`" + rule.module.text + "` is a " + std::string(word(*symbol)) + ", not a module");
    return;
  }
  each_of_type(block.info, *symbol, block, block.path, block.only,
               static_cast<int>(std::count(block.only.begin(), block.only.end(), ';')) + (block.only.empty() ? 0 : 1), rule.rules);
}

void CheckpointRulesReader::each_of_type(ClassInfo& info, const Symbol& type, Block& block, const std::string& path,
                                         const std::string& only, int depth, const std::vector<ast::RulePtr>& rules) {
  children(info, path, only, depth, [&](ClassInfo& child, const std::string& below, const std::string& bounds, int deep) {
    for (const ModuleDef::Level& level : child.instance->def.levels) {
      if (level.symbol != &type) continue;
      Block inner{child, below, file_name(below), bounds, block.def, 0, block.set, block.alternative};
      const std::vector<std::string> own = own_;
      read_rules(inner, rules);
      own_ = own;
    }
    each_of_type(child, type, block, below, bounds, deep, rules);
  });
}

// The keys that a config block builds are keys that some configuration reads.
void CheckpointRulesReader::check_config(Block& block, const ast::ConfigRule& rule) {
  if (rules_.format == "safetensors") {
    in_.sink().error(code::bad_rule, rule.span,
                     "`config { … }` builds a configuration of a GGUF file's metadata: beside safetensors there is a config.json");
    return;
  }
  if (&block.info != in_.info(in_.module().root)) {
    in_.sink().error(code::bad_rule, rule.span, "`config { … }` stands in the model's own block: there is one configuration");
    return;
  }
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
    static_cast<void>(when_static(block, entry.when));     // reports what is wrong with it
    const ast::Name& key = entry.key.parts.front();
    if (std::find(keys.begin(), keys.end(), key.text) != keys.end()) continue;
    in_.sink()
        .error(code::rule_target_unknown, key.span, "no field of the model's configuration reads the key `" + key.text + "`")
        .help(diag::did_you_mean(key.text, keys));
  }
}

}  // namespace modelc::sema
