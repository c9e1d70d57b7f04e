// Collective: how the workers of one trial add up their numbers and share what one of them knows.
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

namespace fettle::trainer {

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::int64_t world_size() const = 0;
  virtual std::int64_t rank() const = 0;
  // Whether sums of floats, which are the gradients, lie in the GPU's memory instead of the host's.
  // Then all that was ordered there must be done before the call.
  virtual bool takes_device_memory() const { return false; }

  // Replaces the values by their sums over all workers.
  virtual Status sum(std::span<float> values) = 0;
  virtual Status sum(std::span<double> values) = 0;
  // Replaces the bytes by those of rank 0.
  virtual Status broadcast(std::span<std::byte> bytes) = 0;
  // Worker r brings values[bounds[r]] to values[bounds[r + 1] - 1]; afterwards all have all. Bits
  // stay as they are. `bounds` rise from 0 to the number of values, and are the same everywhere.
  // In host memory, always. As it is here, it is a sum of floats and costs as much.
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
