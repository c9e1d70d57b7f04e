// The built-in trainer's configuration: `spec.trial.trainer` of a Study, and what fettle-trainer
// reads from the trial file. Plain values with defaults; fields, bounds and descriptions are listed
// once, in trainer_fields.h, for reading, writing and for `sets`. Knows neither YAML nor
// Kubernetes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"

namespace fettle::api {

// Exit code of fettle-trainer for wrong input: a retry changes nothing.
inline constexpr int kTrainerRefusesInput = 2;
// Exit code of a program of several workers when another worker did not come or was lost: never the
// trial's fault, whichever runtime runs it. EX_TEMPFAIL of <sysexits.h>.
inline constexpr int kWorkerMissesOthers = 75;

// The error of a training that has too little GPU memory: kGpuMemoryShort, the number of bytes that
// it needs at least, kGpuMemoryNeeded.
inline constexpr const char* kGpuMemoryShort = "too little GPU memory (";
inline constexpr const char* kGpuMemoryNeeded = " bytes needed)";

struct NormalizeConfig {
  double mean = 0;
  double std = 1;
  bool operator==(const NormalizeConfig&) const = default;
};

struct AugmentConfig {
  bool flip = false;       // mirror left-right with probability 1/2
  std::int64_t shift = 0;  // move by up to this many pixels in each direction, zeros moved in:
                           // torchvision's RandomCrop(size, padding=shift)
  bool operator==(const AugmentConfig&) const = default;
};

// Labelled images, or text in which each token is predicted from the tokens before it. Files are
// plain or gzipped.
struct DataConfig {
  std::string format = "idx";  // images: idx, npy; text: text (bytes), tokens (ids)
  std::string train_images;
  std::string train_labels;
  std::string test_images;  // optional: scored once, at the end, never used for decisions
  std::string test_labels;
  std::string train_text;                  // text: its last part is held out for validation
  std::string test_text;                   // optional, as testImages
  std::optional<std::int64_t> context;     // text: tokens of a sample (required)
  std::optional<std::int64_t> vocabulary;  // tokens: ids are below it; default: the largest id + 1
  std::int64_t train_samples = 0;          // 0 = all except for validation
  std::int64_t validation_samples = 0;     // held out from the training files; 0 = a sixth
  std::int64_t split_seed = 0;             // which samples are held out; not the trial's seed, so
                                           // that all trials are judged on the same ones
  std::optional<NormalizeConfig> normalize;  // default: mean and deviation of the training samples
  AugmentConfig augment;
  bool operator==(const DataConfig&) const = default;
};

// Whether the samples are sequences of tokens.
inline bool is_text(const DataConfig& data) {
  return data.format == "text" || data.format == "tokens";
}

enum class LayerType {
  kLinear,
  kConv,
  kBatchNorm,
  kLayerNorm,
  kRmsNorm,
  kRelu,
  kGelu,
  kMaxPool,
  kAveragePool,
  kGlobalPool,
  kFlatten,
  kDropout,
  kEmbedding,  // first for text: tokens become vectors; later linear layers work per token
  kAttention,  // causal; its input is a linear layer with three times the units
  kHead,       // logits of tokens, with the matrix of the embedding ("tied")
  kResidual,   // begins a block: its layers, up to add, are summed with its shortcut
  kShortcut,   // begins the shortcut's own layers; without it the shortcut is the block's input
  kAdd,        // ends the block
  kCast,       // between fp32 and 16 bits; inserted by the trainer, never named in a configuration
  kQuantize,   // to a grid of 8 bits; inserted likewise
};
EnumNames<LayerType> names_of(LayerType /*any*/);

enum class GeluApproximation { kNone, kTanh };  // torch.nn.GELU's `approximate`
EnumNames<GeluApproximation> names_of(GeluApproximation /*any*/);

// One entry of model.layers. Absent numbers take the model's default or the value in the comment.
struct LayerConfig {
  LayerType type = LayerType::kLinear;
  std::optional<std::int64_t> units;             // linear, embedding: outputs (required)
  std::optional<std::int64_t> heads;             // attention (required)
  std::optional<std::int64_t> channels;          // conv: output channels (required)
  std::optional<std::int64_t> kernel;            // conv: model.kernel; pools: 2
  std::optional<std::int64_t> stride;            // conv: 1; pools: kernel
  std::optional<std::int64_t> padding;           // conv: (kernel - 1) / 2; pools: 0
  std::optional<double> rate;                    // dropout: model.dropout
  std::optional<bool> bias;                      // linear, conv: true, unless a batchNorm follows
  std::optional<double> deviation;               // linear: torch.nn's start; embedding: 0.02
  std::optional<GeluApproximation> approximate;  // gelu: none
  bool operator==(const LayerConfig&) const = default;
};

// GPT-2 (Radford et al. 2019) of any size, in place of the layers: trainer/model/gpt.h.
struct GptConfig {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  bool operator==(const GptConfig&) const = default;
};

// How a file names its tensors.
enum class TensorNames { kAuto, kFettle, kGpt2, kResnet };
EnumNames<TensorNames> names_of(TensorNames /*any*/);

// The weights that a training starts from, in place of initial values.
struct StartConfig {
  std::string file;                // safetensors
  std::vector<std::string> fresh;  // `new`: tensors that keep their initial values
  TensorNames names = TensorNames::kAuto;
  bool operator==(const StartConfig&) const = default;
};

struct ModelConfig {
  std::int64_t kernel = 3;  // of every conv without its own
  double dropout = 0;       // of every dropout layer without its own
  std::optional<GptConfig> gpt;
  std::vector<LayerConfig> layers;  // empty with gpt
  std::optional<StartConfig> from;
  std::optional<std::int64_t> freeze;  // first layers that keep their weights; with gpt: blocks
  bool operator==(const ModelConfig&) const = default;
};

enum class OptimizerKind { kSgd, kAdam, kAdamW, kRmsprop, kLamb };
EnumNames<OptimizerKind> names_of(OptimizerKind /*any*/);
enum class Precision { kAuto, kFp32, kTf32, kBf16, kFp16 };
EnumNames<Precision> names_of(Precision /*any*/);
enum class ScheduleKind { kConstant, kStep, kCosine, kLinear };
EnumNames<ScheduleKind> names_of(ScheduleKind /*any*/);
enum class ScalingRule { kAuto, kNone, kLinear, kSqrt };
EnumNames<ScalingRule> names_of(ScalingRule /*any*/);
enum class BackendKind { kAuto, kReference, kOnednn, kCuda };
EnumNames<BackendKind> names_of(BackendKind /*any*/);

struct ScheduleConfig {
  ScheduleKind name = ScheduleKind::kConstant;
  double warmup_epochs = 0;  // linearly from 0 to the learning rate, by optimiser steps
  double step_epochs = 10;   // step: multiply by gamma whenever this many epochs have passed
  double gamma = 0.1;
  double final_fraction = 0;  // cosine, linear: learning rate at the end / at the start
  bool operator==(const ScheduleConfig&) const = default;
};

enum class Calibration { kMinMax, kPercentile };
EnumNames<Calibration> names_of(Calibration /*any*/);

enum class QuantizeMethod {
  kPtq,  // after the training
  kQat,  // the training computes on the grids, from an epoch on
};
EnumNames<QuantizeMethod> names_of(QuantizeMethod /*any*/);

// 8-bit integers: weights by output channel, inputs of linear and conv by layer.
struct QuantizeConfig {
  Calibration calibration = Calibration::kMinMax;  // of the inputs' ranges
  std::int64_t samples = 512;                      // of the training set, to calibrate with
  std::int64_t weight_bits = 8;                    // 7: for processors whose sums of 8 overflow
  QuantizeMethod method = QuantizeMethod::kPtq;
  std::optional<std::int64_t> from_epoch;  // qat: quantized_from()
  bool operator==(const QuantizeConfig&) const = default;
};

// Learning from another network's logits (Hinton et al. 2015).
struct DistillConfig {
  std::string teacher;  // a file of `fettle export-model`
  double temperature = 4;
  double weight = 0.7;  // of the teacher's part of the loss
  bool operator==(const DistillConfig&) const = default;
};

enum class PrunePattern { kUnstructured, kTwoOfFour };
EnumNames<PrunePattern> names_of(PrunePattern /*any*/);

// Weights of linear and conv layers that become 0 for good, in growing number (Zhu, Gupta 2017).
struct PruneConfig {
  PrunePattern pattern = PrunePattern::kUnstructured;
  std::optional<double> sparsity;  // unstructured: of each layer in the end (required)
  double begin = 0.1;              // shares of training.epochs
  double end = 0.7;
  bool operator==(const PruneConfig&) const = default;
};

inline constexpr std::int64_t kDefaultGlobalBatch = 128;

struct TrainingConfig {
  std::optional<std::int64_t> global_batch;  // exactly one of these two; default globalBatch
  std::optional<std::int64_t> batch_per_worker;
  std::optional<std::int64_t> reference_batch;  // default: whichever of the two is set
  std::optional<std::int64_t> max_per_worker;   // most samples held at once; default: no limit
  std::optional<std::int64_t> norm_group;       // batchNorm; default: the whole batch
  std::optional<std::int64_t> epochs;           // default: the Study's resource.max
  Precision precision = Precision::kAuto;
  bool residual_in_fp32 = false;      // with 16 bits: of streams that begin at an embedding
  std::optional<bool> deterministic;  // attention on a GPU; default: false
  OptimizerKind optimizer = OptimizerKind::kSgd;
  double learning_rate = 0.01;
  std::optional<double> layer_decay;  // of the rate, from each layer with weights to the one before
  ScalingRule learning_rate_scaling = ScalingRule::kAuto;
  ScheduleConfig schedule;
  double momentum = 0;  // sgd, rmsprop
  bool nesterov = false;
  double beta1 = 0.9;  // adam, adamw, lamb
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double smoothing = 0.99;  // rmsprop: decay of the mean square
  double weight_decay =
      0;  // adamw, lamb: decoupled; others: added to the gradient. Not on biases, norms
  std::optional<double> clip_norm;      // global gradient norm
  std::optional<bool> shard_optimizer;  // over the workers; default: false
  double label_smoothing = 0;
  std::optional<QuantizeConfig> quantize;  // default: no 8-bit network
  std::optional<DistillConfig> distill;
  std::optional<PruneConfig> prune;
  bool recompute = false;  // recomputes activations in the backward pass, does not keep them
  BackendKind backend = BackendKind::kAuto;
  std::int64_t threads = 1;
  bool operator==(const TrainingConfig&) const = default;
};

bool has_batch_norm(const ModelConfig& model);

// Whether the training computes on the grids of 8-bit integers, from an epoch on.
bool trains_quantized(const TrainingConfig& training);
// The number of epochs before that; of a training whose epochs are known. Default: three quarters.
std::int64_t quantized_from(const TrainingConfig& training);

struct TrainerConfig {
  // Defined in trainer_config.cpp, to compile this long code once (docs/decisions/0027).
  TrainerConfig();
  TrainerConfig(const TrainerConfig& other);
  TrainerConfig(TrainerConfig&& other) noexcept;
  TrainerConfig& operator=(const TrainerConfig& other);
  TrainerConfig& operator=(TrainerConfig&& other) noexcept;
  ~TrainerConfig();

  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  bool operator==(const TrainerConfig&) const = default;
};

// Whether the result for a sample depends, in training, on the other samples of its batch: with
// batchNorm, and by the ranges of quantised inputs.
bool mixes_samples(const TrainerConfig& config);

}  // namespace fettle::api
