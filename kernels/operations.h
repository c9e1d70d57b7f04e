// The operations that make up a training step: their shapes and their interfaces.
//
// A backend makes one object for each operation ("plan once, run often"). Creation fixes the shape
// and the maximum number of samples; a call may have any number from 1 to that maximum.
//
// Layout: activations are [samples, height, width, channels] (NHWC), dense, row-major. Linear
// weights are [outputs, inputs]; convolution weights [out channels, kernel, kernel, in channels]. A
// sequence of tokens is an image of one column: [samples, length, 1, channels].
// Types: activations and their gradients are fp32, bf16 or fp16, as the plan says. Weights arrive
// in the plan's type (bf16, fp16: the rounded copy of the fp32 master), biases in fp32 as well;
// normalisation parameters and statistics are always fp32. Parameter gradients are always fp32 and
// are ADDED to their buffers, as sums over samples, which makes gradient accumulation exact
// (DESIGN: "summed gradients; divide once by the count"). Threading: an operation object belongs to
// one thread; different objects may run in parallel. Buffers are 64-byte aligned (16-bit copies of
// parameters: 32) and owned by the caller.
//
// Errors: creation refuses operations that cannot run. A pass reports no error: if a library cannot
// carry it out, for example for lack of memory, the program ends with the library's message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace fettle::kernels {

enum class DataType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

constexpr std::int64_t size_of(DataType type) { return type == DataType::kFloat32 ? 4 : 2; }

// A dense buffer of the type in its operation's plan. Not owned.
using Buffer = void*;
using ConstBuffer = const void*;

// ---- Shapes ------------------------------------------------------------------------------------

struct ImageShape {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;
  std::int64_t size() const { return height * width * channels; }
  bool operator==(const ImageShape&) const = default;
};

// torch.nn.GELU's `approximate`: "none" or "tanh".
enum class GeluForm : std::uint8_t { kExact, kTanh };

struct LinearShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bias = true;
  bool relu = false;  // y = max(0, xW' + b), fused; backward then masks dy by y > 0
  // If there is a GELU between two linear layers, the layer before it can also write the GELU's
  // output (LinearOp::forward_gelu), and the layer after it can compute the gradient by the GELU's
  // input (LinearOp::backward_gelu). A layer with relu has no gelu_after.
  std::optional<GeluForm> gelu_after = std::nullopt;
  std::optional<GeluForm> gelu_before = std::nullopt;
};

struct ConvShape {
  ImageShape input;
  std::int64_t channels = 0;  // output
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;  // zeros on every side
  bool bias = true;
  bool relu = false;  // fused as in LinearShape
  ImageShape output() const {
    return {(input.height + 2 * padding - kernel) / stride + 1,
            (input.width + 2 * padding - kernel) / stride + 1, channels};
  }
};

enum class PoolKind : std::uint8_t { kMax, kAverage };

struct PoolShape {
  PoolKind kind = PoolKind::kMax;
  ImageShape input;
  std::int64_t kernel_height = 2;  // global pooling: the whole image
  std::int64_t kernel_width = 2;
  std::int64_t stride = 2;
  ImageShape output() const {
    return {(input.height - kernel_height) / stride + 1, (input.width - kernel_width) / stride + 1,
            input.channels};
  }
};

struct BatchNormShape {
  ImageShape input;  // statistics are over samples x height x width, per channel
  float epsilon = 1e-5F;
  float momentum = 0.1F;  // running = (1 - momentum) * running + momentum * batch, as PyTorch
  bool relu = false;      // fused
};

enum class RowNormKind : std::uint8_t { kLayer, kRms };

// Normalisation of each row by itself. A row is the channels of a pixel (of a plain list: all of
// it).
struct RowNormShape {
  RowNormKind kind = RowNormKind::kLayer;
  ImageShape input;
  float epsilon = 1e-5F;
};

// Causal self-attention of `heads` heads, `width` channels each: a token sees itself and earlier
// tokens.
struct AttentionShape {
  std::int64_t length = 1;  // tokens of a sample
  std::int64_t heads = 1;
  std::int64_t width = 1;  // of one head
  std::int64_t channels() const { return heads * width; }
};

struct EmbeddingShape {
  std::int64_t vocabulary = 0;
  std::int64_t length = 1;  // tokens of a sample
  std::int64_t channels = 0;
};

struct PlanOptions {
  std::int64_t max_samples = 1;
  DataType type = DataType::kFloat32;
  // fp32 products may round their factors to TF32 (10 bits of mantissa), so that a GPU uses its
  // tensor cores. Other backends ignore it.
  bool tf32 = false;
  // The same operands give the same bits even where that costs a GPU time: attention's backward
  // pass sums without atomics. Other backends always do.
  bool deterministic = false;
  // For a layer with weights: whether backward() is ever asked for dx. A network's first layer
  // never is, and a library may have no plan for dx there.
  bool input_gradient = true;
};

// ---- Operations --------------------------------------------------------------------------------

// A layer's parameters. They stay in place and unchanged until the next set_weights.
struct LayerWeights {
  ConstBuffer weights = nullptr;     // of the plan's type
  const float* bias = nullptr;       // nullptr: none
  ConstBuffer typed_bias = nullptr;  // rounded to the plan's type, for libraries on a GPU
};

// y = x W' + b (Linear) or the cross-correlation of x with W (Conv), then ReLU where fused.
class WeightedOp {
 public:
  virtual ~WeightedOp() = default;
  // Call when the weights have changed, before the next forward: packs them for the backend.
  virtual void set_weights(const LayerWeights& from) = 0;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // dx = gradient with respect to the input (skipped when nullptr). Adds to weight_gradient and
  // bias_gradient. With fused ReLU `dy` is overwritten by the masked gradient. Without it `y` is
  // not read and may be nullptr.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                        float* weight_gradient, float* bias_gradient) = 0;
};

// A linear layer beside a GELU (LinearShape). Its plain forward and backward work as well. A layer
// without bias may have frozen weights: weight_gradient is then nullptr.
class LinearOp : public WeightedOp {
 public:
  // With gelu_after: y as forward, and activated = GELU(y). Keep y: backward needs it.
  virtual void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) = 0;
  // With gelu_before: as backward with x = GELU(before), but dx, another buffer, is with respect to
  // `before`.
  virtual void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                             Buffer dy, Buffer dx, float* weight_gradient,
                             float* bias_gradient) = 0;
};

// The end of a residual block, y = relu(norm(x) + shortcut), computed in the pass that writes y,
// before numbers are rounded to the plan's type. {}: no such end. Only for an operation without
// fused ReLU. `shortcut` and norm(x) have the same gradient: BatchNormOp::backward_end computes it,
// or the caller computes it and passes it to backward.
struct BlockEnd {
  ConstBuffer shortcut = nullptr;  // as large as y, which it may not overlap; it may be x
  bool relu = false;
};

// Batch statistics in training, running statistics in evaluation. Biased variance normalises,
// unbiased variance goes into running_variance, as in PyTorch. `y` may not overlap x.
class BatchNormOp {
 public:
  virtual ~BatchNormOp() = default;
  virtual void forward_training(std::int64_t samples, ConstBuffer x, const float* scale,
                                const float* shift, float* running_mean, float* running_variance,
                                Buffer y, const BlockEnd& end) = 0;
  virtual void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                                 const float* shift, const float* running_mean,
                                 const float* running_variance, Buffer y, const BlockEnd& end) = 0;
  // For the last forward_training. With fused ReLU `dy` is overwritten by the masked gradient.
  // Without it `y` is not read and may be nullptr: a BlockEnd changes nothing here. `dx` is skipped
  // when nullptr.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                        const float* scale, Buffer dx, float* scale_gradient,
                        float* shift_gradient) = 0;
  // backward from the gradient with respect to the output y of a BlockEnd, which may come in two
  // parts, one from each reader of y: g = dy + other, rounded to the type, and 0 where y <= 0.
  // Without `other` nothing is added, without `y` nothing is masked. g is written to dy, because it
  // is the gradient of the shortcut as well. Same bits as Backend::add, ReluOp::backward and
  // backward in sequence. dx may be `other` or y, not dy. Only for an operation without fused ReLU.
  virtual void backward_end(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                            ConstBuffer other, const float* scale, Buffer dx, float* scale_gradient,
                            float* shift_gradient) = 0;
};

// Each row is normalised by itself, so training and evaluation are the same.
class RowNormOp {
 public:
  virtual ~RowNormOp() = default;
  // `shift` may be nullptr; RMS norm has none.
  virtual void forward(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                       Buffer y) = 0;
  // sum = a + b, rounded to the type, then forward with x = sum. `sum` may be a or b.
  virtual void forward_sum(std::int64_t samples, ConstBuffer a, ConstBuffer b, Buffer sum,
                           const float* scale, const float* shift, Buffer y) = 0;
  // For the last forward or forward_sum, with its x. `dx` and `shift_gradient` may be nullptr. With
  // `add` the gradient is added to the contents of dx, and rounded once.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer dy, const float* scale,
                        Buffer dx, bool add, float* scale_gradient, float* shift_gradient) = 0;
};

class PoolOp {
 public:
  virtual ~PoolOp() = default;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // Max pooling sends the gradient to the first largest input of each window, as PyTorch. For
  // the last forward; average pooling does not read x and y, which may be nullptr.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, ConstBuffer dy,
                        Buffer dx) = 0;
};

class ReluOp {
 public:
  virtual ~ReluOp() = default;
  // `y` may be x.
  virtual void forward(std::int64_t count, ConstBuffer x, Buffer y) = 0;
  // `dx` may be dy.
  virtual void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) = 0;
};

// May work in place: y may be x, and dx may be dy.
class GeluOp {
 public:
  virtual ~GeluOp() = default;
  virtual void forward(std::int64_t count, ConstBuffer x, Buffer y) = 0;
  virtual void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) = 0;
};

// softmax(Q K' / sqrt(width)) V for each head, with Q, K and V made from the tokens by a linear
// layer. Every buffer has room for the plan's max_samples. The part beyond a call's `samples` may
// be read and overwritten, with numbers that nothing depends on.
class AttentionOp {
 public:
  virtual ~AttentionOp() = default;
  // `qkv`: [samples, length, 3 channels]; a token has the queries of all heads, then the keys, then
  // the values. `y`: [samples, length, channels].
  virtual void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) = 0;
  // For the last forward, with its qkv and y.
  virtual void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                        Buffer dqkv) = 0;
};

// y[s, t] = table[tokens[s, t]] + positions[t]. `table`: [vocabulary, channels], `positions`:
// [length, channels]; both in the plan's type, as weights are.
class EmbeddingOp {
 public:
  virtual ~EmbeddingOp() = default;
  // Every token is below `vocabulary`: the data loader ensures it.
  virtual void forward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer table,
                       ConstBuffer positions, Buffer y) = 0;
  // Adds in order of samples and tokens, so the same batch gives the same bits.
  virtual void backward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer dy,
                        float* table_gradient, float* positions_gradient) = 0;
};

// Keys of a draw: Philox(key, layer, epoch, i, e) decides whether element e of the sample with
// global index i is kept in this epoch and layer, whatever the batch or the worker.
struct DropoutKey {
  std::uint64_t seed = 0;
  const std::uint32_t* epoch = nullptr;
  std::uint32_t layer = 0;
};

class DropoutOp {
 public:
  virtual ~DropoutOp() = default;
  // y = x / (1 - rate) where kept, 0 where dropped. `indices`: global index of each sample.
  virtual void forward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
                       ConstBuffer x, Buffer y) = 0;
  // Draws the same mask again.
  virtual void backward(std::int64_t samples, const std::int64_t* indices, const DropoutKey& key,
                        ConstBuffer dy, Buffer dx) = 0;
};

struct StepInput;
struct StepSums;

// Distillation (Hinton et al. 2015): the loss is (1 - weight) cross entropy + weight temperature^2
// KL(p || q), p and q being the softmax of the teacher's and of the student's logits, each divided
// by the temperature.
struct LossTeacher {
  ConstBuffer logits = nullptr;  // as the student's; nullptr: no teacher, and the rest is not read
  float temperature = 1;
  float weight = 0;
};

struct LossOptions {
  float label_smoothing = 0;
  // Scales dlogits only: lifts small gradients into the range of fp16. nullptr: 1.
  const float* gradient_scale = nullptr;
  // Set for a step's last loss: run() then also does the work of Backend::add_step_sums(sums,
  // step_input, step_sums), with the same bits. nullptr: not the last.
  const StepInput* step_input = nullptr;
  StepSums* step_sums = nullptr;
  LossTeacher teacher = {};
};

// Sums over the samples of several calls of a loss.
struct LossSums {
  double loss = 0;           // with label smoothing and the teacher's part
  std::int64_t correct = 0;  // argmax equals the label; ties: the first
  std::int64_t samples = 0;
};

class SoftmaxCrossEntropyOp {
 public:
  virtual ~SoftmaxCrossEntropyOp() = default;
  // Adds to `sums`. dlogits = gradient of the SUM of the losses, scaled, in the plan's type. It may
  // be the logits themselves, which are then overwritten; nullptr in evaluation.
  virtual void run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
                   const LossOptions& options, LossSums* sums, Buffer dlogits) = 0;
};

// ---- Data --------------------------------------------------------------------------------------

// The elements of a sample: pixels of an image, or tokens of a text.
enum class PixelType : std::uint8_t { kByte, kFloat, kToken };

// Samples of one shape, one after the other. Not owned.
struct Samples {
  PixelType type = PixelType::kByte;
  ImageShape shape;              // a text: {length, 1, 1}
  ConstBuffer pixels = nullptr;  // std::uint8_t, float or (tokens) std::uint16_t
  // One for each sample. nullptr for a text: the label of a token is the next token, so one more
  // token follows the last sample.
  const std::int32_t* labels = nullptr;
};

// Normalisation and augmentation of images. Bytes are scaled to [0, 1], then (pixel - mean) /
// deviation. Training may also mirror them left-right with probability 1/2, and shift them by up to
// `shift` pixels each way, with black at the edges. Philox(seed, epoch, index of the sample)
// decides (gather/move.h), so it depends on no worker, batch or backend.
struct ImageLook {
  double mean = 0;
  double deviation = 1;
  bool flip = false;
  std::int64_t shift = 0;
  std::uint64_t seed = 0;
};

// Makes batches from samples in the backend's memory.
class GatherOp {
 public:
  virtual ~GatherOp() = default;
  // `x`: [samples, height, width, channels] in the plan's type; for a text tokens, [samples,
  // length]. `labels`: one for each sample; for a text [samples, length].
  virtual void run(std::int64_t samples, const std::int64_t* indices, const std::uint32_t* epoch,
                   Buffer x, std::int32_t* labels) = 0;
};

// ---- Optimiser steps ---------------------------------------------------------------------------
// The end of a step: the workers' StepSums and gradients are summed, decide_step() turns the sums
// into a StepControl, and the update and the statistics follow it. The host is not involved.

// Numbers of a step that are all-reduced with its gradients, as floats. Counts are exact: no batch
// has more than 2^24 predictions. The last three count workers whose loss is not finite, that ask
// to stop, and that ask to regroup.
struct StepSums {
  float loss = 0;
  float correct = 0;
  float samples = 0;
  float not_finite = 0;
  float stop = 0;
  float regroup = 0;
};

// Number of steps that a host may enqueue before it has seen the result of the first.
inline constexpr int kResultsBehind = 2;

// A step's input from the worker's host.
struct StepInput {
  // The schedule counts applied steps. The host knows of `known_skips` skipped steps; the rates are
  // for that many skips, for one more, and so on.
  float learning_rates[kResultsBehind + 1] = {};
  float stop = 0;  // requests of the worker, 0 or 1
  float regroup = 0;
  std::int64_t known_skips = 0;
};

// fp16's dynamic loss scale, as torch.amp.GradScaler has it.
struct LossScale {
  double scale = 65536;
  std::int64_t good_steps = 0;     // since the scale last changed
  std::int64_t skipped_steps = 0;  // of the whole training
  bool operator==(const LossScale&) const = default;
};

// The decision on a step, its outcome, and the state that lasts from step to step.
struct StepControl {
  StepInput input;  // of the step under way; uploaded before add_step_sums
  StepSums sums;    // of all workers, as decide_step found them
  float learning_rate = 0;
  float gradient_scale = 1;  // 1 / (samples x loss scale) x clipping
  std::int32_t apply = 0;    // 0: the step is undone
  std::int32_t skipped = 0;  // fp16: it overflowed, and the next step has a smaller scale
  std::int32_t lost = 0;     // a worker was lost before its sums were complete; it is undone
  std::int64_t updates = 0;  // made so far, this one included if it is applied
  double squares = 0;        // of the gradients as stored (summed and scaled)
  LossScale loss_scale;      // fp16 only
  float dlogits_scale = 1;   // LossOptions::gradient_scale: loss_scale.scale / batch_divisor
};

// Constant during a training.
struct StepSettings {
  bool scales_loss = false;
  double batch_divisor =
      1;                 // a power of two: the loss is scaled by loss_scale.scale / batch_divisor
  double clip_norm = 0;  // as torch.nn.utils.clip_grad_norm_; 0: no clipping
  // Becomes non-zero before an all-reduce is abandoned. Host memory that the backend reads, or
  // nullptr.
  const std::int32_t* given_up = nullptr;
};

enum class UpdateRule : std::uint8_t { kSgd, kAdam, kAdamW, kRmsProp, kLamb };

inline constexpr std::int64_t kMaskBits = 16;      // of a word of UpdateBuffers::mask
inline constexpr float kSmallestKept = 0x1p-126F;  // replaces a new weight of 0 that is kept

// A part of the parameters, flat fp32 arrays. `gradient` holds the sum over the global batch. If
// `rounded` is not nullptr, it receives the new weights rounded to `rounded_type`.
struct UpdateBuffers {
  std::int64_t count = 0;
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* state1 = nullptr;  // momentum buffer | first moment | mean square
  float* state2 = nullptr;  // -               | second moment | momentum buffer
  std::uint16_t* rounded = nullptr;
  DataType rounded_type = DataType::kBFloat16;
  // A bit a weight: bit i % 16 of word i / 16. The new weight is exactly 0 where it is not set, and
  // never 0 where it is (kSmallestKept), so that zeros tell the mask. nullptr: all are kept.
  const std::uint16_t* mask = nullptr;
  float weight_decay = 0;
  double rate_scale = 1;  // factor of the step's learning rate
};

// Formulas and defaults are PyTorch's (torch.optim), against which the tests compare. LAMB, which
// torch.optim lacks, follows its paper (optimizer/lamb.h).
struct UpdateSettings {
  // double, because 1 - beta2 needs it: 1 - 0.999F is 1.3e-5 off.
  double momentum = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double smoothing = 0.99;
};

class UpdateOp {
 public:
  virtual ~UpdateOp() = default;
  // Updates all parts once, or none if control->apply is 0. control->updates is 1 in the first
  // update.
  virtual void run(const StepControl* control) = 0;
};

}  // namespace fettle::kernels
