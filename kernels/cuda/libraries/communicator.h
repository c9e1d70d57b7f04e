// Communicator: all-reduce and all-gather between the GPUs of several workers, as little as a
// Collective of the trainer needs (trainer/parallel/nccl_collective.h). Behind it is NCCL, in
// libfettle_cuda.so (nccl.cpp).
//
// Its calls enqueue work, as a backend's do, on a stream of its own: the work begins when an event
// of the backend is reached, and the backend continues when an event of the stream is. The host
// waits for none of it, so the caller must watch for work that never ends, and abort it.
//
// One thread makes the calls, all workers the same ones in the same order. done(), trouble() and
// abort() may come from another thread.
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

  // Waits for the others to come.
  virtual Status meet() = 0;
  // Enqueues: `values`, memory of this process's GPU, become their sums over all workers.
  virtual Status enqueue_all_reduce(std::span<float> values, Event& after) = 0;
  // Enqueues: all get what worker r has in values[bounds[r]] to values[bounds[r + 1] - 1].
  virtual Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                                    Event& after) = 0;
  // `event` is reached when all work enqueued so far is done, or was given up.
  virtual void record(Event& event) = 0;

  // How many calls' work is done. Does not wait.
  virtual std::int64_t done() = 0;
  // Why the enqueued work will not come to an end; "" as far as one can tell. Does not wait.
  virtual std::string trouble() = 0;
  // Gives up what is under way, here and, soon, for the others. More than once does nothing.
  virtual void abort() = 0;
  // Not 0 from before abort() ends anything. The GPU can read it; lives as long as this.
  virtual const std::int32_t* given_up() const = 0;
};

// What a worker tells the others before they meet.
class CommunicatorMaker {
 public:
  virtual ~CommunicatorMaker() = default;
  virtual std::string version() const = 0;    // all must have the same
  virtual std::string card() const = 0;       // which GPU this process uses: its UUID
  virtual Result<std::string> make_id() = 0;  // by rank 0, for all: a meeting place of its own
  // Begins to meet the others.
  virtual Result<std::unique_ptr<Communicator>> start(const std::string& id,
                                                      std::int64_t world_size,
                                                      std::int64_t rank) = 0;
};

// The symbol of libfettle_cuda.so (plugin.h). Errors: no GPU.
inline constexpr const char* kCommunicatorEntry = "fettle_cuda_communicator";
using CommunicatorEntry = void(Result<std::unique_ptr<CommunicatorMaker>>* to);

}  // namespace fettle::kernels
