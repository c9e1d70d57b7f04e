// Collective: all-reduce, all-gather and broadcast between the workers of one trial.
//
// Every worker calls the same functions in the same order, with the same number of values; each
// object belongs to one thread. Sums are the same bits on all workers, and for one world size in
// every run.
// Errors: kUnavailable if a worker was lost or did not come in time, with its rank and the
// collective that it is missing from. After an error the object is no longer usable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::trainer {

// All-reduce between the workers' GPUs, without their hosts: calls enqueue work, as a backend's do,
// that begins when an event of the backend is reached. All workers make the same calls in the same
// order, from one thread. Errors: as a Collective's, if nothing can be enqueued any more.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;
  // Floats from which on a message of its own pays during a backward pass. The same on all workers.
  virtual std::int64_t least_message() const = 0;

  // Spans are in the backend's memory. Semantics as in Collective.
  virtual Status enqueue_all_reduce(std::span<float> values, kernels::Event& after) = 0;
  virtual Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                                    kernels::Event& after) = 0;
  // `event` is reached when all work enqueued so far is done, or given up.
  virtual void record(kernels::Event& event) = 0;
  // Set to nonzero before any abandoned work ends; for StepSettings::given_up.
  virtual const std::int32_t* given_up() const = 0;
  // An error if work was given up; it names the lost worker.
  virtual Status health() = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::int64_t world_size() const = 0;
  virtual std::int64_t rank() const = 0;
  // nullptr: gradients go through host memory.
  virtual DeviceCollective* on_device() { return nullptr; }

  // All functions below work on host memory. Replaces the values by their sums over all workers.
  virtual Status sum(std::span<float> values) = 0;
  virtual Status sum(std::span<double> values) = 0;
  // Replaces the bytes by rank 0's.
  virtual Status broadcast(std::span<std::byte> bytes) = 0;
  // Worker r contributes values[bounds[r]] to values[bounds[r + 1] - 1]; afterwards every worker
  // has all values, bit for bit. `bounds` rise from 0 to the number of values, and are the same on
  // all workers. This default implementation is a sum of floats, at the same cost.
  virtual Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds);

  // Returns when all workers have called it.
  Status barrier() {
    double nothing = 0;
    return sum(std::span(&nothing, 1));
  }
};

// A world of one: every sum is complete already.
class SingleProcess final : public Collective {
 public:
  std::int64_t world_size() const override { return 1; }
  std::int64_t rank() const override { return 0; }
  Status sum(std::span<float>) override { return success(); }
  Status sum(std::span<double>) override { return success(); }
  Status broadcast(std::span<std::byte>) override { return success(); }
  Status all_gather(std::span<float>, std::span<const std::int64_t>) override { return success(); }
};

// Replaces the string by that of rank 0, whatever its length.
Status broadcast_bytes(Collective& collective, std::string& bytes);

}  // namespace fettle::trainer
