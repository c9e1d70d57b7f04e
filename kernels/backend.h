// Backend: makes operations (operations.h), and owns the memory and the order of their work.
//
// `reference` is plain C++ and the oracle of every test; `onednn` and `cuda` are fast. The trainer
// sees only this file and what it includes.
//
// Order: calls enqueue work for the device, which does it in that order (a CUDA stream). On a CPU
// each is done when it returns. On a GPU it may not have begun by then; `download` and `wait` wait
// for all work enqueued before. So every pointer that a call takes is memory of the backend
// (Backend::allocate) unless its comment says "host", and numbers that change from step to step are
// read from there, too (StepControl). On a CPU backend any aligned memory will do.
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
  std::int64_t own = 0;     // what operations keep for themselves, together
  std::int64_t branch = 0;  // another block like the shared one, for work that is done beside other
  std::int64_t total() const { return shared + own + branch; }
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
  // Host memory for the next block, aligned to 64 bytes. It is not read before enqueue(). May wait
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
  // again in each launch.
  virtual void record() = 0;
  // Work that is enqueued from now on waits until the event is reached. Never captured.
  virtual void wait() = 0;
  // Negative if it was reached before `other`. 0 as long as one of the two has not been reached.
  virtual double seconds_since(Event& other) = 0;
  // The cudaEvent_t, for those who enqueue the other work.
  virtual void* handle() = 0;
};

// ---- The backend -------------------------------------------------------------------------------

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Errors: a shape that no backend takes (shapes.h), or a type or shape that this one or this
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
  // `max_count`: most elements of a call.
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
  // Adds the loss's sums and the requests to the step's, and sets the loss's to zero.
  virtual void add_step_sums(LossSums* of_loss, const StepInput* input, StepSums* of_step) = 0;
  // Fills in `control` from the sums of all workers and control->squares (optimizer/step.h).
  virtual void decide_step(const StepSettings& settings, const StepSums* sums,
                           StepControl* control) = 0;
  // Running statistics after a step: sums / control->sums.samples if it is applied, else
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
  // Bytes of the backend's own memory that can still be allocated; none if it is the host's.
  virtual std::optional<std::int64_t> free_memory() const = 0;
  // Errors: there is not enough memory, and how much there is.
  virtual Result<std::unique_ptr<Memory>> allocate(std::int64_t bytes) = 0;
  // What the operations that `make` creates on this backend would need, without allocating it.
  // They are layers' (of linear to softmax_cross_entropy), and are destroyed by `make`. On a GPU it
  // is that of the plans which libraries rank first. Errors: make's. Nothing on a CPU.
  virtual Result<Workspace> workspace(const std::function<Status()>& make) {
    FETTLE_TRY(make());
    return Workspace{};
  }
  // Makes the blocks that operations use in turn at least this large, before operations that need
  // less have made smaller ones, which stay because graphs may hold their addresses. Errors: there
  // is not enough memory.
  virtual Status reserve_workspace(const Workspace& /*needed*/) { return success(); }
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
  // Which implementation does each pass of the operations that were created so far; empty where
  // there is only one.
  virtual std::vector<Implementation> implementations() const { return {}; }
  // Of the operations that were created since the last call, those included whose shape another
  // operation had before.
  virtual std::vector<Implementation> take_recent_implementations() { return {}; }
  // Waits for all work enqueued so far. nullptr: work is done when a call returns, so the host's
  // clock tells all.
  virtual std::unique_ptr<Timeline> timeline() { return nullptr; }
  // nullptr: no tool watches.
  virtual std::unique_ptr<Ranges> ranges() { return nullptr; }

 private:
  // As the functions above, for shapes that have been checked.
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

// "reference" is always there. Errors: a backend that this build or machine does not have.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, int threads);

}  // namespace fettle::kernels
