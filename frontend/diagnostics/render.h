// Messages as text for people and as JSON lines for programs.
#pragma once

#include <cstddef>
#include <string>

#include "frontend/diagnostics/diagnostics.h"

namespace modelc::diag {

struct RenderOptions {
  bool colour = false;
  bool full_paths = false;  // files by their path, for build systems and editors, instead of by their name as imported
  std::size_t limit = 20;   // messages shown; the rest is counted in a last line. 0: no limit
};

// One message, with a line break at its end:
//   error[E0312]: shape of `layers.1.self_attn.q_proj.weight` differs
//     --> llama.model:42:5
//   42 |     q_proj: Linear(c.hidden_size, heads * d, has_bias: c.attention_bias)
//      |     ^^^^^^ expected [heads * d, hidden_size] = [4 * 16, 40]
//     found [64, 32] in model-00001-of-00002.safetensors
//     help: …
std::string render(const Diagnostic& diagnostic, const source::SourceManager& sources, const RenderOptions& options = {});

// All messages of a sink, with an empty line between them.
std::string render(const Sink& sink, const source::SourceManager& sources, const RenderOptions& options = {});

// One JSON object and a line break: code, severity, message, file, line, column, end {line, column}, label, notes
// (other places first, as "llama.model:3:5: text"), help. Where there is no place in a text, `file` is the free place
// or null, and line, column and end are null.
std::string render_json(const Diagnostic& diagnostic, const source::SourceManager& sources);

// All messages, without a limit, one a line.
std::string render_json(const Sink& sink, const source::SourceManager& sources);

}  // namespace modelc::diag
