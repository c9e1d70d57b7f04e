// Backend: the operations a training step is made of.
//
// A backend makes one object an operation ("plan once, run often"): the shape is fixed at creation,
// the number of samples of a call may be anything from 1 to the maximum given there. `reference` is
// plain C++ and the oracle of every test; `onednn` and `cuda` are fast. The trainer sees only this
// file.
//
// Layout: activations are [samples, height, width, channels] (NHWC), dense, row-major. Linear
// weights are [outputs, inputs]; convolution weights [out channels, kernel, kernel, in channels].
// A sequence of tokens is an image of one column: [samples, length, 1, channels].
// Types: activations and their gradients are fp32, bf16 or fp16, as the plan says. Weights arrive
// in the plan's type (bf16, fp16: the rounded copy of the fp32 master), biases in fp32 as well;
// normalisation parameters and statistics are always fp32. Parameter gradients are always fp32 and
// are ADDED to what is there, as sums over samples: that is what makes gradient accumulation exact
// (DESIGN: "summed gradients; divide once by the count"). Threading: an operation object belongs to
// one thread; different objects may run in parallel. Buffers are 64-byte aligned (16-bit copies of
// parameters: 32) and owned by the caller.
//
// Order: calls enqueue work for the device, which does it in that order (a CUDA stream). On a CPU
// each is done when it returns. On a GPU it may not have begun by then; `download` and `wait` wait
// for all work enqueued before. So every pointer that a call takes is memory of the backend
// (Backend::allocate) unless its comment says "host", whoever reads it later, and numbers that
// change from step to step are read from there, too (StepControl). On a CPU backend any aligned
// memory will do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/profiling.h"

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

// torch.nn.GELU's `approximate`: "none" or "tanh".
enum class GeluForm : std::uint8_t { kExact, kTanh };

struct LinearShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bias = true;
  bool relu = false;  // y = max(0, xW' + b), fused; backward then masks dy by y > 0
  // Where a GELU lies between two linear layers, the one before it also writes what it gives
  // (LinearOp::forward_gelu), and the one after it gives the gradient by what it takes
  // (LinearOp::backward_gelu). A layer with relu has no gelu_after.
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

// Normalisation of each row, the channels of a pixel, by itself (of a plain list: all of it).
struct RowNormShape {
  RowNormKind kind = RowNormKind::kLayer;
  ImageShape input;
  float epsilon = 1e-5F;
};

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
  // fp32 products may round their factors to TF32 (10 bits of mantissa), where a GPU's tensor cores
  // are then used. No other backend has it.
  bool tf32 = false;
};

// ---- Operations --------------------------------------------------------------------------------

// Where a layer's parameters lie. They stay there, and unchanged, until the next set_weights.
struct LayerWeights {
  ConstBuffer weights = nullptr;     // of the plan's type
  const float* bias = nullptr;       // nullptr: none
  ConstBuffer typed_bias = nullptr;  // rounded to the plan's type, which libraries on a GPU want
};

// y = x W' + b (Linear) or the cross-correlation of x with W (Conv), then ReLU where fused.
class WeightedOp {
 public:
  virtual ~WeightedOp() = default;
  // Call when the weights have changed, before the next forward: packs them as the backend likes.
  virtual void set_weights(const LayerWeights& from) = 0;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // dx = gradient by the input (skipped when nullptr); weight_gradient and bias_gradient are added
  // to. With fused ReLU `dy` is overwritten by the masked gradient. Without it `y` is not
  // read and may be nullptr.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, Buffer dx,
                        float* weight_gradient, float* bias_gradient) = 0;
};

// What a linear layer does besides, next to a GELU (LinearShape). Its plain forward and backward
// are there all the same.
class LinearOp : public WeightedOp {
 public:
  // With gelu_after: y as forward, and activated = GELU(y). The way back needs y, so it is kept.
  virtual void forward_gelu(std::int64_t samples, ConstBuffer x, Buffer y, Buffer activated) = 0;
  // With gelu_before: as backward with x = GELU(before), but dx, another buffer, is by `before`.
  virtual void backward_gelu(std::int64_t samples, ConstBuffer before, ConstBuffer x, ConstBuffer y,
                             Buffer dy, Buffer dx, float* weight_gradient,
                             float* bias_gradient) = 0;
};

// The end of a residual block, y = relu(norm(x) + shortcut), in the pass that writes y: what
// becomes of the normalised numbers before they are rounded to the plan's type. {}: nothing. Only
// for an operation without fused ReLU. Its backward is the caller's: the gradient of `shortcut` is
// dy, masked by y > 0 where `relu` is, and with that gradient BatchNormOp::backward goes on.
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
  // Of the last forward_training. With fused ReLU `dy` is overwritten by the masked gradient.
  // Without it `y` is not read and may be nullptr: a BlockEnd changes nothing here.
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
  // sum = a + b, rounded to the type, then as forward with x = sum. `sum` may be a or b.
  virtual void forward_sum(std::int64_t samples, ConstBuffer a, ConstBuffer b, Buffer sum,
                           const float* scale, const float* shift, Buffer y) = 0;
  // Of the last forward or forward_sum, with its x. `dx` and `shift_gradient` may be nullptr. With
  // `add` the gradient is added to what dx holds, and rounded once.
  virtual void backward(std::int64_t samples, ConstBuffer x, ConstBuffer dy, const float* scale,
                        Buffer dx, bool add, float* scale_gradient, float* shift_gradient) = 0;
};

class PoolOp {
 public:
  virtual ~PoolOp() = default;
  virtual void forward(std::int64_t samples, ConstBuffer x, Buffer y) = 0;
  // Max pooling sends the gradient to the first largest input of each window, as PyTorch. Of the
  // last forward; where the average is taken x and y may be nullptr.
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

// In place, if so wished: y may be x, and dx may be dy.
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
  // Every token is below `vocabulary`: whoever loads the data sees to that.
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

struct LossOptions {
  float label_smoothing = 0;
  // On dlogits only: lifts small gradients into the range of fp16. nullptr: 1.
  const float* gradient_scale = nullptr;
};

// What calls of a loss have added up, over their samples.
struct LossSums {
  double loss = 0;           // with label smoothing
  std::int64_t correct = 0;  // argmax equals the label; ties: the first
  std::int64_t samples = 0;
};

class SoftmaxCrossEntropyOp {
 public:
  virtual ~SoftmaxCrossEntropyOp() = default;
  // Adds to `sums`. dlogits = gradient of the SUM of the losses, scaled, in the plan's type; it may
  // be the logits themselves, which are then overwritten. nullptr in evaluation.
  virtual void run(std::int64_t samples, ConstBuffer logits, const std::int32_t* labels,
                   const LossOptions& options, LossSums* sums, Buffer dlogits) = 0;
};

// ---- Data --------------------------------------------------------------------------------------

// What samples are made of: the pixels of an image, or the tokens of a text.
enum class PixelType : std::uint8_t { kByte, kFloat, kToken };

// Samples of one shape, one after the other. Not owned.
struct Samples {
  PixelType type = PixelType::kByte;
  ImageShape shape;              // of a text {length, 1, 1}
  ConstBuffer pixels = nullptr;  // std::uint8_t, float or (tokens) std::uint16_t
  // One a sample. Of a text nullptr: the label of a token is the token after it, so one more lies
  // behind the last sample.
  const std::int32_t* labels = nullptr;
};

// How a network is shown images: bytes scaled to [0, 1], then (pixel - mean) / deviation. In
// training also mirrored left-right with probability 1/2 and moved by up to `shift` pixels each
// way, black moved in, as Philox(seed, epoch, index of the sample) says (gather/move.h): it depends
// on no worker, batch or backend.
struct ImageLook {
  double mean = 0;
  double deviation = 1;
  bool flip = false;
  std::int64_t shift = 0;
  std::uint64_t seed = 0;
};

// Makes batches of samples that lie in the backend's memory.
class GatherOp {
 public:
  virtual ~GatherOp() = default;
  // `x`: [samples, height, width, channels] in the plan's type; of a text tokens, [samples,
  // length]. `labels`: one a sample; of a text [samples, length].
  virtual void run(std::int64_t samples, const std::int64_t* indices, const std::uint32_t* epoch,
                   Buffer x, std::int32_t* labels) = 0;
};

// ---- Optimiser steps ---------------------------------------------------------------------------
// How a step ends: the workers' StepSums and gradients are summed, decide_step() makes a
// StepControl of them, and the update and the statistics do what it says. Nothing of it needs the
// host.

// Numbers of a step that travel with its gradients, as floats. Counts are exact: no batch has more
// than 2^24 predictions. The last three are flags: how many workers' loss is not finite, and how
// many workers ask to stop and to regroup.
struct StepSums {
  float loss = 0;
  float correct = 0;
  float samples = 0;
  float not_finite = 0;
  float stop = 0;
  float regroup = 0;
};

// A host may enqueue this many steps before it has seen the result of the first.
inline constexpr int kResultsBehind = 2;

// What a worker's host tells a step.
struct StepInput {
  // The schedule goes by steps that are applied. The host knows of `known_skips` that were not; the
  // rates are for as many, for one more, and so on.
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

// What a step is to do, what came of it, and what goes on from step to step.
struct StepControl {
  StepInput input;  // of the step under way; uploaded before add_step_sums
  StepSums sums;    // of all workers, as decide_step found them
  float learning_rate = 0;
  float gradient_scale = 1;  // 1 / (samples x loss scale) x clipping
  std::int32_t apply = 0;    // 0: the step is undone
  std::int32_t skipped = 0;  // fp16: it overflowed, and the next one has a smaller scale
  std::int32_t lost = 0;     // a worker was lost before its sums were complete; it is undone
  std::int64_t updates = 0;  // made so far, this one included if it is applied
  double squares = 0;        // of the gradients as they lie there
  LossScale loss_scale;      // fp16 only
  float dlogits_scale = 1;   // LossOptions::gradient_scale: loss_scale.scale / batch_divisor
};

// What stays the same in a training.
struct StepSettings {
  bool scales_loss = false;
  double batch_divisor =
      1;                 // a power of two: the loss is scaled by loss_scale.scale / batch_divisor
  double clip_norm = 0;  // as torch.nn.utils.clip_grad_norm_; 0: none
  // Not 0 from before a sum is given up on. Host memory that the backend reads, or nullptr.
  const std::int32_t* given_up = nullptr;
};

enum class UpdateRule : std::uint8_t { kSgd, kAdam, kAdamW, kRmsProp, kLamb };

// A part of the parameters, flat fp32 arrays. `gradient` holds the sum over the global batch. If
// `rounded` is not nullptr the copy of the new weights in `rounded_type` is written there.
struct UpdateBuffers {
  std::int64_t count = 0;
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* state1 = nullptr;  // momentum buffer | first moment | mean square
  float* state2 = nullptr;  // -               | second moment | momentum buffer
  std::uint16_t* rounded = nullptr;
  DataType rounded_type = DataType::kBFloat16;
  float weight_decay = 0;
};

// Formulas and defaults are PyTorch's (torch.optim), which the tests compare with; LAMB, which
// torch.optim lacks, is its paper's (optimizer/lamb.h).
struct UpdateSettings {
  float momentum = 0;
  bool nesterov = false;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float smoothing = 0.99F;
};

class UpdateOp {
 public:
  virtual ~UpdateOp() = default;
  // One update of all parts; none where control->apply is 0. control->updates is 1 in the first.
  virtual void run(const StepControl* control) = 0;
};

// ---- Memory and order --------------------------------------------------------------------------

// A block of a backend's memory, aligned to 64 bytes, zero at first. Freed with the object, which
// must not outlive the backend.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Buffer data() = 0;
};

// Copies a value to the host without waiting for it at once: first in, first out, at most
// kResultsBehind + 1 under way.
class Readback {
 public:
  virtual ~Readback() = default;
  // Enqueues a copy of what `from` holds by then.
  virtual void enqueue(ConstBuffer from) = 0;
  // Waits for the oldest copy under way. `to` is host memory.
  virtual void take(void* to) = 0;
};

// Copies blocks of bytes from the host while the backend works on earlier ones (double buffering).
class UploadBuffers {
 public:
  static constexpr std::int64_t kPlaces = 2;
  virtual ~UploadBuffers() = default;
  // Host memory for the next block, aligned to 64 bytes. Nobody reads it before enqueue(). May wait
  // until the copy of the block before the last is done.
  virtual std::byte* next() = 0;
  // Enqueues a copy of its first `bytes`. The result is where work that is enqueued from now on
  // finds them, until next() has been called kPlaces times.
  virtual const std::byte* enqueue(std::int64_t bytes) = 0;
  // Seconds that the backend stood still because a block had not arrived. The last kPlaces blocks
  // are not counted yet.
  virtual double waited() const = 0;
};

// Calls that were captured once and can be launched again, as they were (a CUDA graph).
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

// A place in the order of a backend's work, by which that work and work on other streams wait for
// each other (a CUDA event). Belongs to the backend's thread.
class Event {
 public:
  virtual ~Event() = default;
  // The event is reached when all work enqueued so far is done. May be captured: then it is reached
  // anew in each launch.
  virtual void record() = 0;
  // Work that is enqueued from now on waits until the event is reached. Never captured.
  virtual void wait() = 0;
  // Negative if it was reached before `other`. 0 as long as one of the two has not been reached.
  virtual double seconds_since(Event& other) = 0;
  // The cudaEvent_t, for whoever enqueues the other work.
  virtual void* handle() = 0;
};

// ---- The backend -------------------------------------------------------------------------------

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Errors: a type or shape this machine cannot run, in words.
  virtual Result<std::unique_ptr<LinearOp>> linear(const LinearShape&, const PlanOptions&) = 0;
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

  virtual Result<std::unique_ptr<GatherOp>> gather(const Samples& samples, const ImageLook& look,
                                                   const PlanOptions&) = 0;

  // For LAMB a part is one tensor.
  virtual std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                           const UpdateSettings& settings) = 0;

  // `result` = sum of squares, in double, in a fixed order. Not finite if any element is not.
  virtual void sum_of_squares(std::int64_t count, const float* values, double* result) = 0;
  // Adds the loss's sums and the requests to the step's, and sets the loss's to zero.
  virtual void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) = 0;
  // Fills in `control` from the sums of all workers and control->squares (optimizer/step.h).
  virtual void decide_step(const StepSettings& settings, const StepSums* sums,
                           StepControl* control) = 0;
  // Where a step leaves running statistics: sums / control->sums.samples if it is applied, else
  // `before`.
  virtual void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                              const float* sums, float* statistics) = 0;
  // y = y + factor * x.
  virtual void add_scaled(std::int64_t count, float factor, const float* x, float* y) = 0;
  // y = a + b, element by element, or with `relu` max(0, a + b), where NaN stays NaN. y may be one
  // of them.
  virtual void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
                   bool relu) = 0;
  // Between fp32 and one of the 16-bit types; rounds to nearest even.
  virtual void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) = 0;
  virtual void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) = 0;

  // Whether host memory is as good as the backend's own.
  virtual bool shares_memory() const = 0;
  // Bytes that are left of the backend's own memory, in use by nobody; none if it is the host's.
  virtual std::optional<std::int64_t> free_memory() const = 0;
  // Errors: there is not enough memory, and how much there is.
  virtual Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) = 0;
  // `from` is host memory, free again when the call returns.
  virtual void upload(const void* from, Buffer to, std::int64_t bytes) = 0;
  // `to` is host memory, filled when the call returns.
  virtual void download(ConstBuffer from, void* to, std::int64_t bytes) = 0;
  // For values of `bytes`.
  virtual std::unique_ptr<Readback> readback(std::int64_t bytes) = 0;
  // For blocks of at most `bytes`. Errors: there is not enough memory.
  virtual Result<std::unique_ptr<UploadBuffers>> upload_buffers(std::int64_t bytes) = 0;
  virtual void copy(ConstBuffer from, Buffer to, std::int64_t bytes) = 0;
  virtual void set_zero(Buffer to, std::int64_t bytes) = 0;
  // Until all work enqueued so far is done.
  virtual void wait() = 0;
  // Does not carry out what `work` enqueues; each launch() does, with the same arguments, reading
  // what the memory holds by then. `work` must neither allocate, upload, download nor wait.
  virtual std::unique_ptr<Graph> capture(std::function<void()> work) = 0;
  // nullptr where calls are done when they return.
  virtual std::unique_ptr<Event> event() { return nullptr; }

  // For those who measure (profiling.h).
  virtual DeviceIdentity device() const { return {}; }
  // Waits for all work enqueued so far. nullptr: work is done when a call returns, so the host's
  // clock tells all.
  virtual std::unique_ptr<Timeline> timeline() { return nullptr; }
  // nullptr: no tool watches.
  virtual std::unique_ptr<Ranges> ranges() { return nullptr; }
};

// "reference" is always there. Errors: a backend that this build or machine does not have.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, int threads);

}  // namespace fettle::kernels
