// The fields of the built-in trainer's configuration (trainer_config.h), for reading, writing and
// `sets`: name, member, description (for kubectl explain and messages) and rules (FieldRules{} if
// left out). Fields that `only_if` looks at come first. A change needs `make crds`. See field.h.
#pragma once

#include <array>

#include "api/fields/field.h"
#include "api/trainer/trainer_config.h"

namespace fettle::api {

inline constexpr std::int64_t kLargestWhole = 9007199254740992;  // 2^53: exact in every JSON reader
inline constexpr std::int64_t kLargestBatch = 16'777'216;
inline constexpr std::int64_t kLargestSampleCount = 1'000'000'000'000;
inline constexpr std::size_t kLongestFileName = 4096;
inline constexpr std::size_t kMostLayers = 256;
inline constexpr std::size_t kMostNewTensors = 64;
inline constexpr std::array<std::string_view, 4> kDataFormats{"idx", "npy", "text", "tokens"};
inline constexpr std::int64_t kLongestContext = 65'536;
inline constexpr std::int64_t kLargestVocabulary = 65'536;  // ids are kept in 16 bits

template <class Visitor, Like<NormalizeConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("mean", c.mean, "Mean of the pixels; bytes are scaled to 0..1 first.", number(-1e6, 1e6));
  v.field("std", c.std, "Standard deviation of the pixels.", above(0, 1e6));
}

template <class Visitor, Like<AugmentConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("flip", c.flip, "Whether to mirror training images horizontally with probability 1/2.");
  v.field("shift", c.shift,
          "Largest shift of training images, in pixels: a random crop of the zero-padded image.",
          whole(0, 64));
}

template <class Visitor, Like<DataConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("format", c.format,
          "Images of shape [n, height, width, channels]: idx (bytes), npy (numpy.save: uint8 or "
          "float32; labels uint8, int64). Text: text (each byte a token), tokens (ids: raw uint16, "
          "or integers by numpy.save).",
          one_of(kDataFormats));
  constexpr std::string_view kImages = "format idx or npy";
  constexpr std::string_view kTexts = "format text or tokens";
  const bool tokens = is_text(c);
  const FieldRules image_file = text(1, kLongestFileName).only_if(!tokens, kImages);
  const FieldRules text_file = text(1, kLongestFileName).only_if(tokens, kTexts);
  v.field("trainImages", c.train_images, "Path of the training images.", image_file.needed());
  v.field("trainLabels", c.train_labels, "Path of the training labels.", image_file.needed());
  v.field("testImages", c.test_images,
          "Path of the test images. They are evaluated once, at the end.", image_file);
  v.field("testLabels", c.test_labels, "Path of the test labels.", image_file);
  v.field("trainText", c.train_text,
          "Path of the training text. Its end is held out for validation.", text_file.needed());
  v.field("testText", c.test_text, "Path of the test text. It is evaluated once, at the end.",
          text_file);
  v.field("context", c.context, "Number of tokens in a sample.",
          whole(1, kLongestContext).needed().only_if(tokens, kTexts));
  v.field("vocabulary", c.vocabulary,
          "Number of token ids. Default: the largest id in the data plus 1.",
          whole(2, kLargestVocabulary).only_if(c.format == "tokens", "format tokens"));
  v.field("trainSamples", c.train_samples,
          "Number of training samples to use. 0: all that are not held out for validation.",
          whole(0, kLargestSampleCount));
  v.field("validationSamples", c.validation_samples,
          "Number of samples of the training files that are held out for validation: of text, the "
          "last ones. 0: a sixth of them.",
          whole(0, kLargestSampleCount));
  v.field("splitSeed", c.split_seed, "Seed that decides which images are held out.",
          whole(0, kLargestWhole));
  v.field("normalize", c.normalize,
          "Normalisation of the pixels. Default: by the mean and standard deviation of the "
          "training samples.");
  v.field("augment", c.augment, "Random augmentation of training images.");
}

template <class Visitor, Like<LayerConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("type", c.type, "Type of the layer: linear, conv, batchNorm, relu and so on.",
          FieldRules{}.needed());
  const bool linear = c.type == LayerType::kLinear;
  const bool conv = c.type == LayerType::kConv;
  const bool pool = c.type == LayerType::kMaxPool || c.type == LayerType::kAveragePool;
  constexpr std::string_view kWindow = "type conv, maxPool or averagePool";
  const bool embedding = c.type == LayerType::kEmbedding;
  constexpr std::string_view kVectors = "type linear or embedding";
  v.field("units", c.units, "Number of outputs of a linear layer, or dimension of an embedding.",
          whole(1, 1'000'000).needed().only_if(linear || embedding, kVectors));
  v.field("heads", c.heads,
          "Number of attention heads. It divides a third of the input's channels, which hold "
          "queries, keys and values.",
          whole(1, 1024).needed().only_if(c.type == LayerType::kAttention, "type attention"));
  v.field("channels", c.channels, "Number of output channels of a convolution.",
          whole(1, 65'536).needed().only_if(conv, "type conv"));
  // A pool's window may be even.
  v.field("kernel", c.kernel,
          "Side length of the window. Default: model.kernel for conv, 2 for pools.",
          whole(1, 15).only_odd(conv).only_if(conv || pool, kWindow));
  v.field("stride", c.stride, "Stride of the window. Default: 1 for conv, the kernel for pools.",
          whole(1, 16).only_if(conv || pool, kWindow));
  v.field("padding", c.padding, "Zero padding on every side. Default: (kernel - 1) / 2.",
          whole(0, 15).only_if(conv, "type conv"));
  v.field("rate", c.rate, "Share of activations that are dropped. Default: model.dropout.",
          from_to_below(0, 1).only_if(c.type == LayerType::kDropout, "type dropout"));
  v.field("bias", c.bias,
          "Whether the layer has a bias. Default: true, but false before a batchNorm.",
          FieldRules{}.only_if(linear || conv, "type linear or conv"));
  v.field(
      "deviation", c.deviation,
      "Standard deviation of the initial weights. Biases then start at 0. Default: as torch.nn for "
      "linear, 0.02 for embedding.",
      above(0, 10).only_if(linear || embedding, kVectors));
  v.field("approximate", c.approximate,
          "none: the exact function. tanh: the approximation that GPT-2 uses.",
          FieldRules{}.only_if(c.type == LayerType::kGelu, "type gelu"));
}

template <class Visitor, Like<GptConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("layers", c.layers, "Number of transformer blocks.", whole(1, 96));
  v.field("heads", c.heads, "Number of attention heads. It divides width.", whole(1, 1024));
  v.field("width", c.width, "Dimension of the embedding of a token.", whole(1, 65'536));
}

template <class Visitor, Like<StartConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("file", c.file,
          "Path of a safetensors file, such as `fettle export-model --format safetensors` writes.",
          text(1, kLongestFileName).needed());
  v.field("new", c.fresh,
          "Tensors that keep their initial values: names, or their beginnings up to a dot, such as "
          "layers.7; head is the last layer with weights.",
          list(0, kMostNewTensors));
  v.field("names", c.names,
          "Names of the tensors in the file: fettle, gpt2 (Hugging Face), resnet (torchvision). "
          "auto: found by the names.");
}

template <class Visitor, Like<ModelConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("kernel", c.kernel, "Kernel of every conv layer that gives none.",
          whole(1, 15).only_odd());
  v.field("dropout", c.dropout, "Rate of every dropout layer that gives none.",
          from_to_below(0, 1));
  v.field("gpt", c.gpt, "Size of a GPT-2 model for text. Replaces layers.");
  v.field("layers", c.layers, "Layers of the network, from the input to the logits.",
          list(1, kMostLayers));
  v.field("from", c.from, "Weights that the training starts from. Default: initial values.");
  v.field("freeze", c.freeze,
          "Number of the first entries of layers that keep their weights; with gpt, of the first "
          "blocks, the embedding included. Default: none.",
          whole(0, kMostLayers).hardest_at_max());
}

template <class Visitor, Like<ScheduleConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name,
          "How the learning rate changes after the warm-up: constant, step, cosine or linear.");
  v.field("warmupEpochs", c.warmup_epochs,
          "Number of epochs in which the learning rate rises linearly from 0.", number(0, 1e6));
  v.field("stepEpochs", c.step_epochs,
          "step: number of epochs after which the learning rate is multiplied by gamma.",
          above(0, 1e6));
  v.field("gamma", c.gamma, "step: factor by which the learning rate is multiplied.", above(0, 1));
  v.field("finalFraction", c.final_fraction,
          "cosine, linear: learning rate at the end, as a share of that at the start.",
          number(0, 1));
}

template <class Visitor, Like<QuantizeConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field(
      "method", c.method,
      "ptq: the trained network is rounded. qat: from fromEpoch on the training itself computes "
      "with rounded weights and inputs, and learns to.");
  v.field(
      "fromEpoch", c.from_epoch,
      "Number of epochs before the training computes with rounded numbers. Default: three "
      "quarters of training.epochs.",
      whole(0, 999'999).only_if(c.method == QuantizeMethod::kQat, "method qat").hardest_at_max());
  v.field("calibration", c.calibration,
          "Range of a layer's inputs: minMax takes the smallest and the largest that occur, "
          "percentile leaves out 0.01 % of them. With qat they start from it, and follow the "
          "smallest and the largest of each batch.");
  v.field("samples", c.samples,
          "Number of training samples, without augmentation, that the ranges are taken from.",
          whole(1, kLargestBatch));
  v.field("weightBits", c.weight_bits,
          "Bits of a weight. 7: for x86 processors without VNNI, where sums of 8-bit products may "
          "overflow.",
          whole(7, 8));
}

template <class Visitor, Like<DistillConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("teacher", c.teacher,
          "Path of the teacher: a file that fettle export-model --format safetensors wrote.",
          text(1, kLongestFileName).needed());
  v.field("temperature", c.temperature,
          "Number that the logits of teacher and student are divided by.", above(0, 1000));
  v.field("weight", c.weight,
          "Weight of the teacher's part of the loss. The labels' part has the rest.", number(0, 1));
}

template <class Visitor, Like<PruneConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("pattern", c.pattern,
          "unstructured: the smallest weights of each linear and conv layer. 2:4: the smallest two "
          "of every four along the inputs.");
  v.field("sparsity", c.sparsity, "Share of each layer's weights that are 0 in the end.",
          from_to_below(0, 1).needed().only_if(c.pattern == PrunePattern::kUnstructured,
                                               "pattern unstructured"));
  v.field("begin", c.begin, "Share of training.epochs after which pruning begins.", number(0, 1));
  v.field("end", c.end,
          "Share of training.epochs after which the weights that are left stay the same ones.",
          number(0, 1));
}

template <class Visitor, Like<TrainingConfig> T>
void visit_optimizer_fields(Visitor& v, T& c) {
  v.field("optimizer", c.optimizer, "Optimiser that updates the weights.");
  v.field("learningRate", c.learning_rate, "Learning rate at the reference batch.", above(0, 1e6));
  v.field("layerDecay", c.layer_decay,
          "Factor of the learning rate from each layer with weights, or residual block, to the one "
          "before it. Default: 1.",
          above(0, 1));
  v.field("learningRateScaling", c.learning_rate_scaling,
          "How the learning rate scales with the batch. auto: linear for sgd, square root for "
          "Adam-like optimisers.");
  v.field("schedule", c.schedule, "How the learning rate changes from epoch to epoch.");
  v.field("momentum", c.momentum, "sgd, rmsprop: momentum.", from_to_below(0, 1));
  v.field("nesterov", c.nesterov, "sgd: whether to use Nesterov momentum.");
  v.field("beta1", c.beta1, "adam, adamw, lamb: decay rate of the first moment.",
          from_to_below(0, 1));
  v.field("beta2", c.beta2, "adam, adamw, lamb: decay rate of the second moment.",
          from_to_below(0, 1));
  v.field("epsilon", c.epsilon, "All but sgd: number added to the denominator.", above(0, 1));
  v.field("smoothing", c.smoothing, "rmsprop: decay rate of the mean square.", from_to_below(0, 1));
  v.field("weightDecay", c.weight_decay,
          "Weight decay. Biases and norms have none; it is decoupled with adamw and lamb.",
          number(0, 1e3));
  v.field("clipNorm", c.clip_norm,
          "Largest global norm of the gradient. A longer gradient is scaled down to it.",
          above(0, 1e9));
  v.field("shardOptimizer", c.shard_optimizer,
          "Whether to shard the optimiser's state over the workers. This saves memory; the results "
          "are the same.");
  v.field("labelSmoothing", c.label_smoothing,
          "Label smoothing: probability that is spread evenly over all classes.",
          from_to_below(0, 1));
}

// hardest_at_max: a larger batch is harder to fit with the other fields (FieldRules).
template <class Visitor, Like<TrainingConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("globalBatch", c.global_batch,
          "Number of samples in one optimiser step, over all workers.",
          whole(1, kLargestBatch).hardest_at_max());
  v.field("batchPerWorker", c.batch_per_worker,
          "Number of samples in one optimiser step for each worker, or each of its GPUs; instead "
          "of globalBatch.",
          whole(1, kLargestBatch).hardest_at_max());
  v.field("referenceBatch", c.reference_batch,
          "Batch size for which learningRate was chosen. Default: the batch size in use.",
          whole(1, kLargestBatch));
  v.field(
      "maxPerWorker", c.max_per_worker,
      "Largest micro-batch: number of samples that a worker, or each of its GPUs, holds at once.",
      whole(1, kLargestBatch));
  v.field(
      "normGroup", c.norm_group,
      "Number of samples over which batchNorm computes its statistics. Default: the whole batch.",
      whole(1, kLargestBatch).hardest_at_max());
  v.field("epochs", c.epochs, "Number of passes over the training samples. Default: resource.max.",
          whole(1, 1'000'000));
  v.field(
      "precision", c.precision,
      "auto is tf32 on a GPU, fp32 on a CPU. tf32: fp32 with products of 10-bit mantissas on "
      "tensor cores. bf16, fp16: 16-bit activations, fp32 master weights; fp16 scales the loss.");
  v.field("residualInFp32", c.residual_in_fp32,
          "With bf16 or fp16: the residual stream of a model that begins with an embedding is "
          "fp32, as torch.autocast has it.");
  v.field(
      "deterministic", c.deterministic,
      "Whether attention on a GPU gives the same bits each time, as everything else does. Its "
      "backward pass then takes longer (by estimate 8 to 10 % of a step of GPT-2) and needs 2 x "
      "samples x heads x length^2 bytes more. Default: false, as in PyTorch.");
  visit_optimizer_fields(v, c);
  v.field(
      "quantize", c.quantize,
      "Whether to make an 8-bit network of the trained one and validate it, at rungs and at the "
      "end: int8_validation_accuracy. Default: no.");
  v.field(
      "distill", c.distill,
      "A network to learn from: the loss is (1 - weight) cross entropy + weight x temperature^2 "
      "x KL divergence of the student's softmax from the teacher's, both at the temperature.");
  v.field(
      "prune", c.prune,
      "Weights that become 0 in training and stay 0. Their number grows as Zhu and Gupta (2017) "
      "have it.");
  v.field("recompute", c.recompute,
          "Whether to recompute activations in the backward pass instead of keeping them. This "
          "saves memory; the results are the same.");
  v.field("backend", c.backend,
          "Backend that does the computation. auto: cuda where trial.gpu requests GPUs, else the "
          "fastest available of cuda, onednn and reference.");
  v.field("threads", c.threads, "Number of CPU threads of a worker.", whole(1, 1024));
}

template <class Visitor, Like<TrainerConfig> T>
void visit_fields(Visitor& v, T& c) {
  v.field("data", c.data, "Training, validation and test data.", FieldRules{}.needed());
  v.field("model", c.model, "Architecture of the network.", FieldRules{}.needed());
  v.field("training", c.training, "Batch, optimiser and other settings of the training.");
}

}  // namespace fettle::api
