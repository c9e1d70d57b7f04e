// What a backend tells those who measure it: which device it has, when its work was done, and what
// the host is at.
//
// Belongs to the backend's thread; objects must not outlive the backend that made them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fettle::kernels {

// Which device a backend has. Both empty: none but the CPU.
struct DeviceIdentity {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // as nvidia-smi has it, without the "GPU-" or "MIG-" before it
};

// Which implementation does a pass of an operation.
struct Implementation {
  std::string operation;  // "linear 768 to 3072, at most 32768 rows, bf16"
  std::string pass;       // "forward", "backward"
  std::string by;         // "cuBLASLt", "cuDNN", "own"
  std::string fused;      // what the same kernel does besides: "bias, GELU"
  std::string reason;     // why no library does it though one usually does; "": no fall-back
  bool operator==(const Implementation&) const = default;
};

// When a device has done the work that was enqueued, by its own clock. Mark 0 is when the timeline
// was made.
class Timeline {
 public:
  virtual ~Timeline() = default;
  // Marks the end of all that was enqueued so far. Its number: 1, 2, 3 and so on. Never
  // captured.
  virtual std::int64_t mark() = 0;
  // Waits for all marks. Seconds from mark 0 to each, and 0 for itself.
  virtual std::vector<double> seconds() = 0;
};

// Tells a tool that watches the process from outside (NVTX) what the host is at. Ranges lie in each
// other.
class Ranges {
 public:
  virtual ~Ranges() = default;
  virtual void push(const std::string& name) = 0;
  virtual void pop() = 0;
};

}  // namespace fettle::kernels
