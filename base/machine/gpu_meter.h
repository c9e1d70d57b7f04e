// GpuMeter: utilisation, memory and power of one GPU between two calls, as NVML reports them.
//
// The numbers cover the whole card, including other processes. For a part of a GPU (MIG) NVML knows
// only the memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/machine/gpu.h"

namespace fettle::machine {

// One reading; absent: unknown to NVML.
struct GpuReading {
  std::optional<double> utilization;  // 0 to 1
  std::optional<double> memory;       // bytes in use
  std::optional<double> power;        // watts
  std::optional<double> energy;       // joules since the driver was loaded
};

// Use of a GPU over an interval; absent: unknown.
struct GpuUse {
  std::optional<double> utilization;  // mean share of the time in which a kernel ran, 0 to 1
  std::optional<double> memory;       // the most bytes seen in use
  std::optional<double> power;        // mean, in watts
  std::optional<double> energy;       // joules since the first reading
};

// Computes the use from readings. Pure.
class GpuReadings {
 public:
  // `seconds`: time of the reading, by any monotonic clock.
  void add(const GpuReading& reading, double seconds);
  // Use since the previous call; mean power over the time since the newest reading before it.
  GpuUse take();

 private:
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    void add(const std::optional<double>& value);
    std::optional<double> value() const;
  };
  struct Energy {
    double joules = 0;
    double seconds = 0;
  };

  Mean utilization_;
  Mean power_;
  std::optional<double> memory_;
  std::optional<Energy> first_;  // the very first
  std::optional<Energy> taken_;  // the newest at the last take(); before that, first_
  std::optional<Energy> newest_;
};

// Reads every 200 ms on a separate thread: NVML's utilisation covers its last period, of at most a
// second, so one reading with each report would cover only the validation before it. Usable from
// any thread.
class GpuMeter {
 public:
  // Opens the GPU with this UUID, without the prefix "GPU-" or "MIG-". nullptr: NVML or the GPU is
  // missing, or this process has a part of a card and NVML knows only the numbers of the whole.
  static std::unique_ptr<GpuMeter> open(const std::string& uuid,
                                        const std::string& library = kNvmlLibrary);
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  // Use since the previous call, or since open().
  GpuUse take();

 private:
  class Source;

  explicit GpuMeter(std::unique_ptr<Source> source);
  void read();
  void read_until(const std::stop_token& stop);

  const std::unique_ptr<Source> source_;
  std::mutex lock_;  // guards the readings
  std::condition_variable_any ends_;
  GpuReadings readings_;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace fettle::machine
