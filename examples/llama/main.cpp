// A program of one's own on the generated class: text in, text out.
//
//   modelc build llama.model --checkpoint FOLDER -o out
//   c++ -std=c++20 -O2 -ffp-contract=off -I$PREFIX/include/modelc -Iout main.cpp out/llama.cpp
//       $PREFIX/lib/libmodelc_runtime.a -lpcre2-8 -lutf8proc -lsimdjson -pthread -o writer
//   ./writer FOLDER "It is a truth"
#include <cstdio>

#include "llama.h"
#include "runtime/generate/generator.h"
#include "runtime/tokenizer/tokenizer.h"

namespace {

int fail(const modelc::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: %s CHECKPOINT TEXT\n", argv[0]), 2;

  auto model = llama::Llama::load(argv[1]);                // every weight checked; all that is wrong in one error
  if (!model) return fail(model.error());
  auto tokenizer = modelc::Tokenizer::load(argv[1]);
  if (!tokenizer) return fail(tokenizer.error());
  auto prompt = tokenizer->encode(argv[2]);
  if (!prompt) return fail(prompt.error());
  auto state = (*model)->new_state();                      // one sequence, as long as the model's context
  if (!state) return fail(state.error());

  modelc::GenerateOptions options;
  options.max_tokens = 60;
  options.sampler.temperature = 0.8F;
  options.sampler.top_p = 0.95F;
  modelc::StreamingDecoder text(*tokenizer);
  std::fputs(argv[2], stdout);
  auto result = modelc::generate(**model, **state, 0, *prompt, options, [&](std::int32_t token) {
    return std::fputs(text.push(token).c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  });
  if (!result) return fail(result.error());
  std::puts(text.finish().c_str());
}
