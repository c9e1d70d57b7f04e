#include "kernels/cuda/plan_timer.h"

#include <algorithm>
#include <limits>

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

}  // namespace fettle::kernels::cuda
