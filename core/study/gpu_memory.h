// Sizes the GPU memory request of a trial if its Study says gpu {memory: auto}.
//
// The need follows from the shapes of the data, which only the trainer sees. So the first seconds
// of a run are its dry run: the trainer plans its memory before it allocates any
// (trainer/step/memory_plan.h), reports the plan, and refuses to begin with less, naming its need.
// A first request that was too small costs the start of a pod; one that was large enough costs
// nothing.
//
// Reported needs are reused for trials with the same shape, which means the same values of all
// parameters that decide about shapes. A process also needs memory that is in no plan (the CUDA
// context, workspaces of libraries); this overhead is learnt from the use that was measured.
// Requests are multiples of kGpuMemoryStep, so that few sizes are in use at once.
// Derived from the trials alone; pure, usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/study/ledger.h"

namespace fettle::core {

// Request of a trial about which nothing is known, in bytes.
inline constexpr double kFirstGpuMemory = 1024.0 * 1024 * 1024;
inline constexpr double kGpuMemoryStep = 256.0 * 1024 * 1024;
// The factor by which the next request grows after a run that had too little and did not name its
// need.
inline constexpr double kMoreGpuMemory = 1.5;
// A trial ends because no GPU is large enough only after the GPU profiles have stayed the same for
// this long.
inline constexpr std::int64_t kGpuListSettlesMs = 600'000;

// Explains to people why wanted_next() is absent for the trial. `most`: as there, in bytes.
std::string why_no_larger(const api::Trial& trial, std::optional<double> most);

class GpuMemory {
 public:
  GpuMemory(const api::StudySpec& spec, const Ledger& ledger);

  // The request of a new trial with these parameters, in bytes; `most`: the limit here.
  double wanted(const Json& parameters, std::optional<double> most) const;
  // The request for the next run of a trial that needs_more_gpu_memory(). Absent: no GPU here is
  // larger, or none is large enough.
  std::optional<double> wanted_next(const api::Trial& trial, std::optional<double> most) const;

  // The need of a process whose plan has `planned` bytes.
  double with_overhead(double planned) const;
  // The trial's known need; 0 = unknown.
  double need_of(const api::Trial& trial) const;

 private:
  std::string shape_of(const Json& parameters) const;

  const api::StudySpec& spec_;
  std::optional<double> overhead_;        // largest measured use beyond a plan, bytes
  std::map<std::string, double> needed_;  // by shape
  std::map<std::string, double> least_;   // by shape: gpu_memory_short of its runs, no margin added
};

}  // namespace fettle::core
