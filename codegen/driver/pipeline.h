// From what the command line names to the artefacts of each phase. Every command goes this one way.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/driver/options.h"
#include "codegen/emit/emit.h"
#include "codegen/plan/plan.h"
#include "frontend/diagnostics/diagnostics.h"
#include "frontend/sema/analyze.h"
#include "frontend/source/source.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/mapping.h"

namespace modelc::driver {

// What the phases of one run share. Messages collect in `sink`; report() shows them.
struct Session {
  const Options& options;
  source::SourceManager sources;
  diag::Sink sink;
  std::shared_ptr<sema::Imports> imports;
  source::FileId main;
  std::string file_base;                         // "llama" of path/to/llama.model

  bool vulkan;                                   // expressions come with shaders

  explicit Session(const Options& o);
  // Shows all messages (stderr; JSON on stdout) and forgets them. True when none was an error.
  bool report();
  // What a command ends with after report(): 0; 1, the input is wrong; 2, nothing is wrong but the call itself.
  int status() const { return status_; }

 private:
  int status_ = 0;
};

// Where the standard library lies: beside an installed modelc, else in the source tree.
std::string stdlib_folder();

// What the front end is told of the command line.
sema::Options sema_options(const Options& o);

// Parses the model file and its imports.
bool load_model(Session& s, const std::string& path);

// Whether the file holds a graph as `dump --stage graph` prints it (its name ends with .graph), and such a file read and
// verified: a program that has nothing but the graph.
bool is_graph_text(const std::string& path);
std::optional<sema::Program> load_graph(Session& s, const std::string& path);

// The same of a plan as `dump --stage plan` prints it (.plan).
bool is_plan_text(const std::string& path);
std::optional<plan::Program> load_plan(Session& s, const std::string& path);

// Opens options.checkpoint (if any); none when there is none or it failed, which is in the sink.
std::shared_ptr<const CheckpointIndex> open_checkpoint_of(Session& s);

// --config, else the checkpoint's config.json, with --set on top. None when there is none, or it cannot be read (in the sink).
std::optional<sema::ConfigInput> config_of(Session& s, const CheckpointIndex* checkpoint);

// The configuration that a GGUF file's metadata makes by the model's own block; none when it cannot (in the sink).
std::optional<sema::ConfigInput> config_of_file(Session& s, const CheckpointIndex& checkpoint);

// The checked program; none when something was wrong or no configuration is given.
std::optional<sema::Program> analyze_model(Session& s, const sema::ConfigInput* config);

// The weights as the mapping takes them: one for each of graph::weight_instances.
std::vector<MappingWeight> mapping_weights(const graph::Module& module);

// Which tensors of the checkpoint they are, as the command line says.
Mapping map_weights_of(const Session& s, const graph::Module& module, const CheckpointIndex& checkpoint);

// Names, shapes and types of every weight against a checkpoint's headers; problems go to the sink, notes come back.
std::vector<std::string> check_weights(Session& s, const graph::Module& module, const CheckpointIndex& checkpoint);

// The mapping's problems to the sink; whether there were any.
bool report_mapping(Session& s, Mapping& mapping);

// "llama.model:42:5" as the word that stands there; an invalid span where no file that was read has such a place.
source::Span span_at(const Session& s, const std::string& where);

// What computes together is placed together, as --device says, else the model's `place`: else an error that names both lines. Without a
// plan one is made where the lines name several devices.
void check_placement(Session& s, const graph::Module& module, const plan::Program* plan);

std::optional<plan::Program> plan_model(Session& s, const sema::Program& program);

// The files of `build`, in memory: sources first, the manifest last. An empty name or namespace: the model's, the file's.
// With a Vulkan backend among the options, shaders/*.comp and what they are compiled to are among them; none when one does
// not compile, which is in the sink.
std::optional<std::vector<emit::File>> emit_model(Session& s, const plan::Program& program, const std::string& class_name,
                                                  const std::string& name_space, bool with_main, bool with_c_api);

// Whether the options ask for shaders: --backend vulkan, or a --device that names Vulkan.
bool wants_vulkan(const Options& o);
// What is compiled to be run has shaders also where the file's `place` names a GPU and no option says where it runs.
void follow_placement(Session& s, const graph::Module& module);

// What takes effect later, said once in one line on stderr (a `policy` or `shard` section in a file that many runs share).
void print_notes(const std::vector<std::string>& notes);

// "modules 272, weights 362, 134,515,008 parameters"
std::string summary(const graph::Module& module);

}  // namespace modelc::driver
