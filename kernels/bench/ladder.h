// The ladder of the operations that a GPU spends its time in, each step timed by itself: what the
// library does against what our own version does, in TFLOP/s or GB/s, beside the peak of the
// device's data sheet.
//
// Works on any backend: calls are captured once and run many times (on a GPU a CUDA graph), and
// time is that of the clock on the wall, from before the first run until all are done.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "machine/gpu.h"

namespace fettle::kernels::bench {

struct LadderOptions {
  double seconds = 1;  // of each measurement
  bool tiny = false;   // shapes that an emulated GPU is through with in a second
  // The device's, if its name is known.
  std::optional<machine::GpuPeak> peak;
  std::string device;  // its name, for the record
};

// Prints a line of JSON for each measurement.
void climb_ladder(Backend& backend, const LadderOptions& options);

}  // namespace fettle::kernels::bench
