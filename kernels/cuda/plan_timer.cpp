#include "kernels/cuda/plan_timer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/event.h"

namespace fettle::kernels::cuda {

Result<double> microseconds_of(const Device& device, const std::function<Status()>& enqueue) {
  constexpr int kSamples = 3;
  constexpr int kRuns = 4;  // between two events: the wait for the first of them counts little
  FETTLE_TRY(enqueue());
  double least = std::numeric_limits<double>::infinity();
  for (int sample = 0; sample < kSamples; ++sample) {
    Event start, end;
    start.record(device.stream());
    for (int run = 0; run < kRuns; ++run) FETTLE_TRY(enqueue());
    end.record(device.stream());
    end.synchronize();
    least = std::min(least, 1e6 * end.seconds_since(start) / kRuns);
  }
  return least;
}

Result<std::size_t> fastest_plan(Device& device, const std::string& key,
                                 std::span<const std::string> names,
                                 std::span<const std::int64_t> bytes,
                                 const EnqueueCandidate& enqueue) {
  std::vector<std::unique_ptr<Memory>> blocks;
  std::vector<void*> arrays;
  for (const std::int64_t size : bytes) {
    auto block = device.allocate(size);
    if (!block.ok()) {
      blocks.clear();
      device.release_unused();
      return std::size_t{0};
    }
    arrays.push_back((*block)->data());
    blocks.push_back(std::move(block).value());
  }
  auto chosen = device.plans().choose(key, names, [&](std::size_t candidate) {
    return microseconds_of(device, [&] { return enqueue(candidate, arrays); });
  });
  // The arrays of a language model's head are gigabytes, which a neighbour on the GPU may need.
  blocks.clear();
  device.release_unused();
  return chosen;
}

}  // namespace fettle::kernels::cuda
