// How much memory of a GPU a trial asks for where its Study leaves that open: gpu {memory: auto}.
//
// Only the trainer can know before it trains: what a training takes follows from the shapes of the
// data, which the operator does not see. So the first seconds of a run are its dry run. The trainer
// plans its memory before it allocates any (trainer/memory_plan.h), says in its reports what it has
// planned, and refuses to begin with less, naming what it needs; so a guess that was too small
// costs the start of a pod, and one that was large enough nothing.
//
// What trials have said is remembered for those like them: with the same values of all parameters
// that decide about shapes. Beside the plan a process needs room for what no plan has (the CUDA
// context, workspaces of libraries). How much is learnt from what trials were seen to use.
// Trials ask for multiples of kGpuMemoryStep, so that few sizes are in use at once.
// Derived from the trials alone; pure, usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/study.h"
#include "api/trial.h"
#include "core/ledger.h"
#include "core/plan.h"

namespace fettle::core {

// What a trial of which nothing is known asks for, in bytes.
inline constexpr double kFirstGpuMemory = 1024.0 * 1024 * 1024;
inline constexpr double kGpuMemoryStep = 256.0 * 1024 * 1024;
// A run that had too little, and does not say how much it needs, gets so much more.
inline constexpr double kMoreGpuMemory = 1.5;
// Why a trial ended without a result: TrialSpec::stop, and its condition Complete.
inline constexpr std::string_view kNoSuchGpuMemory = "NoSuchGpuMemory";

// Whether trials of the Study ask for what they need.
bool sizes_gpu_memory(const api::StudySpec& spec);

// What the trial has of GPUs, for display: "2", "0.25", "20Gi"; "" = CPU.
std::string gpu_text_of(const api::StudySpec& spec, const api::TrialSpec& trial);

// Whether the newest run of the trial ended because it had too little memory of its GPU, and it
// has not been given more since.
bool needs_more_gpu_memory(const api::Trial& trial);

// Why wanted_next() has nothing for the trial, for people.
std::string why_no_larger(const api::Trial& trial, std::optional<double> most);

// Writes down that the run ended for want of memory of its GPU, where that is the Study's to mend.
void record_gpu_memory(const api::StudySpec& spec, const Run& run, api::RunRecord& record);

class GpuMemory {
 public:
  GpuMemory(const api::StudySpec& spec, const Ledger& ledger);

  // For a new trial with these parameters, in bytes; `most`: what one may have here at most.
  double wanted(const Json& parameters, std::optional<double> most) const;
  // For the next run of one that needs_more_gpu_memory(). Nothing: there is no larger GPU, or none
  // that is large enough.
  std::optional<double> wanted_next(const api::Trial& trial, std::optional<double> most) const;

  // What a plan of so many bytes takes in all.
  double with_overhead(double planned) const;
  // What the trial is known to need; 0 = nothing is known.
  double need_of(const api::Trial& trial) const;

 private:
  std::string shape_of(const Json& parameters) const;

  const api::StudySpec& spec_;
  std::optional<double> overhead_;        // most bytes beside a plan that were seen in use
  std::map<std::string, double> needed_;  // by shape
  std::map<std::string, double> least_;   // by shape: what its runs have said, without a margin
};

}  // namespace fettle::core
