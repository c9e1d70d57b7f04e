// Communicator: how the GPUs of several workers add up, as little of it as a Collective of the
// trainer needs (trainer/parallel/nccl_collective.h). Behind it is NCCL, in libfettle_cuda.so
// (nccl.cpp); tests have one of their own.
//
// One thread makes the calls, all workers the same ones in the same order; abort() alone may come
// from another thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace fettle::kernels {

class Communicator {
 public:
  enum class Progress : std::uint8_t { kUnderWay, kDone, kFailed };

  virtual ~Communicator() = default;
  // Orders that `values`, memory of this process's GPU, become their sums over all workers. All
  // that was ordered on the GPU before must be done.
  virtual Status start_sum(float* values, std::int64_t count) = 0;
  // Of what was started last; at first, of the workers' meeting. Does not wait.
  virtual Progress progress() = 0;
  // After kFailed: the reason.
  virtual std::string failure() = 0;
  // Gives up what is under way, here and, soon, for the others. More than once does nothing.
  virtual void abort() = 0;
};

// What a worker tells the others before they meet.
class CommunicatorMaker {
 public:
  virtual ~CommunicatorMaker() = default;
  virtual std::string version() const = 0;    // all must have the same
  virtual std::string card() const = 0;       // which GPU this process uses: its UUID
  virtual Result<std::string> make_id() = 0;  // by rank 0, for all: a meeting place of its own
  // Starts to meet the others; progress() tells when they have met.
  virtual Result<std::unique_ptr<Communicator>> start(const std::string& id,
                                                      std::int64_t world_size,
                                                      std::int64_t rank) = 0;
};

// Of libfettle_cuda.so, as plugin.h has the backend's. Errors: no GPU.
inline constexpr const char* kCommunicatorEntry = "fettle_cuda_communicator";
using CommunicatorEntry = void(Result<std::unique_ptr<CommunicatorMaker>>* to);

}  // namespace fettle::kernels
