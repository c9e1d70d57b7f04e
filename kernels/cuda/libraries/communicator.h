// Communicator: all-reduce and all-gather between the GPUs of several workers, the minimum that a
// Collective of the trainer needs (trainer/parallel/nccl_collective.h). Implemented by NCCL, in
// libfettle_cuda.so (nccl.cpp).
//
// Calls enqueue work, as a backend's do, on a separate stream: the work begins when an event of the
// backend is reached, and the backend continues when an event of the stream is. The host waits for
// none of it, so the caller must watch for work that never ends, and abort it.
//
// One thread makes the calls, and all workers make the same calls in the same order. done(),
// trouble() and abort() may be called from another thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

class Communicator {
 public:
  virtual ~Communicator() = default;

  // Waits for the other workers to connect.
  virtual Status meet() = 0;
  // Enqueues: replaces `values`, memory of this process's GPU, by their sums over all workers.
  virtual Status enqueue_all_reduce(std::span<float> values, Event& after) = 0;
  // Enqueues: copies worker r's values[bounds[r]] to values[bounds[r + 1] - 1] to all workers.
  virtual Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                                    Event& after) = 0;
  // Records `event`: it is reached when all work enqueued so far is done, or was given up.
  virtual void record(Event& event) = 0;

  // Number of calls whose work is done. Does not wait.
  virtual std::int64_t done() = 0;
  // Why the enqueued work will never end; "" if no reason is known. Does not wait.
  virtual std::string trouble() = 0;
  // Gives up the work under way, here and, soon, on the other workers. Repeated calls do nothing.
  virtual void abort() = 0;
  // Becomes non-zero before abort() ends anything. The GPU can read it; lives as long as this
  // object.
  virtual const std::int32_t* given_up() const = 0;
};

// Creates communicators, and describes this worker to the others before they connect.
class CommunicatorMaker {
 public:
  virtual ~CommunicatorMaker() = default;
  virtual std::string version() const = 0;    // must be the same for all workers
  virtual std::string card() const = 0;       // UUID of this process's GPU
  virtual Result<std::string> make_id() = 0;  // called by rank 0: a new meeting place for all
  // Begins to connect to the other workers.
  virtual Result<std::unique_ptr<Communicator>> start(const std::string& id,
                                                      std::int64_t world_size,
                                                      std::int64_t rank) = 0;
};

// The symbol of libfettle_cuda.so (plugin.h). Errors: no GPU.
inline constexpr const char* kCommunicatorEntry = "fettle_cuda_communicator";
using CommunicatorEntry = void(Result<std::unique_ptr<CommunicatorMaker>>* to);

}  // namespace fettle::kernels
