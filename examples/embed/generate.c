/* A program in C on a generated model: text in, text out as it comes; Ctrl-C ends the text, not the program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama_c.h"

static modelc_session* running;

static void on_interrupt(int signal) {
  (void)signal;
  modelc_cancel(running);
}

static int fail(modelc_error* error) {
  fprintf(stderr, "error: %s\n", modelc_error_text(error));
  modelc_error_free(error);
  return 1;
}

static int32_t show(void* user, int32_t token, const char* text, size_t bytes) {
  (void)user;
  (void)token;
  fwrite(text, 1, bytes, stdout);
  return fflush(stdout) == 0; /* 0: nobody reads any more, so that the text ends */
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s CHECKPOINT TEXT [TOKENS]\n", argv[0]);
    return 2;
  }
  modelc_error* error = NULL;
  modelc_model* model = NULL;
  if (modelc_load(llama_model_type(), argv[1], NULL, &model, &error) != MODELC_OK) return fail(error);

  modelc_model_info info = MODELC_INIT(modelc_model_info);
  if (modelc_describe(model, &info, &error) != MODELC_OK) return fail(error);
  fprintf(stderr, "%s on %s, %lld parameters\n", info.name, info.device, (long long)info.parameters);

  size_t count = 0; /* the first call says how many there are */
  if (modelc_encode(model, argv[2], strlen(argv[2]), 1, NULL, 0, &count, &error) == MODELC_ERROR) return fail(error);
  int32_t* ids = malloc((count > 0 ? count : 1) * sizeof(int32_t));
  if (ids == NULL) return 1;
  if (modelc_encode(model, argv[2], strlen(argv[2]), 1, ids, count, &count, &error) != MODELC_OK) return fail(error);

  if (modelc_session_new(model, 0, &running, &error) != MODELC_OK) return fail(error);
  signal(SIGINT, on_interrupt);
  modelc_generate_options options = MODELC_INIT(modelc_generate_options);
  options.max_tokens = argc > 3 ? atoll(argv[3]) : 60;
  options.on_token = show;
  modelc_generate_result result = MODELC_INIT(modelc_generate_result);
  fputs(argv[2], stdout);
  if (modelc_generate(running, ids, count, &options, &result, &error) != MODELC_OK) return fail(error);
  printf("\n");
  fprintf(stderr, "%lld prompt tokens, %lld generated in %.3f s\n", (long long)result.prompt_tokens, (long long)result.tokens,
          result.prefill_seconds + result.decode_seconds);
  free(ids);
  modelc_session_free(running);
  modelc_model_free(model);
  return 0;
}
