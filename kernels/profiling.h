// Measurements of a backend: its device, the completion times of its work, and the host's ranges in
// a profiler.
//
// Belongs to the backend's thread; objects must not outlive the backend that made them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fettle::kernels {

// The device of a backend. Both empty: it has only the CPU.
struct DeviceIdentity {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // as nvidia-smi has it, without the "GPU-" or "MIG-" before it
};

// The implementation of one pass of an operation.
struct Implementation {
  std::string operation;  // "linear 768 to 3072, at most 32768 rows, bf16"
  std::string pass;       // "forward", "backward"
  std::string by;         // "cuBLASLt", "cuDNN", "own"
  std::string fused;      // what else the same kernel computes: "bias, GELU"
  std::string reason;     // why no library does it though one usually does; "": no fall-back
  bool operator==(const Implementation&) const = default;
};

// Times at which a device has done enqueued work, by its own clock. Mark 0 is the creation of the
// timeline.
class Timeline {
 public:
  virtual ~Timeline() = default;
  // Marks the end of all work enqueued so far. Returns the mark's number: 1, 2, 3 and so on. Never
  // captured.
  virtual std::int64_t mark() = 0;
  // Waits for all marks. Returns the seconds from mark 0 to each, with 0 for itself.
  virtual std::vector<double> seconds() = 0;
};

// Names the host's current work for an external profiler (NVTX). Ranges nest.
class Ranges {
 public:
  virtual ~Ranges() = default;
  virtual void push(const std::string& name) = 0;
  virtual void pop() = 0;
};

}  // namespace fettle::kernels
