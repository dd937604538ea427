// The module tree at run time: what generated classes derive from. A generated struct lists its members, in declared
// order, in members(); everything else (children, parameters, names, loading) is here, written once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi/dtype.h"
#include "runtime/base/result.h"
#include "runtime/device/matrix.h"
#include "runtime/tensor/tensor.h"

namespace modelc {

class Binder;
class Model;
class Module;
class Step;

// What a weight is used for: by a product, by rows (take), or anything else. The first two stay as stored.
enum class WeightRole : std::uint8_t { matrix, table, vector };

// A weight as declared in the .model file. Generated code fills it in; nothing here depends on a checkpoint.
struct WeightSpec {
  Shape shape;
  const char* formula = "";                                // the shape as written: "[heads * d, c.hidden_size]"
  const char* numbers = "";                                // the same in numbers: "[4 * 16, 40]"; "": no more to say
  const char* where = "";                                  // "llama.model:42:5"
  WeightRole role = WeightRole::vector;
  std::optional<DType> dtype = {};                         // none: any float, as stored
  std::optional<double> default_value = {};                // filled with it when the checkpoint has none
  const char* origins = "";                                // "hidden_size = 40 from config.json:12", one a line
};

// A weight of one instance. After loading a vector is `tensor`, in f32; a matrix or a table is `matrix`, as stored.
struct Weight {
  WeightSpec spec = {};
  Tensor tensor = {};                                      // vector role: the values, f32
  Matrix matrix = {};                                      // matrix and table roles: rows along the last axis, one result
  int member = 0;                                          // which of the model's devices it is on
  std::string source = {};                                 // where it came from: "model.safetensors: lm_head.weight",
                                                           // "alias of model.embed_tokens.weight", "default 1"
  explicit operator bool() const { return tensor || !matrix.blocks.empty(); }
};

struct Const {
  Tensor tensor;
};                           // f32, computed at load, shared by equal instances
// Which store of a State is meant; numbered when the tree is built.
struct StateSlot {
  // With what `sizes` say: heads, dim, value_dim · rank, rope · n, heads, dim · n, then a row's extents · extents.
  enum class Kind : std::uint8_t { kv_cache, latent_cache, cross_cache, ring, recurrent } kind = Kind::kv_cache;
  std::array<std::int64_t, 4> sizes{};
  std::int64_t window = 0;                                 // of a kv_cache: the last positions that are read; 0: all
  DType dtype = DType::f32;                                // of the elements
  DType kept = DType::f16;                                 // of a cache in fast mode: what `policy` says of caches
  int index = -1;
  int member = 0;                                          // which of the model's devices it is on

  bool has_keys() const { return kind == Kind::kv_cache || kind == Kind::cross_cache; }      // a KvCache holds it (kv_cache.h)
  // A cache of a row a position: its rows are narrower in fast mode.
  bool narrows() const { return has_keys() || kind == Kind::latent_cache; }
};
// A value that depends on constants, vectors and the batch alone, computed once a step and shared by instances whose
// inputs are equal; numbered when the weights are bound.
struct StepValue {
  int index = -1;
};

class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void weight(const char* path, Weight& w) = 0;
  virtual void child(const char* path, Module& m) = 0;               // path "" : the members count as the parent's own
  virtual void element(const char* path, std::int64_t i, Module& m) = 0;   // of a list: named path.i
  virtual void state(const char* name, StateSlot& s) = 0;
};

struct NamedParameter {
  std::string name;
  Weight* weight;
};           // name: qualified below the module asked
struct NamedModule {
  std::string name;
  Module* module;
};

class Module {
 public:
  virtual ~Module() = default;
  virtual const char* type_name() const = 0;                           // "LlamaAttention"
  const std::string& qualified_name() const { return path_; }          // "model.layers.0.self_attn"; "" for the root
  int member() const { return member_; }                               // which of the model's devices it is on (Device::enter)
  void set_member(int member) { member_ = member; }                    // the runtime's: generated code and users call to()

  std::vector<NamedModule> children();                                 // direct ones; lists flattened: "layers.0"
  std::vector<NamedModule> descendants();                              // all below, depth first, in declared order
  std::vector<NamedParameter> local_parameters();                      // own weights
  std::vector<NamedParameter> parameters();                            // own, then of all descendants

  // Moves a loaded module and all below it to a device ("vulkan:0", "cpu"): their weights are loaded again there, from where the model
  // was loaded. States made before are refused by later calls. Where it fails ("device-name" and the device's own kinds; "placement" for
  // a module that a product joins with one elsewhere) all stays where it was.
  Status to(const std::string& device);

  virtual void members(MemberVisitor& v) = 0;                          // generated
  // Generated, when the module has packed products or step values: runs after its weights (and children's) are there.
  virtual void bind(Binder&) {}

 private:
  friend class ModuleTree;
  friend class Model;
  std::string path_;
  Model* model_ = nullptr;                                             // whose tree it is in, once that is loaded
  int member_ = 0;
};

// What bind() may ask for.
class Binder {
 public:
  virtual ~Binder() = default;
  // The Matrix over these weights' rows, in this order; biases may be null or unbound (absent).
  virtual Matrix pack(std::initializer_list<const Weight*> weights, std::initializer_list<const Weight*> biases) = 0;
  // The constant that `init` computes into an f32 tensor of this shape; computed once per `key` and model.
  virtual Const constant(const char* key, Shape shape, const std::function<void(Step&, const Tensor& out)>& init) = 0;
  // Equal for instances with the same key whose inputs (vectors, constants) hold the same values.
  virtual StepValue step_value(const char* key, std::initializer_list<const Tensor*> inputs) = 0;
};

}  // namespace modelc
