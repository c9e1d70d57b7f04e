// The fields of the built-in trainer's configuration (trainer_config.h), for reading, writing and
// `sets`. See field.h.
#pragma once

#include <array>

#include "api/field.h"
#include "api/names.h"
#include "api/trainer_config.h"

namespace fettle::api {

inline constexpr std::int64_t kLargestWhole = 9007199254740992;  // 2^53: exact in every JSON reader
inline constexpr std::int64_t kLargestBatch = 16'777'216;
inline constexpr std::int64_t kLargestSampleCount = 1'000'000'000'000;
inline constexpr std::size_t kLongestFileName = 4096;
inline constexpr std::size_t kMostLayers = 256;
inline constexpr std::array<std::string_view, 4> kDataFormats{"idx", "npy", "text", "tokens"};
inline constexpr std::int64_t kLongestContext = 65'536;
inline constexpr std::int64_t kLargestVocabulary = 65'536;  // ids are kept in 16 bits

template <class Visitor, Like<NormalizeConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("mean", c.mean, "Mean of the pixels: of bytes scaled to 0..1, of floats as they are.",
          number(-1e6, 1e6));
  v.field("std", c.std, "Standard deviation of the pixels.", above(0, 1e6));
}

template <class Visitor, Like<AugmentConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("flip", c.flip, "Mirror training images left-right with probability 1/2.");
  v.field(
      "shift", c.shift,
      "Move training images by at most this many pixels: a random crop of the zero-padded image.",
      whole(0, 64));
}

template <class Visitor, Like<DataConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field(
      "format", c.format,
      "Images: idx (bytes), npy (numpy.save: uint8 or float32; labels uint8, int64). Text: text "
      "(each byte a token), tokens (ids: raw uint16, or integers by numpy.save).",
      one_of(kDataFormats));
  constexpr std::string_view kImages = "format idx or npy";
  constexpr std::string_view kTexts = "format text or tokens";
  const bool tokens = is_text(c);
  const FieldRules image_file = text(1, kLongestFileName).only_if(!tokens, kImages);
  const FieldRules text_file = text(1, kLongestFileName).only_if(tokens, kTexts);
  v.field("trainImages", c.train_images, "File of training images.", image_file.needed());
  v.field("trainLabels", c.train_labels, "File of training labels.", image_file.needed());
  v.field("testImages", c.test_images, "File of test images, scored once, at the end.", image_file);
  v.field("testLabels", c.test_labels, "File of test labels.", image_file);
  v.field("trainText", c.train_text, "File of text; its end is held out for validation.",
          text_file.needed());
  v.field("testText", c.test_text, "File of test text, scored once, at the end.", text_file);
  v.field("context", c.context, "Tokens of a sample.",
          whole(1, kLongestContext).needed().only_if(tokens, kTexts));
  v.field("vocabulary", c.vocabulary, "Token ids are below it; default: the largest one plus 1.",
          whole(2, kLargestVocabulary).only_if(c.format == "tokens", "format tokens"));
  v.field("trainSamples", c.train_samples, "Training samples used; 0: all that validation leaves.",
          whole(0, kLargestSampleCount));
  v.field("validationSamples", c.validation_samples,
          "Samples held out from the training files; 0: a sixth. Of text: the last ones.",
          whole(0, kLargestSampleCount));
  v.field("splitSeed", c.split_seed, "Decides which images are held out.", whole(0, kLargestWhole));
  v.field("normalize", c.normalize, "Default: mean and deviation of the training samples.");
  v.field("augment", c.augment, "Random changes of training images.");
}

template <class Visitor, Like<LayerConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("type", c.type, "What the layer does: linear, conv, batchNorm, relu ...",
          FieldRules{}.needed());
  const bool linear = c.type == LayerType::kLinear;
  const bool conv = c.type == LayerType::kConv;
  const bool pool = c.type == LayerType::kMaxPool || c.type == LayerType::kAveragePool;
  constexpr std::string_view kWindow = "type conv, maxPool or averagePool";
  const bool embedding = c.type == LayerType::kEmbedding;
  constexpr std::string_view kVectors = "type linear or embedding";
  v.field("units", c.units, "Outputs of a linear layer, numbers of an embedded token.",
          whole(1, 1'000'000).needed().only_if(linear || embedding, kVectors));
  v.field("heads", c.heads, "Heads of attention; they divide its input's channels by 3.",
          whole(1, 1024).needed().only_if(c.type == LayerType::kAttention, "type attention"));
  v.field("channels", c.channels, "Output channels of a convolution.",
          whole(1, 65'536).needed().only_if(conv, "type conv"));
  v.field("kernel", c.kernel, "Side of the window; conv: default model.kernel; pools: 2.",
          whole(1, 15).only_odd(conv).only_if(conv || pool, kWindow));
  v.field("stride", c.stride, "Step of the window; conv: default 1; pools: the kernel.",
          whole(1, 16).only_if(conv || pool, kWindow));
  v.field("padding", c.padding, "Zeros on every side; default (kernel - 1) / 2.",
          whole(0, 15).only_if(conv, "type conv"));
  v.field("rate", c.rate, "Share of activations dropped; default model.dropout.",
          from_to_below(0, 1).only_if(c.type == LayerType::kDropout, "type dropout"));
  v.field("bias", c.bias, "Default: true, unless a batchNorm follows.",
          FieldRules{}.only_if(linear || conv, "type linear or conv"));
  v.field("deviation", c.deviation,
          "Standard deviation of the first weights, biases being 0; default: linear: as torch.nn; "
          "embedding: 0.02.",
          above(0, 10).only_if(linear || embedding, kVectors));
  v.field("approximate", c.approximate, "none: the exact function; tanh: GPT-2's form of it.",
          FieldRules{}.only_if(c.type == LayerType::kGelu, "type gelu"));
}

template <class Visitor, Like<GptConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("layers", c.layers, "Blocks of attention and two linear layers.", whole(1, 96));
  v.field("heads", c.heads, "Heads of attention; a divisor of width.", whole(1, 1024));
  v.field("width", c.width, "Numbers of a token.", whole(1, 65'536));
}

template <class Visitor, Like<ModelConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("kernel", c.kernel, "Kernel of every conv that names none.", whole(1, 15).only_odd());
  v.field("dropout", c.dropout, "Rate of every dropout layer that names none.",
          from_to_below(0, 1));
  v.field("gpt", c.gpt, "A GPT-2 of this size for text, instead of layers.");
  v.field("layers", c.layers, "The layers, from the input to the logits.", list(1, kMostLayers));
}

template <class Visitor, Like<ScheduleConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "How the learning rate changes after the warm-up.");
  v.field("warmupEpochs", c.warmup_epochs, "Linear rise from 0, in epochs.", number(0, 1e6));
  v.field("stepEpochs", c.step_epochs,
          "step: the number of epochs between two multiplications by gamma.", above(0, 1e6));
  v.field("gamma", c.gamma, "step: the factor.", above(0, 1));
  v.field("finalFraction", c.final_fraction,
          "cosine, linear: learning rate at the end as a share of the start's.", number(0, 1));
}

template <class Visitor, Like<TrainingConfig> T>
void visit_optimizer_fields(Visitor& v, T& c) {
  v.field("optimizer", c.optimizer, "The optimiser.");
  v.field("learningRate", c.learning_rate, "Learning rate at the reference batch.", above(0, 1e6));
  v.field("learningRateScaling", c.learning_rate_scaling,
          "How the learning rate follows the batch; auto: by the optimiser.");
  v.field("schedule", c.schedule, "How the learning rate changes over the epochs.");
  v.field("momentum", c.momentum, "sgd, rmsprop: share of the last update kept.",
          from_to_below(0, 1));
  v.field("nesterov", c.nesterov, "sgd: Nesterov's momentum.");
  v.field("beta1", c.beta1, "adam, adamw, lamb: decay of the first moment.", from_to_below(0, 1));
  v.field("beta2", c.beta2, "adam, adamw, lamb: decay of the second moment.", from_to_below(0, 1));
  v.field("epsilon", c.epsilon, "All but sgd: added to the denominator.", above(0, 1));
  v.field("smoothing", c.smoothing, "rmsprop: decay of the mean square.", from_to_below(0, 1));
  v.field("weightDecay", c.weight_decay, "Not on biases and norms; adamw, lamb: decoupled.",
          number(0, 1e3));
  v.field("clipNorm", c.clip_norm, "Largest global norm of the gradient.", above(0, 1e9));
  v.field("shardOptimizer", c.shard_optimizer,
          "Each worker keeps its part of the optimiser's state only; changes memory, not results.");
  v.field("labelSmoothing", c.label_smoothing, "Probability spread over all classes.",
          from_to_below(0, 1));
}

template <class Visitor, Like<TrainingConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("globalBatch", c.global_batch, "Samples of one optimiser step, over all workers.",
          whole(1, kLargestBatch));
  v.field("batchPerWorker", c.batch_per_worker,
          "Samples of one optimiser step a worker, or each of its GPUs; instead of globalBatch.",
          whole(1, kLargestBatch));
  v.field("referenceBatch", c.reference_batch, "Batch that learningRate was chosen for.",
          whole(1, kLargestBatch));
  v.field("maxPerWorker", c.max_per_worker,
          "Most samples a worker, or each of its GPUs, holds at once.", whole(1, kLargestBatch));
  v.field("normGroup", c.norm_group,
          "Samples that batchNorm takes its statistics over; default: the whole batch.",
          whole(1, kLargestBatch));
  v.field("epochs", c.epochs, "Passes over the training samples; default resource.max.",
          whole(1, 1'000'000));
  v.field("precision", c.precision,
          "auto is tf32 on a GPU, fp32 on a CPU. tf32: fp32 with products of 10-bit mantissas on "
          "tensor "
          "cores. bf16, fp16: 16-bit activations, fp32 master weights; fp16 scales the loss.");
  v.field(
      "residualInFp32", c.residual_in_fp32,
      "With bf16 or fp16: the residual stream of a model that begins with an embedding is fp32, as "
      "torch.autocast has it.");
  visit_optimizer_fields(v, c);
  v.field("recompute", c.recompute,
          "Activations are computed again instead of kept: less memory, the same results.");
  v.field(
      "backend", c.backend,
      "Who does the maths; auto: cuda where trial.gpu asks for GPUs, else the fastest there is: "
      "cuda, onednn or reference.");
  v.field("threads", c.threads, "Cores of one worker.", whole(1, 1024));
}

template <class Visitor, Like<TrainerConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("data", c.data, "The samples.", FieldRules{}.needed());
  v.field("model", c.model, "The network.", FieldRules{}.needed());
  v.field("training", c.training, "How it is trained.");
}

}  // namespace fettle::api
