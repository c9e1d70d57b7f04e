// Collective: how the workers of one trial add up their numbers, once an optimiser step.
// Every worker calls the same functions in the same order; each belongs to one thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace fettle::trainer {

class Collective {
 public:
  virtual ~Collective() = default;
  virtual std::int64_t world_size() const = 0;
  virtual std::int64_t rank() const = 0;
  // Replaces the values by their sums over all workers. Errors: a worker was lost.
  virtual Status sum(std::span<float> values) = 0;
};

// A world of one: every sum is there already.
class SingleProcess final : public Collective {
 public:
  std::int64_t world_size() const override { return 1; }
  std::int64_t rank() const override { return 0; }
  Status sum(std::span<float>) override { return success(); }
};

}  // namespace fettle::trainer
