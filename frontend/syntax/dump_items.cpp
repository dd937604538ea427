// Files, declarations, members, rules, tests.
#include "frontend/syntax/dump.h"
#include "frontend/syntax/dumper.h"
#include "frontend/syntax/printer.h"

namespace modelc::syntax {

namespace {

std::string joined(const std::vector<ast::Path>& paths, const char* between) {
  std::string out;
  for (const ast::Path& p : paths) out += (out.empty() ? "" : between) + p.text();
  return out;
}

std::string word(const std::optional<ast::Span>& override_) { return override_ ? "override " : ""; }

}  // namespace

void Dumper::file(const ast::File& f) {
  node("file language " + print(f.language), [&] {
    for (const ast::Import& i : f.imports) line("import " + i.path.text() + (i.alias ? " as " + i.alias->text : ""));
    items(f.decls);
  });
}

void Dumper::items(const std::vector<ast::ItemPtr>& list) {
  for (const ast::ItemPtr& i : list) item(*i);
}

void Dumper::doc(const std::string& text) {
  if (!text.empty()) line("doc " + quote(text));
}

void Dumper::params(const std::vector<ast::Param>& list) {
  for (const ast::Param& p : list) {
    node("param " + p.name.text, [&] {
      type(*p.type);
      expr("default", p.default_value);
    });
  }
}

void Dumper::result(const std::vector<ast::ResultItem>& list) {
  for (const ast::ResultItem& r : list) {
    node(r.name ? "result " + r.name->text : std::string("result"), [&] { type(*r.type); });
  }
}

void Dumper::signature(const ast::Signature& s) {
  node((s.is_forward ? "" : "entry ") + s.name.text, [&] {
    params(s.params);
    if (s.result) result(*s.result);
  });
}

void Dumper::item(const ast::Item& i) {
  doc(i.doc);
  auto at = [&](const std::optional<ast::At>& a) {
    if (a) line("at " + (a->self ? std::string(".") : tensor(a->path)));
  };
  auto keys = [](const std::vector<ast::KeyPattern>& list) {
    std::string out;
    for (const ast::KeyPattern& k : list) out += " " + (k.quoted ? quote(k.string.value) : k.text());
    return out;
  };
  switch (i.kind) {
    case ast::ItemKind::axis: {
      const auto& a = ast::as<ast::AxisDecl>(i);
      return node("axis " + a.name.text, [&] {
        range("in", a.range);
        expr("by", a.step);
      });
    }
    case ast::ItemKind::config: {
      const auto& c = ast::as<ast::ConfigDecl>(i);
      return node("config " + c.name.text + (c.file ? " file " + quote(c.file->value) : "") + (c.base ? " extends " + c.base->text : ""),
                  [&] { items(c.items); });
    }
    case ast::ItemKind::variant: {
      const auto& v = ast::as<ast::VariantDecl>(i);
      return node("variant " + v.name.text + " by " + joined(v.tag_keys, " | "), [&] {
        for (const ast::VariantCase& c : v.cases) {
          doc(c.doc);
          std::string tags;
          for (const ast::String& t : c.tags) tags += " " + quote(t.value);
          node("case" + tags, [&] { items(c.items); });
        }
      });
    }
    case ast::ItemKind::interface: {
      const auto& d = ast::as<ast::InterfaceDecl>(i);
      return node("interface " + d.name.text, [&] {
        params(d.params);
        for (const ast::Signature& s : d.signatures) signature(s);
      });
    }
    case ast::ItemKind::module: {
      const auto& m = ast::as<ast::ModuleDecl>(i);
      return node((m.is_model ? "model " : "module ") + m.name.text, [&] {
        params(m.params);
        if (m.base) {
          node("extends " + m.base->text, [&] {
            if (m.base_args) args(*m.base_args);
          });
        }
        items(m.members);
      });
    }
    case ast::ItemKind::function: {
      const auto& f = ast::as<ast::FunctionDecl>(i);
      return node("fn " + f.name.text + "(" + names(f.params) + ")", [&] {
        expr("", f.value);
        if (f.block) block(*f.block);
      });
    }
    case ast::ItemKind::op: {
      const auto& o = ast::as<ast::OpDecl>(i);
      return node("op " + o.name.text, [&] {
        params(o.params);
        result(o.result);
        expr("reference", o.reference);
        if (o.reference_block) node("reference", [&] { block(*o.reference_block); });
        for (const ast::Kernel& k : o.kernels) {
          node("kernel " + k.backend.text + " " + quote(k.file.value), [&] {
            expr("local_size", k.local_size);
            expr("dispatch", k.dispatch);
            if (!k.required.empty()) line("requires " + names(k.required));
            expr("when", k.when);
          });
        }
      });
    }
    case ast::ItemKind::encoding: {
      const auto& e = ast::as<ast::EncodingDecl>(i);
      return node("encoding " + e.name.text, [&] {
        params(e.params);
        shape(e.shape);
        for (const ast::EncodingPart& p : e.parts) {
          doc(p.doc);
          node("part " + p.name.text + " at " + quote(p.at.value), [&] { type(*p.type); });
        }
        expr("value", *e.value);
      });
    }
    case ast::ItemKind::test: {
      const auto& t = ast::as<ast::TestDecl>(i);
      return node("test " + quote(t.name.value), [&] {
        for (const ast::TestItemPtr& one : t.items) test_item(*one);
      });
    }
    case ast::ItemKind::field: {
      const auto& f = ast::as<ast::FieldItem>(i);
      return node(word(f.override_) + "field " + names(f.names), [&] {
        type(*f.type);
        if (f.range) range("in", *f.range);
        if (!f.from.empty()) line("from " + joined(f.from, " | "));
        expr("default", f.default_value);
      });
    }
    case ast::ItemKind::let: {
      const auto& l = ast::as<ast::LetItem>(i);
      return node("let " + l.name.text, [&] { expr("", *l.value); });
    }
    case ast::ItemKind::require: {
      const auto& r = ast::as<ast::RequireItem>(i);
      return node(r.message ? "require " + quote(r.message->value) : std::string("require"), [&] { expr("", *r.condition); });
    }
    case ast::ItemKind::refuse: return line("refuse" + keys(ast::as<ast::RefuseItem>(i).keys));
    case ast::ItemKind::ignore: return line("ignore" + keys(ast::as<ast::IgnoreItem>(i).keys));
    case ast::ItemKind::remove: {
      const auto& r = ast::as<ast::RemoveItem>(i);
      return line(std::string("remove ") + (r.checkpoint ? "checkpoint " : "") + r.name.text);
    }
    case ast::ItemKind::context: return node("context", [&] { expr("", *ast::as<ast::ContextMember>(i).value); });
    case ast::ItemKind::param: {
      const auto& p = ast::as<ast::ParamMember>(i);
      return node(word(p.override_) + "weight " + p.name.text, [&] {
        at(p.at);
        type(*p.type);
        expr("default", p.default_value);
        expr("if", p.condition);
      });
    }
    case ast::ItemKind::constant: {
      const auto& c = ast::as<ast::ConstMember>(i);
      return node(word(c.override_) + "const " + c.name.text, [&] {
        type(*c.type);
        expr("", *c.value);
      });
    }
    case ast::ItemKind::state: {
      const auto& s = ast::as<ast::StateMember>(i);
      return node(word(s.override_) + "state " + s.name.text, [&] {
        expr("", *s.value);
        expr("if", s.condition);
      });
    }
    case ast::ItemKind::child: {
      const auto& c = ast::as<ast::ChildMember>(i);
      return node(word(c.override_) + "child " + c.name.text, [&] {
        at(c.at);
        expr("", *c.value);
        expr("if", c.condition);
      });
    }
    case ast::ItemKind::method: {
      const auto& m = ast::as<ast::MethodMember>(i);
      return node(word(m.override_) + "method", [&] {
        signature(m.signature);
        block(m.body);
      });
    }
    case ast::ItemKind::checkpoint: {
      const auto& c = ast::as<ast::CheckpointMember>(i);
      return node(word(c.override_) + "checkpoint " + c.format.text + (c.architecture ? " " + quote(c.architecture->value) : ""),
                  [&] { rules(c.rules); });
    }
    case ast::ItemKind::policy:
    case ast::ItemKind::shard:
    case ast::ItemKind::quantize:
    case ast::ItemKind::place: return section(i);
  }
}

void Dumper::block(const ast::Block& b) {
  for (const ast::StatementPtr& s : b.statements) statement(*s);
}

void Dumper::statement(const ast::Statement& s) {
  switch (s.kind) {
    case ast::StatementKind::let: {
      const auto& l = ast::as<ast::LetStatement>(s);
      return node("let " + names(l.names), [&] { expr("", *l.value); });
    }
    case ast::StatementKind::for_: {
      const auto& f = ast::as<ast::ForStatement>(s);
      return node("for " + f.variable.text, [&] {
        expr("in", *f.source);
        block(f.body);
      });
    }
    case ast::StatementKind::return_: return node("return", [&] { exprs(ast::as<ast::ReturnStatement>(s).values); });
    case ast::StatementKind::assign: {
      const auto& a = ast::as<ast::AssignStatement>(s);
      return node("assign " + a.name.text, [&] { expr("", *a.value); });
    }
    case ast::StatementKind::call: {
      const auto& c = ast::as<ast::CallStatement>(s);
      return node("call " + c.path.text(), [&] { args(c.args); });
    }
  }
}

void Dumper::rules(const std::vector<ast::RulePtr>& list) {
  for (const ast::RulePtr& r : list) rule(*r);
}

void Dumper::calls(const char* role, const std::vector<ast::Call>& list) {
  for (const ast::Call& c : list) {
    node(std::string(role) + " " + c.name.text + (c.args ? "()" : ""), [&] {
      if (c.args) args(*c.args);
    });
  }
}

void Dumper::rule(const ast::Rule& r) {
  switch (r.kind) {
    case ast::RuleKind::map: {
      const auto& m = ast::as<ast::MapRule>(r);
      return node("map " + tensors(m.file.items) + " = " + tensors(m.model.items), [&] {
        calls("via", m.via);
        expr("when", m.when);
      });
    }
    case ast::RuleKind::via: {
      const auto& v = ast::as<ast::ViaRule>(r);
      return node("via " + tensor(v.tensor), [&] {
        calls("via", v.via);
        expr("when", v.when);
      });
    }
    case ast::RuleKind::alias: {
      const auto& a = ast::as<ast::AliasRule>(r);
      return node("alias " + tensor(a.alias) + " = " + tensor(a.target), [&] { expr("when", a.when); });
    }
    case ast::RuleKind::ignore: {
      const auto& i = ast::as<ast::IgnoreRule>(r);
      return node("ignore " + tensors(i.tensors), [&] { expr("when", i.when); });
    }
    case ast::RuleKind::encode: {
      const auto& e = ast::as<ast::EncodeRule>(r);
      return node("encode " + tensor(e.tensor), [&] {
        expr("as", *e.encoding);
        expr("when", e.when);
      });
    }
    case ast::RuleKind::one_of:
      return node("one_of", [&] {
        for (const auto& a : ast::as<ast::OneOfRule>(r).alternatives) {
          node("alternative " + a.name.text, [&] { rules(a.rules); });
        }
      });
    case ast::RuleKind::for_: {
      const auto& f = ast::as<ast::ForRule>(r);
      return node("for " + f.module.text, [&] { rules(f.rules); });
    }
    case ast::RuleKind::config:
      return node("config", [&] {
        for (const auto& e : ast::as<ast::ConfigRule>(r).entries) {
          if (e.value) {
            node(e.key.text(), [&] {
              expr("", *e.value);
              expr("when", e.when);
            });
          } else {
            line("ignore " + joined(e.ignored, ", "));
          }
        }
      });
  }
}

void Dumper::section(const ast::Item& i) {
  if (const auto* s = ast::try_as<ast::PolicySection>(i)) {
    return node("policy", [&] {
      for (const auto& e : s->entries) line(tensors(e.targets) + ": " + e.dtype.text);
    });
  }
  if (const auto* s = ast::try_as<ast::ShardSection>(i)) {
    return node("shard", [&] {
      for (const auto& e : s->entries) line(joined(e.factors, ", ") + " over " + e.over.text);
    });
  }
  if (const auto* s = ast::try_as<ast::QuantizeSection>(i)) {
    return node("quantize", [&] {
      for (const auto& e : s->entries) {
        line(tensors(e.targets) + (e.never_below ? ": never below " : ": ") + e.type.text + (e.or_file ? " or file" : ""));
      }
    });
  }
  const auto& s = ast::as<ast::PlaceSection>(i);
  node("place", [&] {
    for (const auto& e : s.entries) {
      node(tensor(e.target) + ": " + e.device.text + " " + print(e.number), [&] {
        if (e.range) range("range", *e.range);
      });
    }
  });
}

void Dumper::object(const ast::Object& o) {
  for (const ast::Object::Entry& e : o.entries) {
    node("key " + e.key.text, [&] {
      if (e.object) node("object", [&] { object(*e.object); });
      expr("", e.value);
    });
  }
}

void Dumper::test_item(const ast::TestItem& t) {
  switch (t.kind) {
    case ast::TestItemKind::op: return line("op " + ast::as<ast::OpTestItem>(t).name.text);
    case ast::TestItemKind::config: {
      const auto& c = ast::as<ast::ConfigTestItem>(t);
      return node("config" + (c.file ? " " + quote(c.file->value) : std::string()), [&] {
        if (c.values) object(*c.values);
      });
    }
    case ast::TestItemKind::checkpoint: {
      const auto& c = ast::as<ast::CheckpointTestItem>(t);
      return line("checkpoint " + (c.file ? quote(c.file->value) : "random " + print(*c.seed)));
    }
    case ast::TestItemKind::input: {
      const auto& i = ast::as<ast::InputTestItem>(t);
      return node("input " + i.name.text, [&] { expr("", *i.value); });
    }
    case ast::TestItemKind::expect: {
      const auto& e = ast::as<ast::ExpectTestItem>(t);
      return node("expect " + quote(e.file.value), [&] { expr("within", *e.within); });
    }
    case ast::TestItemKind::error: {
      const auto& e = ast::as<ast::ErrorTestItem>(t);
      return line("error " + e.code.text + (e.text ? " " + quote(e.text->value) : std::string()));
    }
    case ast::TestItemKind::same: {
      const auto& s = ast::as<ast::SameTestItem>(t);
      return node("same", [&] {
        for (const auto& run : s.runs) node("run", [&] { calls("step", run); });
        expr("within", *s.within);
      });
    }
  }
}

std::string dump(const ast::File& file) {
  Dumper d;
  d.file(file);
  return d.take();
}

}  // namespace modelc::syntax
