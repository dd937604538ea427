// The typed graph: what a model computes, with every name resolved, every shape known, nothing fused and nothing unrolled.
//
// A Module is a set of classes. A class stands for one distinct instance of a user's module (definition, arguments, which
// members are present); instances that differ only in weights, state slot or position in a list share it. It owns the
// members (weights, consts, states, children) and its functions (forward, entries, one function per const). Values are in
// SSA form; a stack of layers is one `repeat` with a body. Calls of leaf modules (no children, no state: linear, norm,
// embedding, rope) are expanded in place, so that lowering sees norm + linear; the leaf's class stays, as the owner of
// its weights, and the value that the call gave carries the leaf's path as its `stage`.
//
// text: frontend/graph/printer.h · reader: reader.h · rules: verifier.h · meaning: eval/
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frontend/graph/dims.h"
#include "runtime/abi/checkpoint_rules.h"
#include "runtime/abi/dtype.h"
#include "runtime/abi/place_rule.h"

namespace modelc::graph {

struct ClassId {
  std::uint32_t index = 0;
  friend bool operator==(ClassId, ClassId) = default;
};
struct FunctionId {
  std::uint32_t index = 0;
  friend bool operator==(FunctionId, FunctionId) = default;
};  // in its class
struct ValueId {
  std::uint32_t index = 0;
  friend bool operator==(ValueId, ValueId) = default;
};           // in its function

// A place in a .model file, as imported ("nn/attention.model"), for comments and messages; line 0: nowhere.
struct Where {
  std::string file;
  int line = 0;
  int column = 0;
};

// ---- types ----------------------------------------------------------------------------------------------------------
enum class TypeKind : std::uint8_t {
  tensor,      // dtype and shape
  batch,       // the tokens of one call: `at: Batch`
  sequences,   // which sequences: `at: Sequences`
};
struct Type {
  TypeKind kind = TypeKind::tensor;
  DType dtype = DType::f32;
  std::vector<DimId> shape;                      // [] is one number
  std::optional<DimId> index_bound;              // index(n): dtype i32, values in 0..n (exclusive)
  friend bool operator==(const Type&, const Type&) = default;
};

// ---- members --------------------------------------------------------------------------------------------------------
enum class WeightRole : std::uint8_t { matrix, table, vector };   // used by a product; by rows (take); else

// A weight as declared, relative to its class. The same record feeds the checker, the generated struct, the loader's
// table and the manifest. The full name of an instance's weight is the instance's path, a dot, and `path`.
struct WeightDecl {
  std::string name;                              // member name: "weight"
  std::string path;                              // "weight", or what `at` says
  Type type;                                     // shape known at compile time
  std::string shape_text;                        // the formula as written: "[heads * d, c.hidden_size]"
  std::string shape_numbers;                     // the same in numbers: "[4 * 16, 40]"; "" when that says no more
  std::vector<std::string> origins;              // "hidden_size = 40 from config.json:12", one per config value in it
  std::optional<DType> required_dtype;           // none: any float or block encoding, as stored
  WeightRole role = WeightRole::vector;
  std::optional<double> default_value;           // filled with it when the checkpoint has none
  Where where;
};

struct ConstDecl {                               // computed at load by the function `init` (no inputs, one result)
  std::string name;
  Type type;
  FunctionId init;
  Where where;
};

enum class StateKind : std::uint8_t { kv_cache, latent_cache, cross_cache, ring, recurrent };
struct StateDecl {
  std::string name;
  StateKind kind = StateKind::kv_cache;
  std::vector<std::int64_t> sizes;               // kv_cache: heads, dim, value_dim; latent_cache: rank, rope;
                                   // cross_cache: n, heads, dim; ring: n, shape...; recurrent: shape...
  std::optional<std::int64_t> window; // the widest window that reads it; none: all positions
  Where where;
};

struct ChildDecl {
  std::string name; // "layers"
  std::string path; // "layers", or what `at` says; "" for `at .`
  bool list = false;
  std::vector<ClassId> elements; // one, or one per element of the list
  Where where;
};

// ---- functions ------------------------------------------------------------------------------------------------------
using AttrValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<double>>;

struct Value {
  Type type;
  std::string name; // the user's name ("q"), or "" (the printer numbers it)
  std::string stage; // path below this class when it is a child's result: "q_proj"; or "".
                     // Only of expanded leaves: a call names its child already
};

// Kinds that ops.h's table describes are computations; these few are structure.
enum class OpKind : std::uint16_t; // frontend/graph/ops.h

// A shader that comes with a model file, as text: it computes what the body of a custom operation does, on tensors of f32 and
// i32, as a device has them.
struct Shader {
  std::string op;   // the operation's name: "xielu"
  std::string file; // "xielu.comp", beside the model file
  std::string text;
  std::vector<std::string> required;    // features of a device: "float16"
  Where where;                          // its line in the model file
};
// C++ that comes with a model file and was allowed: a function of the operation's name, for the CPU.
struct HostCode {
  std::string op;
  std::string file; // "xielu.h"
  std::string text;
  std::vector<DType> inputs, results; // of their elements
  Where where;
};
// How a call of a custom operation runs as one of its shaders; the first whose features a device has is taken.
struct Dispatch {
  int shader = 0; // Module::shaders
  std::int64_t local_size = 64;
  std::vector<DimId> groups; // workgroups along one to three axes
  friend bool operator==(const Dispatch&, const Dispatch&) = default;
};
struct Custom {
  std::string name;
  std::vector<DimId> sizes; // of the axes that its inputs name, `...` being one: what a shader is told
  std::vector<Dispatch> dispatches;
  int host = -1; // Module::host_code; none
  friend bool operator==(const Custom&, const Custom&) = default;
};

struct Op;
struct Block {
  std::vector<ValueId> arguments; // of a repeat: the element is implicit, then the carried values
  std::vector<Op> ops;
  std::vector<ValueId> results;
};

struct Op {
  OpKind kind{};
  std::vector<std::optional<ValueId>> operands; // an absent optional operand is none (its place is kept)
  std::vector<ValueId> results;
  std::map<std::string, AttrValue> attrs; // ordered, so that printing is stable
  std::string member; // weight, constant, state, call, repeat: member path ("q_proj.weight");
                      // call inside repeat: "" = the loop's element. state ops: the state.
                      // A leading dot: below the loop's element (members.h)
  std::string callee; // call: function name in the child's class ("forward")
  std::optional<Block> body; // repeat; moe: what stands between an expert's products; custom: its reference
  std::optional<Custom> custom; // custom: what else can compute it
  std::string source; // the expression as written: "q_proj(x)"
  Where where;
  Where call; // of a text that was expanded here, a leaf's or a fn's: its call in the
              // function's own text; line 0 of all else
};

enum class FunctionKind : std::uint8_t { forward, entry, init }; // init: the value of a const, at load
struct Parameter {
  ValueId value;
  std::string name;
  std::optional<double> default_value; // an input that may be left out
};
struct Function {
  std::string name; // "forward", an entry's name, "freqs" for an init
  FunctionKind kind = FunctionKind::forward;
  std::vector<Value> values;
  std::vector<Parameter> inputs; // a Batch is an input of TypeKind::batch
  Block body;
  std::vector<std::string> result_names; // "" when unnamed
  std::string signature; // as written: "forward(x: [tokens, c.hidden_size], at: Batch) -> …"
  Where where;
};

struct Class {
  std::string name; // unique, a legal identifier: "Attention", "Attention_2"
  std::string definition; // the module's name in the language: "Attention"
  std::string arguments; // "size: 576, heads: 9, …", for comments
  bool leaf = false; // its calls are expanded in their callers: no functions but inits
  std::vector<WeightDecl> weights;
  std::vector<ConstDecl> consts;
  std::vector<StateDecl> states;
  std::vector<ChildDecl> children;
  std::vector<Function> functions;
  std::vector<std::pair<char, std::uint32_t>> order; // all members as declared: 'w', 'c', 's', 'm' and the index there
  Where where;
};

// ---- checkpoint -----------------------------------------------------------------------------------------------------
// Rules with whole names (patterns over components, language.md section 5), already joined from all modules; the same
// matcher (runtime/checkpoint/mapping.h) reads them at compile time and at load.
using CheckpointRules = modelc::MappingRules;

// A line of `policy`: in which type activations (compute), what a loop carries (residual), caches and states are kept, or the
// activations of the modules that a pattern names. Of several that match the last counts; exact arithmetic is f32 throughout.
struct PolicyRule {
  std::string target;
  bool pattern = false;
  DType dtype = DType::f32;
};

struct ConfigFact {
  std::string name;
  std::string type;
  std::variant<std::int64_t, double, bool, std::string> value;
};

struct Module {
  std::string name; // the model's: "Llama"
  std::string file; // "llama.model"
  DimTable dims;
  std::vector<Class> classes; // a class before those that contain it
  ClassId root;
  std::optional<std::int64_t> context; // the longest sequence
  std::vector<CheckpointRules> checkpoints;
  std::vector<PolicyRule> policy;
  std::vector<PlaceRule> placement;        // of `place`: the first that matches counts; devices as DeviceName::text writes them
  std::vector<ConfigFact> config; // scalars of the bound configuration, for the generated Config struct
  std::vector<Shader> shaders; // of custom operations that are called
  std::vector<HostCode> host_code;
  const Class& of(ClassId id) const { return classes[id.index]; }
};

// Every weight of every instance, in declared order (Class::order), depth first. `decl` stays owned by the module.
// For a verified module, which bounds their number.
struct WeightInstance {
  std::string name;
  const WeightDecl* decl;
  Where use; // of a leaf's weight where the leaf is asked for, else the declaration
};
std::vector<WeightInstance> weight_instances(const Module& module);

} // namespace modelc::graph
