// LibraryPlans: the plans of libraries for one device: the choice among them by time, which later
// processes read from a file, and which implementation does each pass.
//
// Owned by the backend, which makes operations of libraries with it. Belongs to the device's
// thread.
#pragma once

#include "kernels/cuda/libraries/implementations.h"
#include "kernels/cuda/libraries/plan_chooser.h"
#include "kernels/cuda/libraries/plan_file.h"
#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// The kind of GPU that plans are timed on.
GpuKind kind_of(const Device& device);

class LibraryPlans {
 public:
  // `device` must outlive the plans. Warns on standard error if a file of timed plans cannot be
  // used.
  explicit LibraryPlans(Device& device);
  LibraryPlans(const LibraryPlans&) = delete;
  LibraryPlans& operator=(const LibraryPlans&) = delete;

  Device& device() { return device_; }
  const Device& device() const { return device_; }
  PlanChooser& chooser() { return chooser_; }
  Implementations& implementations() { return implementations_; }
  const Implementations& implementations() const { return implementations_; }

 private:
  Device& device_;
  PlanChooser chooser_;
  Implementations implementations_;
};

}  // namespace fettle::kernels::cuda
