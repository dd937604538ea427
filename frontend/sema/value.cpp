#include "frontend/sema/value.h"

#include <cassert>

#include "frontend/sema/config.h"

namespace modelc::sema {

struct Value::Payload {
  virtual ~Payload() = default;
};

template <class T> struct Value::Holder : Value::Payload {
  explicit Holder(T v) : value(std::move(v)) {}
  T value;
};

template <class T> const T& Value::held() const { return static_cast<const Holder<T>&>(*payload_).value; }

template <class T> Value Value::make(ValueKind kind, T payload) {
  Value v;
  v.kind_ = kind;
  v.payload_ = std::make_shared<const Holder<T>>(std::move(payload));
  return v;
}

namespace {
using Entries = std::vector<std::pair<std::string, Value>>;
}

Value Value::none(const VariantDef* of, FormulaPtr formula) {
  Value v;
  v.kind_ = ValueKind::none;
  v.pointer_ = of;
  v.formula_ = std::move(formula);
  return v;
}

Value Value::boolean(bool b, FormulaPtr formula) {
  Value v;
  v.kind_ = ValueKind::boolean;
  v.boolean_ = b;
  v.formula_ = std::move(formula);
  return v;
}

Value Value::integer(std::int64_t i, FormulaPtr formula) {
  Value v;
  v.kind_ = ValueKind::integer;
  v.integer_ = i;
  v.formula_ = std::move(formula);
  return v;
}

Value Value::real(double d, FormulaPtr formula) {
  Value v;
  v.kind_ = ValueKind::real;
  v.real_ = d;
  v.formula_ = std::move(formula);
  return v;
}

Value Value::string(std::string s, FormulaPtr formula) {
  Value v = make(ValueKind::string, std::move(s));
  v.formula_ = std::move(formula);
  return v;
}

Value Value::list(std::vector<Value> items) { return make(ValueKind::list, std::move(items)); }
Value Value::tuple(std::vector<Value> items) { return make(ValueKind::tuple, std::move(items)); }
Value Value::map(Entries entries) { return make(ValueKind::map, std::move(entries)); }

Value Value::config(const ConfigInstance* instance) {
  Value v;
  v.kind_ = ValueKind::config;
  v.pointer_ = instance;
  return v;
}

Value Value::variant(const VariantInstance* instance) {
  Value v;
  v.kind_ = ValueKind::variant;
  v.pointer_ = instance;
  return v;
}

Value Value::recipe(Recipe recipe) { return make(ValueKind::recipe, std::move(recipe)); }

Value Value::interface(const Symbol* symbol) {
  Value v;
  v.kind_ = ValueKind::interface;
  v.pointer_ = symbol;
  return v;
}

Value Value::encoding(Recipe recipe) { return make(ValueKind::encoding, std::move(recipe)); }
Value Value::closure(Closure closure) { return make(ValueKind::closure, std::move(closure)); }

Value Value::builtin(const Builtin* function) {
  Value v;
  v.kind_ = ValueKind::builtin;
  v.pointer_ = function;
  return v;
}

Value Value::op(const Symbol* symbol) {
  Value v;
  v.kind_ = ValueKind::op;
  v.pointer_ = symbol;
  return v;
}

Value Value::files(const FileSymbols* file) {
  Value v;
  v.kind_ = ValueKind::files;
  v.pointer_ = file;
  return v;
}

Value Value::dim(const graph::DimTable& dims, graph::DimId id, FormulaPtr formula) {
  if (const auto value = dims.value(id)) return integer(*value, std::move(formula));
  Value v;
  v.kind_ = ValueKind::dim;
  v.dim_ = id.index;
  // A dim is shown by its formula, so it always has one.
  v.formula_ = formula ? std::move(formula) : constant_formula(dims.text(id));
  return v;
}

Value Value::tensor(GraphValue value) {
  assert(value.type.kind == graph::TypeKind::tensor);
  return make(ValueKind::tensor, std::move(value));
}

Value Value::batch(GraphValue value) {
  assert(value.type.kind != graph::TypeKind::tensor);
  return make(ValueKind::batch, std::move(value));
}

Value Value::member(std::shared_ptr<const Member> member) { return make(ValueKind::member, std::move(member)); }
Value Value::absent(AbsentMember member) { return make(ValueKind::absent, std::move(member)); }

bool Value::as_bool() const {
  assert(kind_ == ValueKind::boolean);
  return boolean_;
}

std::int64_t Value::as_int() const {
  assert(kind_ == ValueKind::integer);
  return integer_;
}

double Value::as_real() const {
  assert(is_number());
  return kind_ == ValueKind::real ? real_ : static_cast<double>(integer_);
}

const std::string& Value::as_string() const {
  assert(kind_ == ValueKind::string);
  return held<std::string>();
}

const std::vector<Value>& Value::items() const {
  assert(kind_ == ValueKind::list || kind_ == ValueKind::tuple);
  return held<std::vector<Value>>();
}

const Entries& Value::entries() const {
  assert(kind_ == ValueKind::map);
  return held<Entries>();
}

const ConfigInstance& Value::as_config() const {
  assert(kind_ == ValueKind::config);
  return *static_cast<const ConfigInstance*>(pointer_);
}

const VariantInstance& Value::as_variant() const {
  assert(kind_ == ValueKind::variant);
  return *static_cast<const VariantInstance*>(pointer_);
}

const Recipe& Value::as_recipe() const {
  assert(kind_ == ValueKind::recipe || kind_ == ValueKind::encoding);
  return held<Recipe>();
}

const Closure& Value::as_closure() const {
  assert(kind_ == ValueKind::closure);
  return held<Closure>();
}

const Builtin& Value::as_builtin() const {
  assert(kind_ == ValueKind::builtin);
  return *static_cast<const Builtin*>(pointer_);
}

const Symbol& Value::as_symbol() const {
  assert(kind_ == ValueKind::interface || kind_ == ValueKind::op);
  return *static_cast<const Symbol*>(pointer_);
}

const FileSymbols& Value::as_files() const {
  assert(kind_ == ValueKind::files);
  return *static_cast<const FileSymbols*>(pointer_);
}

graph::DimId Value::as_dim() const {
  assert(kind_ == ValueKind::dim);
  return graph::DimId{dim_};
}

const GraphValue& Value::as_graph() const {
  assert(kind_ == ValueKind::tensor || kind_ == ValueKind::batch);
  return held<GraphValue>();
}

const std::shared_ptr<const Member>& Value::as_member() const {
  assert(kind_ == ValueKind::member);
  return held<std::shared_ptr<const Member>>();
}

const AbsentMember& Value::as_absent() const {
  assert(kind_ == ValueKind::absent);
  return held<AbsentMember>();
}

const VariantDef* Value::none_of() const {
  assert(kind_ == ValueKind::none);
  return static_cast<const VariantDef*>(pointer_);
}

bool Value::is_static() const {
  switch (kind_) {
    case ValueKind::tensor:
    case ValueKind::batch:
    case ValueKind::member:
    case ValueKind::absent: return false;
    case ValueKind::list:
    case ValueKind::tuple:
      for (const Value& item : items()) {
        if (!item.is_static()) return false;
      }
      return true;
    default: return true;
  }
}

Value Value::with_formula(FormulaPtr formula) const {
  Value v = *this;
  v.formula_ = std::move(formula);
  return v;
}

const ast::ModuleDecl& Recipe::module() const { return ast::as<ast::ModuleDecl>(*symbol->decl); }

const ConfigField* ConfigInstance::find(std::string_view name) const {
  for (const ConfigField& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

void ConfigInstance::mark_read(std::string_view name) const {
  read.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) read[i] = true;
  }
}

}  // namespace modelc::sema
