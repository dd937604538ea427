#include "frontend/sema/mentions.h"

#include "frontend/sema/walk.h"

namespace modelc::sema {

namespace {

// One walk for both: what is used, what is declared.
class Walk {
 public:
  Walk(const std::function<void(const Mention&)>& visit, const std::function<void(const std::string&)>& declare)
      : visit_(visit), declare_(declare) {}

  void item(const ast::Item& i) {
    switch (i.kind) {
      case ast::ItemKind::axis: {
        const auto& axis = ast::as<ast::AxisDecl>(i);
        range(axis.range);
        expr(axis.step);
        break;
      }
      case ast::ItemKind::config: {
        const auto& config = ast::as<ast::ConfigDecl>(i);
        if (config.base) mention(MentionKind::base, *config.base);
        for (const auto& inner : config.items) item(*inner);
        break;
      }
      case ast::ItemKind::variant:
        for (const auto& one : ast::as<ast::VariantDecl>(i).cases)
          for (const auto& inner : one.items) item(*inner);
        break;
      case ast::ItemKind::interface: {
        const auto& interface = ast::as<ast::InterfaceDecl>(i);
        params(interface.params);
        for (const auto& s : interface.signatures) signature(s);
        break;
      }
      case ast::ItemKind::module: {
        const auto& module = ast::as<ast::ModuleDecl>(i);
        params(module.params);
        if (module.base) mention(MentionKind::base, *module.base);
        if (module.base_args) args(*module.base_args);
        for (const auto& inner : module.members) item(*inner);
        break;
      }
      case ast::ItemKind::function: {
        const auto& function = ast::as<ast::FunctionDecl>(i);
        declare_(function.name.text);
        for (const auto& p : function.params) declare_(p.text);
        expr(function.value);
        if (function.block) block(*function.block);
        break;
      }
      case ast::ItemKind::op: {
        const auto& op = ast::as<ast::OpDecl>(i);
        params(op.params);
        for (const auto& r : op.result) type(*r.type);
        expr(op.reference);
        if (op.reference_block) block(*op.reference_block);
        for (const auto& k : op.kernels) expr(k.local_size), expr(k.dispatch), expr(k.when);
        break;
      }
      case ast::ItemKind::encoding: {
        const auto& encoding = ast::as<ast::EncodingDecl>(i);
        params(encoding.params);
        each_expr(encoding.shape, [&](const ast::Expr& e) { expr(e); });
        for (const auto& p : encoding.parts) declare_(p.name.text), type(*p.type);
        expr(encoding.value);
        break;
      }
      case ast::ItemKind::test:
        for (const auto& inner : ast::as<ast::TestDecl>(i).items) {
          if (const auto* op = ast::try_as<ast::OpTestItem>(*inner)) mention(MentionKind::type, op->name);
          if (const auto* input = ast::try_as<ast::InputTestItem>(*inner)) expr(input->value);
        }
        break;
      case ast::ItemKind::field: {
        const auto& field = ast::as<ast::FieldItem>(i);
        for (const auto& n : field.names) declare_(n.text);
        type(*field.type);
        if (field.range) range(*field.range);
        expr(field.default_value);
        break;
      }
      case ast::ItemKind::let:
        declare_(ast::as<ast::LetItem>(i).name.text);
        expr(ast::as<ast::LetItem>(i).value);
        break;
      case ast::ItemKind::require: expr(ast::as<ast::RequireItem>(i).condition); break;
      case ast::ItemKind::context: expr(ast::as<ast::ContextMember>(i).value); break;
      case ast::ItemKind::param: {
        const auto& param = ast::as<ast::ParamMember>(i);
        declare_(param.name.text);
        type(*param.type);
        expr(param.default_value);
        expr(param.condition);
        break;
      }
      case ast::ItemKind::constant:
        declare_(ast::as<ast::ConstMember>(i).name.text);
        type(*ast::as<ast::ConstMember>(i).type);
        expr(ast::as<ast::ConstMember>(i).value);
        break;
      case ast::ItemKind::state:
        declare_(ast::as<ast::StateMember>(i).name.text);
        expr(ast::as<ast::StateMember>(i).value);
        expr(ast::as<ast::StateMember>(i).condition);
        break;
      case ast::ItemKind::child:
        declare_(ast::as<ast::ChildMember>(i).name.text);
        expr(ast::as<ast::ChildMember>(i).value);
        expr(ast::as<ast::ChildMember>(i).condition);
        break;
      case ast::ItemKind::method:
        declare_(ast::as<ast::MethodMember>(i).signature.name.text);
        signature(ast::as<ast::MethodMember>(i).signature);
        block(ast::as<ast::MethodMember>(i).body);
        break;
      case ast::ItemKind::checkpoint: rules(ast::as<ast::CheckpointMember>(i).rules); break;
      case ast::ItemKind::shard:
        for (const auto& entry : ast::as<ast::ShardSection>(i).entries)
          for (const auto& factor : entry.factors) path(MentionKind::name, factor);
        break;
      case ast::ItemKind::place:
        for (const auto& entry : ast::as<ast::PlaceSection>(i).entries)
          if (entry.range) range(*entry.range);
        break;
      case ast::ItemKind::refuse:
      case ast::ItemKind::ignore:
      case ast::ItemKind::remove:
      case ast::ItemKind::policy:
      case ast::ItemKind::quantize: break;
    }
  }

 private:
  void mention(MentionKind kind, const ast::Name& name) { visit_({kind, name.text, name.span, "", name.span}); }

  void path(MentionKind kind, const ast::Path& p) {
    Mention m{kind, p.parts[0].text, p.parts[0].span, "", p.parts[0].span};
    if (p.parts.size() > 1) m.member = p.parts[1].text, m.whole = source::join(p.parts[0].span, p.parts[1].span);
    visit_(m);
  }

  void expr(const ast::ExprPtr& e) {
    if (e) expr(*e);
  }
  void expr(const ast::Expr& e) {
    if (const auto* name = ast::try_as<ast::NameExpr>(e)) return mention(MentionKind::name, name->name);
    if (const auto* member = ast::try_as<ast::MemberExpr>(e)) {
      if (const auto* object = ast::try_as<ast::NameExpr>(*member->object)) {
        return visit_(
            {MentionKind::name, object->name.text, object->span, member->name.text, source::join(object->span, member->name.span)});
      }
    }
    if (const auto* call = ast::try_as<ast::CallExpr>(e)) argument_names(*call);
    if (const auto* function = ast::try_as<ast::FunctionExpr>(e))
      for (const auto& p : function->params) declare_(p.text);
    if (const auto* list = ast::try_as<ast::ComprehensionExpr>(e)) declare_(list->variable.text);
    if (const auto* match = ast::try_as<ast::MatchExpr>(e))
      for (const auto& arm : match->arms)
        if (arm.binding) declare_(arm.binding->text);
    each_child(e, [&](const ast::Expr& child) { expr(child); });
  }

  void argument_names(const ast::CallExpr& call) {
    const auto* member = ast::try_as<ast::MemberExpr>(*call.callee);
    const auto* name = ast::try_as<ast::NameExpr>(member != nullptr ? *member->object : *call.callee);
    if (name == nullptr) return;
    const std::string of = member != nullptr ? member->name.text : "";
    for (const auto& arg : call.args.items)
      if (arg.name) visit_({MentionKind::argument, name->name.text, arg.name->span, of, arg.name->span});
  }

  void args(const ast::Args& a) {
    for (const auto& arg : a.items) expr(arg.value);
  }
  void range(const ast::Range& r) { expr(r.low), expr(r.high); }

  void type(const ast::Type& t) {
    if (const auto* list = ast::try_as<ast::ListType>(t)) return type(*list->element), expr(list->length);
    if (const auto* map = ast::try_as<ast::MapType>(t)) return type(*map->element);
    if (const auto* named = ast::try_as<ast::NamedType>(t)) path(MentionKind::type, named->path);
    each_expr(t, [&](const ast::Expr& e) { expr(e); });
  }

  void params(const std::vector<ast::Param>& list) {
    for (const auto& p : list) {
      declare_(p.name.text);
      type(*p.type);
      expr(p.default_value);
    }
  }

  void signature(const ast::Signature& s) {
    params(s.params);
    if (!s.result) return;
    for (const auto& r : *s.result) type(*r.type);
  }

  void block(const ast::Block& b) {
    for (const auto& s : b.statements) {
      switch (s->kind) {
        case ast::StatementKind::let:
          for (const auto& n : ast::as<ast::LetStatement>(*s).names) declare_(n.text);
          expr(ast::as<ast::LetStatement>(*s).value);
          break;
        case ast::StatementKind::for_:
          declare_(ast::as<ast::ForStatement>(*s).variable.text);
          expr(ast::as<ast::ForStatement>(*s).source);
          block(ast::as<ast::ForStatement>(*s).body);
          break;
        case ast::StatementKind::return_:
          for (const auto& v : ast::as<ast::ReturnStatement>(*s).values) expr(v);
          break;
        case ast::StatementKind::assign: expr(ast::as<ast::AssignStatement>(*s).value); break;
        case ast::StatementKind::call:
          path(MentionKind::name, ast::as<ast::CallStatement>(*s).path);
          args(ast::as<ast::CallStatement>(*s).args);
          break;
      }
    }
  }

  void calls(const std::vector<ast::Call>& list) {
    for (const auto& c : list)
      if (c.args) args(*c.args);
  }

  void rules(const std::vector<ast::RulePtr>& list) {
    for (const auto& r : list) {
      switch (r->kind) {
        case ast::RuleKind::map: calls(ast::as<ast::MapRule>(*r).via), expr(ast::as<ast::MapRule>(*r).when); break;
        case ast::RuleKind::via: calls(ast::as<ast::ViaRule>(*r).via), expr(ast::as<ast::ViaRule>(*r).when); break;
        case ast::RuleKind::alias: expr(ast::as<ast::AliasRule>(*r).when); break;
        case ast::RuleKind::ignore: expr(ast::as<ast::IgnoreRule>(*r).when); break;
        case ast::RuleKind::encode: expr(ast::as<ast::EncodeRule>(*r).encoding), expr(ast::as<ast::EncodeRule>(*r).when); break;
        case ast::RuleKind::one_of:
          for (const auto& a : ast::as<ast::OneOfRule>(*r).alternatives) rules(a.rules);
          break;
        case ast::RuleKind::for_:
          mention(MentionKind::type, ast::as<ast::ForRule>(*r).module);
          rules(ast::as<ast::ForRule>(*r).rules);
          break;
        case ast::RuleKind::config:              // its other names are keys of a file
          for (const auto& entry : ast::as<ast::ConfigRule>(*r).entries) expr(entry.when);
          break;
      }
    }
  }

  const std::function<void(const Mention&)>& visit_;
  const std::function<void(const std::string&)>& declare_;
};

}  // namespace

void each_mention(const ast::Item& item, const std::function<void(const Mention&)>& visit) {
  const std::function<void(const std::string&)> declare = [](const std::string&) {};
  Walk(visit, declare).item(item);
}

void local_names(const ast::Item& item, std::set<std::string, std::less<>>& into) {
  const std::function<void(const std::string&)> declare = [&](const std::string& name) { into.insert(name); };
  const std::function<void(const Mention&)> visit = [](const Mention&) {};
  Walk(visit, declare).item(item);
}

}  // namespace modelc::sema
