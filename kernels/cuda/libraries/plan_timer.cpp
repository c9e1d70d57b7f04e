#include "kernels/cuda/libraries/plan_timer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/runtime/event.h"

namespace fettle::kernels::cuda {

namespace {

// Arrays of zeros that live while plans are tried. For a language model's head they are gigabytes,
// which a neighbour on the GPU may need, so they are returned to the device.
class Arrays {
 public:
  Arrays(Device& device, std::span<const std::int64_t> bytes) : device_(device) {
    for (const std::int64_t size : bytes) {
      auto block = device.allocate(size);
      if (!block.ok()) return;  // are_there() stays false
      pointers_.push_back((*block)->data());
      blocks_.push_back(std::move(block).value());
    }
    are_there_ = true;
  }
  ~Arrays() {
    blocks_.clear();
    device_.release_unused();
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  bool are_there() const { return are_there_; }  // false: not enough memory
  std::span<void* const> pointers() const { return pointers_; }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Memory>> blocks_;
  std::vector<void*> pointers_;
  bool are_there_ = false;
};

}  // namespace

Result<double> microseconds_of(const Device& device, const std::function<Status()>& enqueue) {
  constexpr int kSamples = 3;
  constexpr int kRuns = 4;  // between two events, so that the wait for the first counts little
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

Result<std::size_t> fastest_plan(LibraryPlans& plans, const std::string& key,
                                 std::span<const std::string> names,
                                 std::span<const std::int64_t> bytes,
                                 const EnqueueCandidate& enqueue) {
  const Arrays arrays(plans.device(), bytes);
  if (!arrays.are_there()) return std::size_t{0};
  return plans.chooser().choose(key, names, [&](std::size_t candidate) {
    return microseconds_of(plans.device(), [&] { return enqueue(candidate, arrays.pointers()); });
  });
}

Status run_once(Device& device, std::span<const std::int64_t> bytes,
                const std::function<Status(std::span<void* const>)>& enqueue) {
  const Arrays arrays(device, bytes);
  return arrays.are_there() ? enqueue(arrays.pointers()) : success();
}

}  // namespace fettle::kernels::cuda
