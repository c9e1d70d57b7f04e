// How busy one GPU is, how much memory is in use and how much power it draws, from one call to the
// next, as NVML reports it.
//
// The numbers are those of the whole card: other processes count, too. Of a part of a GPU (MIG)
// NVML knows only the memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "machine/gpu.h"

namespace fettle::machine {

// One reading; absent: NVML does not know.
struct GpuReading {
  std::optional<double> utilization;  // 0 to 1
  std::optional<double> memory;       // bytes in use
  std::optional<double> power;        // watts
  std::optional<double> energy;       // joules since the driver was loaded
};

// How a GPU was used over a time; absent: not known.
struct GpuUse {
  std::optional<double> utilization;  // mean share of the time in which a kernel ran, 0 to 1
  std::optional<double> memory;       // most bytes that were seen in use
  std::optional<double> power;        // mean, in watts
  std::optional<double> energy;       // joules, of all the time since the first reading
};

// Computes the use from readings. Pure.
class GpuReadings {
 public:
  // `seconds`: when, by any clock that only rises.
  void add(const GpuReading& reading, double seconds);
  // Of the readings since it was last called; of time and energy, since the newest before that.
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
  std::optional<Energy> first_;  // of all
  std::optional<Energy> taken_;  // where the last take() ended; before that, first_
  std::optional<Energy> newest_;
};

// Reads every 200 ms on a thread of its own: NVML's utilisation covers its last period, of at most
// a second, so that one reading with each report would only cover the validation before it. Usable
// from any thread.
class GpuMeter {
 public:
  // The GPU with this UUID, without the prefix "GPU-" or "MIG-". nullptr: there is no NVML or no
  // such GPU, or only the numbers of a whole card, of which this process has a part.
  static std::unique_ptr<GpuMeter> open(const std::string& uuid,
                                        const std::string& library = kNvmlLibrary);
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;
  GpuMeter& operator=(const GpuMeter&) = delete;

  // Of the time since it was last called, or since open().
  GpuUse take();

 private:
  class Source;

  explicit GpuMeter(std::unique_ptr<Source> source);
  void read();
  void read_until(const std::stop_token& stop);

  const std::unique_ptr<Source> source_;
  std::mutex lock_;  // the readings
  std::condition_variable_any ends_;
  GpuReadings readings_;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace fettle::machine
