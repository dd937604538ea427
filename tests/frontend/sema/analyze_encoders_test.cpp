// Published configurations of encoders, with the number of parameters that transformers counts.
#include <doctest/doctest.h>

#include "modules_support.h"

using namespace modelc;
using namespace modelc::sema::test;

namespace {

Model example(const std::string& name) {
  const std::string text = text_of_file(MODELC_SOURCE_DIR "/examples/" + name + "/" + name + ".model");
  return Model(text.substr(text.find("language 1") + 10));
}

}  // namespace

TEST_CASE("bert-base-uncased, as published") {
  Model bert = example("bert");
  bert.config(R"({"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
    "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
    "position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0", "type_vocab_size": 2,
    "use_cache": true, "vocab_size": 30522})");
  CHECK(parameters(bert.good().graph) == 109'482'240);
  CHECK(bert.good().graph.context == 512);
}

TEST_CASE("vit-base-patch16-224, as published: a thousand labels") {
  std::string labels, ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string comma = i == 0 ? "" : ", ", number = std::to_string(i);
    labels += comma + "\"" + number + "\": \"label " + number + "\"";
    ids += comma + "\"label " + number + "\": " + number;
  }
  Model vit = example("vit");
  vit.config(R"({"architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
    "encoder_stride": 16, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768, "id2label": {)" +
             labels + R"(}, "image_size": 224, "initializer_range": 0.02, "intermediate_size": 3072, "label2id": {)" + ids +
             R"(}, "layer_norm_eps": 1e-12, "model_type": "vit", "num_attention_heads": 12, "num_channels": 3,
    "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true, "transformers_version": "4.13.0.dev0"})");
  CHECK(parameters(vit.good().graph) == 86'567'656);
  CHECK(has(vit.part("ViTBackbone.forward"), "f32[batch, 768, 14, 14]"));
}

TEST_CASE("whisper-tiny, as published") {
  Model whisper = example("whisper");
  whisper.config(R"({"_name_or_path": "openai/whisper-tiny", "activation_dropout": 0.0, "activation_function": "gelu",
    "architectures": ["WhisperForConditionalGeneration"], "attention_dropout": 0.0,
    "begin_suppress_tokens": [220, 50257], "bos_token_id": 50257, "d_model": 384, "decoder_attention_heads": 6,
    "decoder_ffn_dim": 1536, "decoder_layerdrop": 0.0, "decoder_layers": 4, "decoder_start_token_id": 50258,
    "dropout": 0.0, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536, "encoder_layerdrop": 0.0,
    "encoder_layers": 4, "eos_token_id": 50257, "forced_decoder_ids": [[1, 50259], [2, 50359], [3, 50363]],
    "init_std": 0.02, "is_encoder_decoder": true, "max_length": 448, "max_source_positions": 1500,
    "max_target_positions": 448, "model_type": "whisper", "num_hidden_layers": 4, "num_mel_bins": 80,
    "pad_token_id": 50257, "scale_embedding": false, "suppress_tokens": [1, 2, 7, 8, 9], "torch_dtype": "float32",
    "transformers_version": "4.27.0.dev0", "use_cache": true, "vocab_size": 51865})");
  CHECK(parameters(whisper.good().graph) == 37'760'640);
  CHECK(has(whisper.part("Encoder.forward"), "f32[batch, 1500, 384]"));
}
