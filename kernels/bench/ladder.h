// A ladder of the operations in which a GPU spends its time, each timed by itself: the library
// against our own version, in TFLOP/s or GB/s, beside the peak of the device's data sheet.
//
// Works on any backend: calls are captured once and run many times (on a GPU a CUDA graph). Time is
// wall-clock time from before the first run until all are done.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/machine/gpu.h"
#include "kernels/backend.h"

namespace fettle::kernels::bench {

struct LadderOptions {
  double seconds = 1;  // of each measurement
  bool tiny = false;   // shapes that an emulated GPU finishes within a second
  // The device's peak, if its name is known.
  std::optional<machine::GpuPeak> peak;
  std::string device;  // its name, for the record
};

// Prints a line of JSON for each measurement.
void climb_ladder(Backend& backend, const LadderOptions& options);

}  // namespace fettle::kernels::bench
