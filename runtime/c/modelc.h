/* A generated model from C, and from every language that calls C: load, encode, generate, cancel.
 *
 *   #include "runtime/c/modelc.h"
 *   #include "small_c.h"                      // written by `modelc build --c-api`, or modelc_add_library(... C_API)
 *
 *   modelc_error* error = NULL;
 *   modelc_model* model = NULL;
 *   if (modelc_load(small_model_type(), "path/to/checkpoint", NULL, &model, &error) != MODELC_OK) {
 *     fprintf(stderr, "%s\n", modelc_error_text(error));
 *     modelc_error_free(error);
 *   }
 *
 * Nothing is kept between calls but in the handles, and nothing is written to stdout or stderr. What concerns the whole
 * process is one handler of SIGBUS while weights are mapped (a weight file that is cut short while it is used becomes an
 * error); `no_mmap` does without.
 *
 * Threads. A model may be used by any number of threads; their calls take turns at its device. A session is used by one
 * thread at a time, but for modelc_cancel, which any thread (and a signal handler) may call. Models are independent.
 *
 * Handles. What a function gives through an out parameter is freed by its modelc_*_free, in any order: a session keeps
 * its model alive. NULL may be freed. Strings that are passed in are UTF-8 and copied; strings that come out belong to the
 * handle they came from and live as long.
 *
 * Errors. Functions that can fail return a status and, where `error` is not NULL and something failed, set *error to a
 * handle that holds the text; it is the caller's. Otherwise *error is left as it is.
 *
 * Structs begin with their size, as MODELC_INIT sets it: all else 0 is the usual. A program that was
 * compiled against an older header has smaller structs; the fields that it does not know have their usual values.
 */
#ifndef MODELC_RUNTIME_C_MODELC_H
#define MODELC_RUNTIME_C_MODELC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
#define MODELC_INIT(type)     \
  ([] {                       \
    type made{};              \
    made.size = sizeof(made); \
    return made;              \
  }())
#else
#define MODELC_INIT(type) \
  { .size = sizeof(type) }
#endif

typedef struct modelc_model_type modelc_model_type; /* a generated class: what NAME_model_type() gives */
typedef struct modelc_model modelc_model;           /* weights, tokenizer and chat template of one checkpoint */
typedef struct modelc_session modelc_session;       /* one text under way: the model's state after the tokens so far */
typedef struct modelc_error modelc_error;

typedef enum modelc_status {
  MODELC_OK = 0,
  MODELC_ERROR = 1,    /* the input is wrong, or something outside of the program: see the error */
  MODELC_TOO_SMALL = 2 /* the caller's buffer is too small; the size needed has been set. No error is made */
} modelc_status;

/* "0.1.0" */
const char* modelc_version(void);

/* ---- errors */
const char* modelc_error_text(const modelc_error* error); /* what was found, what was expected, the way out; many lines */
const char* modelc_error_kind(const modelc_error* error); /* a word for programs that stays: "missing-weight" */
void modelc_error_free(modelc_error* error);

/* ---- models */
typedef struct modelc_load_options {
  size_t size;
  int32_t threads;     /* 0: one a core that the process may use */
  const char* isa;     /* NULL: the best that the machine has; or "portable", "avx2", "avx512" */
  int32_t no_mmap;     /* not 0: weights are read into memory, not mapped */
  int32_t no_strict;   /* not 0: tensors that the model does not have are allowed */
  int32_t auto_cast;   /* not 0: f32 and bf16 for each other where a weight declares its type */
  const char* device;  /* NULL: as the model's `place` says, else the CPU; or "vulkan:0", or "model.layers[0..16]=vulkan:0,cpu" */
  const char* mode;    /* NULL or "exact": f32; "fast": what modelc run computes in, where the devices have it */
} modelc_load_options;

/* From a folder with config.json and *.safetensors, a .safetensors file, or a .gguf. `options` may be NULL. */
modelc_status modelc_load(const modelc_model_type* type, const char* checkpoint, const modelc_load_options* options, modelc_model** model,
                          modelc_error** error);
void modelc_model_free(modelc_model* model);

typedef struct modelc_model_info {
  size_t size;
  const char* name;     /* of the class: "Small" */
  const char* device;   /* "CPU, 2 threads, avx512" */
  int64_t context;      /* the longest sequence; 0: memory decides */
  int64_t vocabulary;   /* logits of a token; 0: not a model from tokens to logits, so it cannot generate */
  int64_t parameters;
  int64_t bytes;        /* of the weights */
  double load_seconds;
  int32_t tokenizer;    /* not 0: encode, decode and texts in modelc_generate work */
  int32_t chat_template;
} modelc_model_info;

/* Fills the fields that info->size covers. */
modelc_status modelc_describe(const modelc_model* model, modelc_model_info* info, modelc_error** error);

/* ---- text and tokens. All three set *count to what there is; where `capacity` is less, they write nothing and return
 * MODELC_TOO_SMALL. So a call with capacity 0 asks for the size. */

/* `special` not 0: with the special tokens that the tokenizer puts around a text. */
modelc_status modelc_encode(const modelc_model* model, const char* text, size_t bytes, int32_t special, int32_t* ids, size_t capacity,
                            size_t* count, modelc_error** error);
/* The text of ids, without special tokens. No terminating 0 is written or counted. */
modelc_status modelc_decode(const modelc_model* model, const int32_t* ids, size_t id_count, char* text, size_t capacity, size_t* count,
                            modelc_error** error);

typedef struct modelc_message {
  const char* role;     /* "system", "user", "assistant" */
  const char* content;
} modelc_message;

/* The prompt of a conversation, through the checkpoint's chat template, up to where the answer begins. */
modelc_status modelc_encode_chat(const modelc_model* model, const modelc_message* messages, size_t message_count, int32_t* ids,
                                 size_t capacity, size_t* count, modelc_error** error);

/* ---- sessions */

/* `capacity`: positions that it can hold; 0: the model's context. The memory is reserved here. */
modelc_status modelc_session_new(modelc_model* model, int64_t capacity, modelc_session** session, modelc_error** error);
/* Forgets positions from `length` on, 0 for all; gives how many are left (0 where a part of the state has no past). */
int64_t modelc_session_truncate(modelc_session* session, int64_t length);
void modelc_session_free(modelc_session* session);

/* Called with each new token and the text that has become whole with it: UTF-8, `bytes` long, not terminated, maybe
 * empty. Not 0 goes on, 0 ends the generation after this token. At the end it may be called once more with token -1, for
 * text that was held back. It must not use the session, nor throw. */
typedef int32_t (*modelc_on_token)(void* user, int32_t token, const char* text, size_t bytes);

typedef struct modelc_generate_options {
  size_t size;
  int64_t max_tokens;        /* 0: 128 */
  float temperature;         /* 0: the best token each time */
  int32_t top_k;             /* 0: all */
  float top_p;               /* 0 or 1: all */
  float min_p;               /* 0: all */
  float repetition_penalty;  /* 0 or 1: off */
  uint64_t seed;
  int32_t ignore_eos;        /* not 0: goes on after a token that ends a text */
  const char* const* stop;   /* strings that end the text, which are not given out; needs a tokenizer */
  size_t stop_count;
  modelc_on_token on_token;  /* may be NULL */
  void* user;
} modelc_generate_options;

typedef enum modelc_finish {
  MODELC_FINISH_LENGTH = 0,
  MODELC_FINISH_STOP_TOKEN = 1,
  MODELC_FINISH_STOP_STRING = 2,
  MODELC_FINISH_CONTEXT = 3,  /* the session is full */
  MODELC_FINISH_CANCELLED = 4,
  MODELC_FINISH_CALLBACK = 5  /* on_token gave 0 */
} modelc_finish;

typedef struct modelc_generate_result {
  size_t size;
  int32_t finish;             /* modelc_finish */
  int64_t prompt_tokens;
  int64_t tokens;             /* generated, without one that ended the text */
  int64_t length;             /* positions that the session now holds */
  double prefill_seconds;
  double first_token_seconds;
  double decode_seconds;      /* of the steps after the first token */
} modelc_generate_result;

/* Appends the prompt's tokens to the session and generates from there. `options` and `result` may be NULL. Afterwards the
 * session holds the first result->length of all its tokens; one that was generated last has not been read by a step and is
 * not among them. A conversation goes on with what is missing at the head of the next prompt. */
modelc_status modelc_generate(modelc_session* session, const int32_t* prompt, size_t prompt_count, const modelc_generate_options* options,
                              modelc_generate_result* result, modelc_error** error);
/* Ends the session's modelc_generate, before its next step, as MODELC_FINISH_CANCELLED; where none is under way, the next
 * one ends so at once. From any thread. One call is ended, not those after it. */
void modelc_cancel(modelc_session* session);

/* Appends tokens to the session; logits [vocabulary] of the token after the last. */
modelc_status modelc_logits(modelc_session* session, const int32_t* ids, size_t id_count, float* logits, size_t capacity, size_t* count,
                            modelc_error** error);

#ifdef __cplusplus
}
#endif

#endif
