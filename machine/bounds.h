// Bounds: finds the part of a machine that limits a training, by arithmetic: work divided by a
// rate.
//
// Each time is a lower bound. Compute, memory and data work at the same time, so a step takes at
// least the largest of their times; that part is the bottleneck.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "machine/machine.h"

namespace fettle::machine {

// Needs of one worker of a training, as `fettle-trainer --dry-run --output json` prints them.
struct Need {
  std::string precision;
  std::int64_t threads = 1;
  std::int64_t world_size = 1;
  std::int64_t global_batch = 1;
  std::int64_t samples_at_once = 1;
  std::int64_t memory = 0;      // bytes that it allocates
  std::int64_t checkpoint = 0;  // bytes on disk
  // The rest is for one optimiser step:
  double flops = 0;
  double memory_bytes = 0;   // read and written
  double sample_bytes = 0;   // of its batch, in the network's input format
  double message_bytes = 0;  // sent to other workers
};

// Errors: kInvalid names the missing number.
Result<Need> read_need(const Json& dry_run);

// One worker's part of a machine: rates per second, 0 if unknown.
struct Rates {
  std::string device;  // "CPU, 2 threads a worker", "NVIDIA H200"
  bool on_gpu = false;
  std::int64_t memory = 0;
  double flops = 0;
  double memory_rate = 0;
  double cache = 0;  // bytes that stay in the cache; 0: assume none
  double data_rate = 0;
  std::string data_from;  // "the disk", "PCIe"
  double network_rate = 0;
  std::string network;  // "the loopback", "NVLink"
};

// For the first GPU or for the CPU. Several workers are all assumed on this machine.
Rates rates_for(const Machine& machine, const Need& need, bool on_gpu);

struct Bound {
  std::string name;  // "compute"
  double seconds = 0;
  std::string arithmetic;  // "1.47 GFLOP / 166 GFLOP/s"
};

struct Verdict {
  std::vector<Bound> bounds;  // of a step, for parts with a known rate
  std::optional<std::size_t> binding;
  std::vector<std::string> missing;  // reasons why it cannot run here
  std::vector<std::string> notes;    // reasons why it is slower than it could be
};

// `kept`: checkpoints on disk at once, of each trial.
Verdict judge(const Machine& machine, const Need& need, const Rates& rates, std::int64_t kept);

}  // namespace fettle::machine
