// Backend: the operations a training step is made of.
//
// A backend makes one object an operation ("plan once, run often"): the shape is fixed at creation,
// the number of samples of a call may be anything from 1 to the maximum given there. `reference` is
// plain C++ and the oracle of every test; `onednn` (and later `cuda`) is fast. The trainer sees
// only this file.
//
// Layout: activations are [samples, height, width, channels] (NHWC), dense, row-major. Linear
// weights are [outputs, inputs]; convolution weights [out channels, kernel, kernel, in channels].
// A sequence of tokens is an image of one column: [samples, length, 1, channels].
// Types: activations and their gradients are fp32, bf16 or fp16, as the plan says. Weights arrive
// in the plan's type (bf16, fp16: the rounded copy of the fp32 master); bias, normalisation
// parameters and statistics are always fp32. Parameter gradients are always fp32 and are ADDED to
// what is there, as sums over samples: that is what makes gradient accumulation exact (DESIGN:
// "summed gradients; divide once by the count"). Threading: an operation object belongs to one
// thread; different objects may run in parallel. Buffers are 64-byte aligned and owned by the
// caller.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace fettle::kernels {

enum class DataType : std::uint8_t { kFloat32, kBFloat16, kFloat16 };

constexpr std::int64_t size_of(DataType type) { return type == DataType::kFloat32 ? 4 : 2; }

// A dense buffer of the type its operation's plan says. Not owned.
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

struct LinearShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bias = true;
  bool relu = false;  // y = max(0, xW' + b), fused; backward then masks dy by y > 0
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

// Normalisation of each row, the channels of a pixel, by itself (of a plain list: all of it).
struct RowNormShape {
  RowNormKind kind = RowNormKind::kLayer;
  ImageShape input;
  float epsilon = 1e-5F;
};

// torch.nn.GELU's `approximate`: "none" or "tanh".
enum class GeluForm : std::uint8_t { kExact, kTanh };

// Causal self-attention of `heads` heads, `width` channels each: a token sees itself and those
// before it.
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
};

// ---- Operations --------------------------------------------------------------------------------

// y = x W' + b (Linear) or the cross-correlation of x with W (Conv), then ReLU where fused.
class WeightedOp {
 public:
  virtual ~WeightedOp() = default;
  // Call when the weights have changed, before the next forward: packs them as the backend likes.
  virtual void set_weights(ConstBuffer weights, const float* bias) = 0;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // dx = gradient by the input (skipped when nullptr); weight_gradient and bias_gradient are added
  // to. With fused ReLU `dy` is overwritten by the masked gradient.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                        float* weight_gradient, float* bias_gradient) = 0;
};

// Batch statistics in training, running statistics in evaluation. Biased variance normalises,
// unbiased variance goes into running_variance, as in PyTorch.
class BatchNormOp {
 public:
  virtual ~BatchNormOp() = default;
  virtual void forward_training(std::int64_t samples, ConstBuffer x, const float* scale,
                                const float* shift, float* running_mean, float* running_variance,
                                Buffer y) = 0;
  virtual void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                                 const float* shift, const float* running_mean,
                                 const float* running_variance, Buffer y) = 0;
  // Of the last forward_training. With fused ReLU `dy` is overwritten by the masked gradient.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                        const float* scale, Buffer dx, float* scale_gradient,
                        float* shift_gradient) = 0;
};

// Nothing but the row decides its result, so training and evaluation are the same.
class RowNormOp {
 public:
  virtual ~RowNormOp() = default;
  // `shift` may be nullptr; RMS norm has none.
  virtual void forward(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                       Buffer y) = 0;
  // Of the last forward, with its x. `dx` and `shift_gradient` may be nullptr.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer dy, const float* scale,
                        Buffer dx, float* scale_gradient, float* shift_gradient) = 0;
};

class PoolOp {
 public:
  virtual ~PoolOp() = default;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // Max pooling sends the gradient to the first largest input of each window, as PyTorch. Of the
  // last forward.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, ConstBuffer dy,
                        Buffer dx) = 0;
};

class ReluOp {
 public:
  virtual ~ReluOp() = default;
  virtual void forward(std::int64_t count, ConstBuffer x, Buffer y) = 0;
  virtual void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) = 0;
};

class GeluOp {
 public:
  virtual ~GeluOp() = default;
  virtual void forward(std::int64_t count, ConstBuffer x, Buffer y) = 0;
  virtual void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) = 0;
};

// softmax(Q K' / sqrt(width)) V, head by head, over what a linear layer made of the tokens.
class AttentionOp {
 public:
  virtual ~AttentionOp() = default;
  // `qkv`: [samples, length, 3 channels], in a token first the queries of all heads, then the keys,
  // then the values. `y`: [samples, length, channels].
  virtual void forward(std::int64_t samples, ConstBuffer qkv, Buffer y) = 0;
  // Of the last forward, with its qkv and y.
  virtual void backward(std::int64_t samples, ConstBuffer qkv, ConstBuffer y, ConstBuffer dy,
                        Buffer dqkv) = 0;
};

// y[s, t] = table[tokens[s, t]] + positions[t]. `table`: [vocabulary, channels], `positions`:
// [length, channels]; both in the plan's type, as weights are.
class EmbeddingOp {
 public:
  virtual ~EmbeddingOp() = default;
  // Every token is below `vocabulary` (CHECK).
  virtual void forward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer table,
                       ConstBuffer positions, Buffer y) = 0;
  // Adds in order of samples and tokens, so the same batch gives the same bits.
  virtual void backward(std::int64_t samples, const std::int32_t* tokens, ConstBuffer dy,
                        float* table_gradient, float* positions_gradient) = 0;
};

// Keyed by what the draw is for: element e of sample with global index i, in this epoch and layer,
// is kept or dropped by Philox(key, layer, epoch, i, e), whatever the batch or the worker.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t layer = 0;
};

class DropoutOp {
 public:
  virtual ~DropoutOp() = default;
  // y = x / (1 - rate) where kept, 0 where dropped. `indices`: global index of each sample.
  virtual void forward(std::span<const std::int64_t> indices, const DropoutKey& key, ConstBuffer x,
                       Buffer y) = 0;
  // Draws the same mask again.
  virtual void backward(std::span<const std::int64_t> indices, const DropoutKey& key,
                        ConstBuffer dy, Buffer dx) = 0;
};

struct LossOptions {
  float label_smoothing = 0;
  float gradient_scale = 1;  // on dlogits only: lifts small gradients into the range of fp16
};

// Loss of one micro-batch, summed over samples.
struct LossSums {
  double loss = 0;           // with label smoothing
  std::int64_t correct = 0;  // argmax equals the label; ties: the first
};

class SoftmaxCrossEntropyOp {
 public:
  virtual ~SoftmaxCrossEntropyOp() = default;
  // dlogits = gradient of the SUM of the losses, scaled, in the plan's type; nullptr in evaluation.
  virtual LossSums run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
                       const LossOptions& options, Buffer dlogits) = 0;
};

// ---- Optimisers --------------------------------------------------------------------------------
// One call updates all parameters that share a decay setting: flat fp32 arrays. `gradient` holds
// the sum over the global batch; `gradient_scale` (1 / count, times the clipping factor) is applied
// on the way. If `rounded` is not nullptr the copy of the new weights in `rounded_type` is written
// there.
// Formulas and defaults are PyTorch's (torch.optim), which the tests compare with; LAMB, which
// torch.optim lacks, is its paper's and takes one parameter tensor a call (optimizer/lamb.h).

struct UpdateBuffers {
  std::int64_t count = 0;
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* state1 = nullptr;  // momentum buffer | first moment | mean square
  float* state2 = nullptr;  // -               | second moment | momentum buffer
  std::uint16_t* rounded = nullptr;
  DataType rounded_type = DataType::kBFloat16;
};

struct UpdateSettings {
  float gradient_scale = 1;
  float learning_rate = 0.01F;
  float momentum = 0;
  bool nesterov = false;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float smoothing = 0.99F;
  float weight_decay = 0;
  std::int64_t step = 1;  // 1 for the first update
};

// ---- The backend -------------------------------------------------------------------------------

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Errors: a type or shape this machine cannot run, in words.
  virtual Result<std::unique_ptr<WeightedOp>> linear(const LinearShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<WeightedOp>> conv(const ConvShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<BatchNormOp>> batch_norm(const BatchNormShape&,
                                                          const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<RowNormOp>> row_norm(const RowNormShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<AttentionOp>> attention(const AttentionShape&,
                                                         const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<EmbeddingOp>> embedding(const EmbeddingShape&,
                                                         const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<PoolOp>> pool(const PoolShape&, const PlanOptions&) = 0;
  virtual std::unique_ptr<ReluOp> relu(DataType type) = 0;
  // `max_count`: most elements of a call.
  virtual std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t max_count, DataType type) = 0;
  virtual std::unique_ptr<DropoutOp> dropout(float rate, std::int64_t elements_per_sample,
                                             DataType type) = 0;
  virtual std::unique_ptr<SoftmaxCrossEntropyOp> softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type) = 0;

  virtual void sgd(const UpdateBuffers&, const UpdateSettings&) = 0;
  virtual void adam(const UpdateBuffers&, const UpdateSettings&) = 0;
  virtual void adamw(const UpdateBuffers&, const UpdateSettings&) = 0;
  virtual void rmsprop(const UpdateBuffers&, const UpdateSettings&) = 0;
  virtual void lamb(const UpdateBuffers& one_tensor, const UpdateSettings&) = 0;

  // Sum of squares, in double, in a fixed order. Not finite if any element is not.
  virtual double sum_of_squares(std::span<const float> values) = 0;
  // y = a + b, element by element; y may be one of them.
  virtual void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y) = 0;
  // Between fp32 and one of the 16-bit types; rounds to nearest even.
  virtual void round(DataType type, std::span<const float> from, std::uint16_t* to) = 0;
  virtual void widen(DataType type, std::span<const std::uint16_t> from, float* to) = 0;
};

// "reference" is always there. Errors: a backend that this build or machine does not have.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, int threads);

}  // namespace fettle::kernels
