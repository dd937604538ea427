// Models in memory through the whole front end: what is made of them, or what is said.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/sema/analyze.h"

namespace modelc::sema::test {

// One run. `language 1` is put before each text; the standard library of the repository is found.
class Model {
 public:
  // `text` is the file main.model.
  explicit Model(std::string_view text);
  Model& file(std::string name, std::string_view text);
  // The configuration as the JSON text of a config.json. Without one, none is given.
  Model& config(std::string_view json);
  Model& root(std::string expression);

  // Runs once. The graph of a program that comes out has no faults.
  const std::optional<Program>& program();
  // The program, which must come out without a message.
  const Program& good();
  // The graph as text, without places.
  std::string graph();
  // The text of one class of it, or of one function: "Linear", "Linear.forward".
  std::string part(std::string_view name);
  // All messages rendered; "" when there is none. What comes out must be nothing when one is an error.
  std::string messages();
  // Their codes in order: "E0340 W0340".
  std::string codes();

  diag::Sink sink;

 private:
  std::unique_ptr<source::SourceManager> sources_ = std::make_unique<source::SourceManager>();
  std::optional<ConfigInput> config_;
  Options options_;
  source::FileId main_;
  bool ran_ = false;
  std::shared_ptr<Imports> imports_;
  std::optional<Program> program_;
};

// A file of the repository; the test fails when there is none.
std::string text_of_file(const std::string& path);

// Elements of the weights that a checkpoint has to hold.
std::int64_t parameters(const graph::Module& module);

// Whether `text` holds `part`.
bool has(const std::string& text, std::string_view part);

// A config C with these fields, and a model M(c: C) over it: the parts that most tests need around their members.
//   fields "d: dim = 4", members "a: Linear(c.d, c.d)   forward(x: [tokens, c.d]) …"
std::string around(std::string_view fields, std::string_view members, std::string_view before = "");

}  // namespace modelc::sema::test
