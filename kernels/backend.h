// Backend: makes operations (operations.h), and owns the memory and the order of their work.
//
// `reference` is plain C++ and the oracle of every test; `onednn` and `cuda` are fast. The trainer
// sees only this file and its includes.
//
// Order: calls enqueue work, and the device does it in that order (a CUDA stream). A CPU has done
// it when the call returns. A GPU may not have begun by then; `download` and `wait` wait for all
// work enqueued before. So every pointer that a call takes is memory of the backend
// (Backend::allocate) unless its comment says "host", and numbers that change from step to step are
// read from there, too (StepControl). A CPU backend takes any aligned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/operations.h"
#include "kernels/profiling.h"

namespace fettle::kernels {

// ---- Memory and order --------------------------------------------------------------------------

// A block of a backend's memory, aligned to 64 bytes, zero at first. Freed with the object, which
// must not outlive the backend.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Buffer data() = 0;
};

// Bytes that operations need beside their operands.
struct Workspace {
  std::int64_t shared = 0;  // one block, which all operations use in turn: the largest request
  std::int64_t own = 0;     // kept by operations for themselves, together
  std::int64_t branch = 0;  // another block like the shared one, for work on a parallel branch
  std::int64_t total() const { return shared + own + branch; }
};

// Copies a value to the host without waiting for it at once. First in, first out, with at most
// kResultsBehind + 1 copies under way.
class Readback {
 public:
  virtual ~Readback() = default;
  // Enqueues a copy of the value that `from` holds by then.
  virtual void enqueue(ConstBuffer from) = 0;
  // Waits for the oldest copy under way. `to` is host memory.
  virtual void take(void* to) = 0;
};

// Copies blocks of bytes from the host while the backend works on earlier blocks (double
// buffering).
class UploadBuffers {
 public:
  static constexpr std::int64_t kPlaces = 2;
  virtual ~UploadBuffers() = default;
  // Host memory for the next block, aligned to 64 bytes, not read before enqueue(). May wait until
  // the copy of the block before the last is done.
  virtual std::byte* next() = 0;
  // Enqueues a copy of the block's first `bytes`. Returns the address at which work enqueued from
  // now on finds them, until next() has been called kPlaces times.
  virtual const std::byte* enqueue(std::int64_t bytes) = 0;
  // Seconds that the backend stood idle because a block had not arrived. Excludes the last kPlaces
  // blocks.
  virtual double waited() const = 0;
};

// Calls that were captured once and can be launched again unchanged (a CUDA graph).
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

// A point in the order of a backend's work, by which that work and work on other streams wait for
// each other (a CUDA event). Belongs to the backend's thread.
class Event {
 public:
  virtual ~Event() = default;
  // Records the event: it is reached when all work enqueued so far is done. May be captured; each
  // launch then reaches it again.
  virtual void record() = 0;
  // Makes work enqueued from now on wait until the event is reached. Never captured.
  virtual void wait() = 0;
  // Negative if this event was reached before `other`. 0 until both have been reached.
  virtual double seconds_since(Event& other) = 0;
  // The cudaEvent_t, for callers that enqueue the other work.
  virtual void* handle() = 0;
};

// Weights by output channel, on a grid whose integers are -limit to limit.
struct WeightRows {
  std::int64_t count = 0;
  std::int64_t width = 0;
  float limit = 127;
};

// ---- The backend -------------------------------------------------------------------------------

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Errors: a shape that no backend takes (shapes.h), or a type or shape that this backend or
  // machine cannot run, in words.
  Result<std::unique_ptr<LinearOp>> linear(const LinearShape& shape, const PlanOptions& plan);
  Result<std::unique_ptr<WeightedOp>> conv(const ConvShape& shape, const PlanOptions& plan);
  Result<std::unique_ptr<BatchNormOp>> batch_norm(const BatchNormShape& shape,
                                                  const PlanOptions& plan);
  Result<std::unique_ptr<RowNormOp>> row_norm(const RowNormShape& shape, const PlanOptions& plan);
  Result<std::unique_ptr<AttentionOp>> attention(const AttentionShape& shape,
                                                 const PlanOptions& plan);
  Result<std::unique_ptr<EmbeddingOp>> embedding(const EmbeddingShape& shape,
                                                 const PlanOptions& plan);
  Result<std::unique_ptr<PoolOp>> pool(const PoolShape& shape, const PlanOptions& plan);
  Result<std::unique_ptr<GatherOp>> gather(const Samples& samples, const ImageLook& look,
                                           const PlanOptions& plan);
  virtual std::unique_ptr<ReluOp> relu(DataType type) = 0;
  // `max_count`: maximum elements of a call.
  virtual std::unique_ptr<GeluOp> gelu(GeluForm form, std::int64_t max_count, DataType type) = 0;
  virtual std::unique_ptr<DropoutOp> dropout(float rate, std::int64_t elements_per_sample,
                                             DataType type) = 0;
  virtual std::unique_ptr<SoftmaxCrossEntropyOp> softmax_cross_entropy(std::int64_t classes,
                                                                       DataType type) = 0;

  // For LAMB a part is one tensor.
  virtual std::unique_ptr<UpdateOp> update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                           const UpdateSettings& settings) = 0;

  // `result` = sum of squares, in double, in a fixed order. Not finite if any element is not.
  virtual void sum_of_squares(std::int64_t count, const float* values, double* result) = 0;
  // Adds the loss's sums and the worker's requests to the step's sums, and zeroes the loss's.
  virtual void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) = 0;
  // Fills in `control` from the sums of all workers and control->squares (optimizer/step.h).
  virtual void decide_step(const StepSettings& settings, const StepSums* sums,
                           StepControl* control) = 0;
  // Updates running statistics after a step: sums / control->sums.samples if the step is applied,
  // else `before`.
  virtual void end_statistics(std::int64_t count, const StepControl* control, const float* before,
                              const float* sums, float* statistics) = 0;
  // y = y + factor * x.
  virtual void add_scaled(std::int64_t count, float factor, const float* x, float* y) = 0;
  // y = a + b, element by element, or with `relu` max(0, a + b), where NaN stays NaN. y may be a or
  // b.
  virtual void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
                   bool relu) = 0;
  // y = x on the grid of 256 values from range[0] to range[1] (quantize/formulas.h). y may be x.
  virtual void fake_quantize(DataType type, std::int64_t count, const float* range, ConstBuffer x,
                             Buffer y) = 0;
  // dx = dy where the grid did not cut x off, else 0. dx may be dy.
  virtual void fake_quantize_backward(DataType type, std::int64_t count, const float* range,
                                      ConstBuffer x, ConstBuffer dy, Buffer dx) = 0;
  // Moves both ends of the range by `share` of the way to the least and the largest of x and 0.
  virtual void track_range(DataType type, std::int64_t count, ConstBuffer x, float share,
                           float* range) = 0;
  // y = x with each row on a symmetric grid. y is not x.
  virtual void fake_quantize_weights(DataType type, const WeightRows& rows, ConstBuffer x,
                                     Buffer y) = 0;
  // Convert between fp32 and one of the 16-bit types; `round` rounds to nearest even.
  virtual void round(DataType type, std::int64_t count, const float* from, std::uint16_t* to) = 0;
  virtual void widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to) = 0;

  // Whether the backend's operations can read and write host memory.
  virtual bool shares_memory() const = 0;
  // Bytes of the backend's own memory that can still be allocated; nullopt if it uses host memory.
  virtual std::optional<std::int64_t> free_memory() const = 0;
  // Errors: not enough memory, and how much is free.
  virtual Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) = 0;
  // Workspace that the operations created by `make` would need, without allocating it. `make`
  // creates only operations of layers (linear to softmax_cross_entropy) and destroys them. A GPU
  // assumes the plans that libraries rank first; a CPU needs none. Errors: make's.
  virtual Result<Workspace> workspace(const std::function<Status()>& make) {
    FETTLE_TRY(make());
    return Workspace{};
  }
  // Makes the blocks that operations use in turn at least this large. Call it before operations
  // that need less create smaller blocks, which stay because graphs may hold their addresses.
  // Errors: not enough memory.
  virtual Status reserve_workspace(const Workspace& /*needed*/) { return success(); }
  // `from` is host memory, free again when the call returns.
  virtual void upload(const void* from, Buffer to, std::int64_t bytes) = 0;
  // `to` is host memory, filled when the call returns.
  virtual void download(ConstBuffer from, void* to, std::int64_t bytes) = 0;
  // Creates a Readback for values of `bytes`.
  virtual std::unique_ptr<Readback> readback(std::int64_t bytes) = 0;
  // Creates buffers for blocks of at most `bytes`. Errors: not enough memory.
  virtual Result<std::unique_ptr<UploadBuffers>> upload_buffers(std::int64_t bytes) = 0;
  virtual void copy(ConstBuffer from, Buffer to, std::int64_t bytes) = 0;
  virtual void set_zero(Buffer to, std::int64_t bytes) = 0;
  // Waits until all work enqueued so far is done.
  virtual void wait() = 0;
  // Records the work that `work` enqueues without doing it. Each launch() does it with the same
  // arguments, reading what the memory holds by then. `work` must not allocate, upload, download or
  // wait.
  virtual std::unique_ptr<Graph> capture(std::function<void()> work) = 0;
  // nullptr if calls are done when they return.
  virtual std::unique_ptr<Event> event() { return nullptr; }

  // For measurements (profiling.h).
  virtual DeviceIdentity device() const { return {}; }
  // The implementation of each pass of the operations created so far; empty if there is only one.
  virtual std::vector<Implementation> implementations() const { return {}; }
  // Implementations of the operations created since the last call, including shapes seen before.
  virtual std::vector<Implementation> take_recent_implementations() { return {}; }
  // Waits for all work enqueued so far. nullptr: work is done when a call returns, so the host's
  // clock suffices.
  virtual std::unique_ptr<Timeline> timeline() { return nullptr; }
  // nullptr: no profiler is attached.
  virtual std::unique_ptr<Ranges> ranges() { return nullptr; }

 private:
  // Implementations of the functions above, for shapes that have been checked.
  virtual Result<std::unique_ptr<LinearOp>> make_linear(const LinearShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<WeightedOp>> make_conv(const ConvShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<BatchNormOp>> make_batch_norm(const BatchNormShape&,
                                                               const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<RowNormOp>> make_row_norm(const RowNormShape&,
                                                           const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<AttentionOp>> make_attention(const AttentionShape&,
                                                              const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<EmbeddingOp>> make_embedding(const EmbeddingShape&,
                                                              const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<PoolOp>> make_pool(const PoolShape&, const PlanOptions&) = 0;
  virtual Result<std::unique_ptr<GatherOp>> make_gather(const Samples&, const ImageLook&,
                                                        const PlanOptions&) = 0;
};

// "reference" always exists. Errors: this build or machine lacks the backend.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, int threads);

}  // namespace fettle::kernels
