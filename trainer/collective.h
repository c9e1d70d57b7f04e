// Collective: all-reduce, all-gather and broadcast between the workers of one trial.
//
// Every worker calls the same functions in the same order, with as many values; each object belongs
// to one thread. Sums are the same bits on all workers, and for one world size in every run.
// Errors: kUnavailable where a worker was lost or did not come in time, with its rank and the
// collective that it is missing from. After an error the object is of no more use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::trainer {

// All-reduce between the workers' GPUs, without their hosts: calls enqueue work, as a backend's do,
// which begins when an event of the backend is reached. Same calls in the same order on all
// workers, one thread. Errors: as a Collective's; when nothing can be enqueued any more.
class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;
  // How many floats are worth a message of their own during a backward pass. On all workers alike.
  virtual std::int64_t least_message() const = 0;

  // Of memory of the backend. As Collective's.
  virtual Status enqueue_all_reduce(std::span<float> values, kernels::Event& after) = 0;
  virtual Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                                    kernels::Event& after) = 0;
  // `event` is reached when all work enqueued so far is done, or given up.
  virtual void record(kernels::Event& event) = 0;
  // Not 0 from before anything ends because it was given up; for StepSettings::given_up.
  virtual const std::int32_t* given_up() const = 0;
  // Whether something was given up, and who was lost.
  virtual Status health() = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::int64_t world_size() const = 0;
  virtual std::int64_t rank() const = 0;
  // nullptr: gradients go through host memory.
  virtual DeviceCollective* on_device() { return nullptr; }

  // All of these are about host memory. Replaces the values by their sums over all workers.
  virtual Status sum(std::span<float> values) = 0;
  virtual Status sum(std::span<double> values) = 0;
  // Replaces the bytes by those of rank 0.
  virtual Status broadcast(std::span<std::byte> bytes) = 0;
  // Worker r brings values[bounds[r]] to values[bounds[r + 1] - 1]; afterwards all have all. Bits
  // stay as they are. `bounds` rise from 0 to the number of values, and are the same everywhere.
  // As it is here, it is a sum of floats and costs as much.
  virtual Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds);

  // Returns when all workers have called it.
  Status barrier() {
    double nothing = 0;
    return sum(std::span(&nothing, 1));
  }
};

// A world of one: every sum is there already.
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
