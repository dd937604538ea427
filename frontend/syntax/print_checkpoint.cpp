// Checkpoint blocks and patterns of tensor names.
#include "frontend/syntax/print.h"
#include "frontend/syntax/printer.h"

namespace modelc::syntax {

namespace {
const std::string comma = std::string(",") + Printer::soft;
}

std::string Printer::tensor(const ast::Tensor& t) { return t.quoted ? quote(t.text) : t.text; }

std::string Printer::tensor_list(const std::vector<ast::Tensor>& list) {
  std::string out;
  for (const ast::Tensor& t : list) out += (out.empty() ? "" : comma) + tensor(t);
  return out;
}

std::string Printer::tensors(const ast::Tensors& t) {
  const std::string list = tensor_list(t.items);
  return t.bracketed ? "[" + list + "]" : list;
}

std::string Printer::calls(const std::vector<ast::Call>& list, const std::string& between) {
  std::string out;
  for (const ast::Call& c : list) out += (out.empty() ? "" : between) + c.name.text + (c.args ? args(*c.args) : "");
  return out;
}

std::string Printer::via(const std::vector<ast::Call>& list) {
  return list.empty() ? "" : std::string(1, soft) + "via " + calls(list, comma);
}

std::string Printer::when(const ast::ExprPtr& e) { return e ? std::string(1, soft) + "when " + expr(*e) : ""; }

void Printer::rules(const std::string& head_text, const std::vector<ast::RulePtr>& list) {
  braces(head_text, list.empty(), [&] {
    for (const ast::RulePtr& r : list) rule(*r);
  });
}

void Printer::rule(const ast::Rule& r) {
  switch (r.kind) {
    case ast::RuleKind::map: {
      const auto& m = ast::as<ast::MapRule>(r);
      return line(tensors(m.file) + " =" + soft + tensors(m.model) + via(m.via) + when(m.when));
    }
    case ast::RuleKind::via: {
      const auto& v = ast::as<ast::ViaRule>(r);
      return line(tensor(v.tensor) + via(v.via) + when(v.when));
    }
    case ast::RuleKind::alias: {
      const auto& a = ast::as<ast::AliasRule>(r);
      return line("alias " + tensor(a.alias) + " = " + tensor(a.target) + when(a.when));
    }
    case ast::RuleKind::ignore: {
      const auto& i = ast::as<ast::IgnoreRule>(r);
      return line("ignore " + tensor_list(i.tensors) + when(i.when));
    }
    case ast::RuleKind::encode: {
      const auto& e = ast::as<ast::EncodeRule>(r);
      return line("encode " + tensor(e.tensor) + " as " + expr(*e.encoding) + when(e.when));
    }
    case ast::RuleKind::one_of:
      return braces("one_of", false, [&] {
        for (const auto& a : ast::as<ast::OneOfRule>(r).alternatives) rules(a.name.text, a.rules);
      });
    case ast::RuleKind::for_: {
      const auto& f = ast::as<ast::ForRule>(r);
      return rules("for " + f.module.text, f.rules);
    }
    case ast::RuleKind::config: return config_rule(ast::as<ast::ConfigRule>(r));
  }
}

void Printer::config_rule(const ast::ConfigRule& r) {
  braces("config", r.entries.empty(), [&] {
    for (const ast::ConfigRule::Entry& e : r.entries) {
      if (e.value) {
        line(e.key.text() + " = " + expr(*e.value) + when(e.when));
        continue;
      }
      std::string keys_text;
      for (const ast::Path& p : e.ignored) keys_text += (keys_text.empty() ? "" : comma) + p.text();
      line("ignore " + keys_text);
    }
  });
}

}  // namespace modelc::syntax
