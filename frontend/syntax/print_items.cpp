// Files, declarations, configurations, modules, statements, tests.
#include "frontend/syntax/print.h"
#include "frontend/syntax/printer.h"

namespace modelc::syntax {

namespace {

const std::string comma = std::string(",") + Printer::soft;

std::string joined(const std::vector<ast::Name>& names) {
  std::string out;
  for (const ast::Name& n : names) out += (out.empty() ? "" : comma) + n.text;
  return out;
}

std::string joined(const std::vector<ast::Path>& paths, const std::string& between) {
  std::string out;
  for (const ast::Path& p : paths) out += (out.empty() ? "" : between) + p.text();
  return out;
}

std::string word(const std::optional<ast::Span>& override_) { return override_ ? "override " : ""; }

}  // namespace

void Printer::file(const ast::File& f) {
  line("language " + print(f.language));
  if (!f.imports.empty()) out_ += "\n";
  for (const ast::Import& i : f.imports) line("import " + i.path.text() + (i.alias ? " as " + i.alias->text : ""));
  for (const ast::ItemPtr& d : f.decls) {
    out_ += "\n";
    item(*d);
  }
}

void Printer::item(const ast::Item& i) {
  doc(i.doc);
  switch (i.kind) {
    case ast::ItemKind::axis: {
      const auto& a = ast::as<ast::AxisDecl>(i);
      return line("axis " + a.name.text + ": " + range(a.range) + (a.step ? " by " + expr(*a.step) : ""));
    }
    case ast::ItemKind::config: return config(ast::as<ast::ConfigDecl>(i));
    case ast::ItemKind::variant: return variant(ast::as<ast::VariantDecl>(i));
    case ast::ItemKind::interface: {
      const auto& d = ast::as<ast::InterfaceDecl>(i);
      const std::string params_text = d.params.empty() ? "" : params(d.params);
      return braces("interface " + d.name.text + params_text, false, [&] {
        for (const ast::Signature& s : d.signatures) line(signature(s));
      });
    }
    case ast::ItemKind::module: {
      const auto& m = ast::as<ast::ModuleDecl>(i);
      return braces(head(m), m.members.empty(), [&] { items(m.members); });
    }
    case ast::ItemKind::function: return function(ast::as<ast::FunctionDecl>(i));
    case ast::ItemKind::op: return op(ast::as<ast::OpDecl>(i));
    case ast::ItemKind::encoding: return encoding(ast::as<ast::EncodingDecl>(i));
    case ast::ItemKind::test: return test(ast::as<ast::TestDecl>(i));
    case ast::ItemKind::field: return line(field(ast::as<ast::FieldItem>(i)));
    case ast::ItemKind::let: {
      const auto& l = ast::as<ast::LetItem>(i);
      return line("let " + l.name.text + " = " + expr(*l.value));
    }
    case ast::ItemKind::require: {
      const auto& r = ast::as<ast::RequireItem>(i);
      return line("require " + expr(*r.condition) + (r.message ? comma + quote(r.message->value) : ""));
    }
    case ast::ItemKind::refuse: return line("refuse " + keys(ast::as<ast::RefuseItem>(i).keys));
    case ast::ItemKind::ignore: return line("ignore " + keys(ast::as<ast::IgnoreItem>(i).keys));
    case ast::ItemKind::remove: {
      const auto& r = ast::as<ast::RemoveItem>(i);
      return line(std::string("remove ") + (r.checkpoint ? "checkpoint " : "") + r.name.text);
    }
    case ast::ItemKind::context: return line("context " + expr(*ast::as<ast::ContextMember>(i).value));
    case ast::ItemKind::param:
    case ast::ItemKind::constant:
    case ast::ItemKind::state:
    case ast::ItemKind::child:
    case ast::ItemKind::method:
    case ast::ItemKind::checkpoint: return member(i);
    case ast::ItemKind::policy:
    case ast::ItemKind::shard:
    case ast::ItemKind::quantize:
    case ast::ItemKind::place: return section(i);
  }
}

// Members in the order in which they stand; an empty line sets off what has a body.
void Printer::items(const std::vector<ast::ItemPtr>& list) {
  auto large = [](const ast::Item& i) {
    switch (i.kind) {
      case ast::ItemKind::method:
      case ast::ItemKind::checkpoint:
      case ast::ItemKind::policy:
      case ast::ItemKind::shard:
      case ast::ItemKind::quantize:
      case ast::ItemKind::place: return true;
      case ast::ItemKind::function: return ast::as<ast::FunctionDecl>(i).block.has_value();
      default: return false;
    }
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0 && (large(*list[i]) || large(*list[i - 1]))) out_ += "\n";
    item(*list[i]);
  }
}

// --- Configurations -------------------------------------------------------------------------------------------------

void Printer::config(const ast::ConfigDecl& c) {
  std::string text = "config " + c.name.text;
  if (c.file) text += " file " + quote(c.file->value);
  if (c.base) text += " extends " + c.base->text;
  braces(text, c.items.empty(), [&] { items(c.items); });
}

void Printer::variant(const ast::VariantDecl& v) {
  braces("variant " + v.name.text + " by " + joined(v.tag_keys, " | "), v.cases.empty(), [&] {
    for (const ast::VariantCase& c : v.cases) {
      doc(c.doc);
      std::string tags;
      for (const ast::String& t : c.tags) tags += (tags.empty() ? "" : " | ") + quote(t.value);
      braces(tags, c.items.empty(), [&] { items(c.items); });
    }
  });
}

std::string Printer::field(const ast::FieldItem& f) {
  std::string out = word(f.override_) + joined(f.names) + ": " + type(*f.type);
  if (f.range) out += " in " + range(*f.range);
  if (!f.from.empty()) out += std::string(1, soft) + "from " + joined(f.from, " | ");
  if (f.default_value) out += std::string(1, soft) + "= " + expr(*f.default_value);
  return out;
}

std::string Printer::keys(const std::vector<ast::KeyPattern>& list) {
  std::string out;
  for (const ast::KeyPattern& k : list) { out += (out.empty() ? "" : comma) + (k.quoted ? quote(k.string.value) : k.text()); }
  return out;
}

// --- Modules --------------------------------------------------------------------------------------------------------

std::string Printer::params(const std::vector<ast::Param>& list) {
  std::string out;
  for (const ast::Param& p : list) {
    out += (out.empty() ? "" : comma) + p.name.text + ": " + type(*p.type);
    if (p.default_value) out += " = " + expr(*p.default_value);
  }
  return "(" + out + ")";
}

std::string Printer::result(const std::vector<ast::ResultItem>& list) {
  std::string out;
  for (const ast::ResultItem& r : list) { out += (out.empty() ? "" : comma) + (r.name ? r.name->text + ": " : "") + type(*r.type); }
  return list.size() == 1 ? out : "(" + out + ")";
}

std::string Printer::signature(const ast::Signature& s) {
  return (s.is_forward ? "forward" : "entry " + s.name.text) + params(s.params) +
         (s.result ? std::string(1, soft) + "-> " + result(*s.result) : "");
}

std::string Printer::head(const ast::ModuleDecl& m) {
  std::string out = (m.is_model ? "model " : "module ") + m.name.text;
  if (m.has_params || !m.params.empty()) out += params(m.params);
  if (m.base) out += std::string(1, soft) + "extends " + m.base->text + (m.base_args ? args(*m.base_args) : "()");
  return out;
}

std::string Printer::at(const std::optional<ast::At>& a) {
  if (!a) return {};
  return a->self ? " at ." : " at " + tensor(a->path);
}

void Printer::member(const ast::Item& i) {
  auto condition = [&](const ast::ExprPtr& e) { return e ? std::string(1, soft) + "if " + expr(*e) : std::string(); };
  if (const auto* p = ast::try_as<ast::ParamMember>(i)) {
    return line(word(p->override_) + "param " + p->name.text + at(p->at) + ": " + type(*p->type) +
                (p->default_value ? " = " + expr(*p->default_value) : "") + condition(p->condition));
  }
  if (const auto* c = ast::try_as<ast::ConstMember>(i)) {
    return line(word(c->override_) + "const " + c->name.text + ": " + type(*c->type) + " = " + expr(*c->value));
  }
  if (const auto* s = ast::try_as<ast::StateMember>(i)) {
    return line(word(s->override_) + "state " + s->name.text + ": " + expr(*s->value) + condition(s->condition));
  }
  if (const auto* c = ast::try_as<ast::ChildMember>(i)) {
    return line(word(c->override_) + c->name.text + at(c->at) + ": " + expr(*c->value) + condition(c->condition));
  }
  if (const auto* m = ast::try_as<ast::MethodMember>(i)) { return block(word(m->override_) + signature(m->signature), m->body); }
  const auto& c = ast::as<ast::CheckpointMember>(i);
  rules(word(c.override_) + "checkpoint " + c.format.text + (c.architecture ? " " + quote(c.architecture->value) : ""), c.rules);
}

void Printer::function(const ast::FunctionDecl& f) {
  const std::string text = "fn " + f.name.text + "(" + joined(f.params) + ")";
  if (f.block) return block(text, *f.block);
  line(text + " =" + soft + expr(*f.value));
}

void Printer::block(const std::string& text, const ast::Block& b) {
  braces(text, b.statements.empty(), [&] {
    for (const ast::StatementPtr& s : b.statements) statement(*s);
  });
}

void Printer::statement(const ast::Statement& s) {
  switch (s.kind) {
    case ast::StatementKind::let: {
      const auto& l = ast::as<ast::LetStatement>(s);
      const std::string names = l.names.size() == 1 ? l.names.front().text : "(" + joined(l.names) + ")";
      return line("let " + names + " = " + expr(*l.value));
    }
    case ast::StatementKind::for_: {
      const auto& f = ast::as<ast::ForStatement>(s);
      return block("for " + f.variable.text + " in " + expr(*f.source), f.body);
    }
    case ast::StatementKind::return_: return line("return " + exprs(ast::as<ast::ReturnStatement>(s).values));
    case ast::StatementKind::assign: {
      const auto& a = ast::as<ast::AssignStatement>(s);
      return line(a.name.text + " = " + expr(*a.value));
    }
    case ast::StatementKind::call: {
      const auto& c = ast::as<ast::CallStatement>(s);
      return line(c.path.text() + args(c.args));
    }
  }
}

// --- Operations, encodings, sections --------------------------------------------------------------------------------

std::string Printer::kernel(const ast::Kernel& k) {
  const std::string blank(1, soft);
  std::string out = k.backend.text + " " + quote(k.file.value);
  if (k.local_size) out += blank + "local_size " + expr(*k.local_size);
  if (k.dispatch) out += blank + "dispatch " + expr(*k.dispatch);
  if (!k.required.empty()) out += blank + "requires " + joined(k.required);
  return out + when(k.when);
}

void Printer::op(const ast::OpDecl& o) {
  braces("op " + o.name.text + params(o.params) + soft + "-> " + result(o.result), false, [&] {
    if (o.reference_block) {
      block("reference", *o.reference_block);
    } else {
      line("reference " + expr(*o.reference));
    }
    for (const ast::Kernel& k : o.kernels) line(kernel(k));
  });
}

void Printer::encoding(const ast::EncodingDecl& e) {
  const std::string params_text = e.has_params || !e.params.empty() ? params(e.params) : "";
  braces("encoding " + e.name.text + params_text + " of " + shape(e.shape), false, [&] {
    for (const ast::EncodingPart& p : e.parts) {
      doc(p.doc);
      line("part " + p.name.text + " at " + quote(p.at.value) + ": " + type(*p.type));
    }
    line("value " + expr(*e.value));
  });
}

void Printer::section(const ast::Item& i) {
  if (const auto* s = ast::try_as<ast::PolicySection>(i)) {
    return braces("policy", s->entries.empty(), [&] {
      for (const auto& e : s->entries) line(tensor_list(e.targets) + ": " + e.dtype.text);
    });
  }
  if (const auto* s = ast::try_as<ast::ShardSection>(i)) {
    return braces("shard", s->entries.empty(), [&] {
      for (const auto& e : s->entries) line(joined(e.factors, comma) + " over " + e.over.text);
    });
  }
  if (const auto* s = ast::try_as<ast::QuantizeSection>(i)) {
    return braces("quantize", s->entries.empty(), [&] {
      for (const auto& e : s->entries) {
        line(tensor_list(e.targets) + (e.never_below ? ": never below " : ": ") + e.type.text + (e.or_file ? " or file" : ""));
      }
    });
  }
  const auto& s = ast::as<ast::PlaceSection>(i);
  braces("place", s.entries.empty(), [&] {
    for (const auto& e : s.entries) {
      line(tensor(e.target) + (e.range ? "[" + range(*e.range) + "]" : "") + ": " + e.device.text + "(" + print(e.number) + ")");
    }
  });
}

// --- Tests ----------------------------------------------------------------------------------------------------------

void Printer::test(const ast::TestDecl& t) {
  braces("test " + quote(t.name.value), t.items.empty(), [&] {
    for (const ast::TestItemPtr& i : t.items) test_item(*i);
  });
}

std::string Printer::object(const ast::Object& o) {
  std::string out;
  for (const ast::Object::Entry& e : o.entries) { out += soft + e.key.text + ": " + (e.object ? object(*e.object) : expr(*e.value)); }
  return "{" + out + (out.empty() ? "}" : " }");
}

void Printer::test_item(const ast::TestItem& t) {
  switch (t.kind) {
    case ast::TestItemKind::op: return line("op " + ast::as<ast::OpTestItem>(t).name.text);
    case ast::TestItemKind::config: {
      const auto& c = ast::as<ast::ConfigTestItem>(t);
      std::string out = "config";
      if (c.file) out += " " + quote(c.file->value);
      if (c.file && c.values) out += " with";
      return line(out + (c.values ? " " + object(*c.values) : ""));
    }
    case ast::TestItemKind::checkpoint: {
      const auto& c = ast::as<ast::CheckpointTestItem>(t);
      return line("checkpoint " + (c.file ? quote(c.file->value) : "random " + print(*c.seed)));
    }
    case ast::TestItemKind::input: {
      const auto& i = ast::as<ast::InputTestItem>(t);
      return line("input " + i.name.text + " = " + expr(*i.value));
    }
    case ast::TestItemKind::expect: {
      const auto& e = ast::as<ast::ExpectTestItem>(t);
      return line("expect " + quote(e.file.value) + " within " + expr(*e.within));
    }
    case ast::TestItemKind::error: {
      const auto& e = ast::as<ast::ErrorTestItem>(t);
      return line("error " + e.code.text + (e.text ? " " + quote(e.text->value) : ""));
    }
    case ast::TestItemKind::same: {
      const auto& s = ast::as<ast::SameTestItem>(t);
      std::string runs;
      for (const auto& run : s.runs) runs += (runs.empty() ? "" : comma) + calls(run, std::string(1, soft) + "+ ");
      return line("same " + runs + soft + "within " + expr(*s.within));
    }
  }
}

// --- Whole things ---------------------------------------------------------------------------------------------------

std::string print(const ast::File& file) {
  Printer p;
  p.file(file);
  return p.take();
}

std::string print(const ast::Item& item) {
  Printer p;
  p.item(item);
  return p.take();
}

std::string print(const ast::Statement& statement) {
  Printer p;
  p.statement(statement);
  return p.take();
}

std::string print(const ast::Rule& rule) {
  Printer p;
  p.rule(rule);
  return p.take();
}

}  // namespace modelc::syntax
