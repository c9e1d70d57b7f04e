#include "core/study/gpu_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "api/fields/quantity.h"
#include "api/trial/display.h"
#include "api/trial/report.h"

namespace fettle::core {
namespace {

// The overhead beside the plan until one was measured.
constexpr double kFirstOverhead = 512.0 * 1024 * 1024;
constexpr double kFirstOverheadShare = 0.1;
// Margin above the highest use that was measured, because it varies a little from run to run.
constexpr double kRoom = 1.05;

// Fields of the trainer that do not change the sizes of its arrays; a name that ends with a dot
// stands for all fields below it. Every other field is part of the shape.
constexpr std::array<std::string_view, 17> kShapeless = {
    "training.learningRate",   "training.learningRateScaling",
    "training.nesterov",       "training.beta1",
    "training.beta2",          "training.epsilon",
    "training.smoothing",      "training.weightDecay",
    "training.clipNorm",       "training.labelSmoothing",
    "training.referenceBatch", "training.threads",
    "model.dropout",           "data.splitSeed",
    "training.schedule.",      "training.distill.temperature",
    "training.distill.weight"};

// Decides only whether SGD keeps a state beside the weights.
constexpr std::string_view kMomentum = "training.momentum";

bool is_shapeless(std::string_view field) {
  if (field.ends_with(".rate") || field.starts_with("data.normalize.") ||
      field.starts_with("data.augment.")) {
    return true;
  }
  return std::ranges::any_of(kShapeless, [&](std::string_view one) {
    return one.ends_with('.') ? field.starts_with(one) : field == one;
  });
}

// A metric of the trial's newest report; 0 if it has none.
double metric_of(const api::Trial& trial, const char* name) {
  if (!trial.status.report) return 0;
  const auto found = trial.status.report->metrics.find(name);
  const bool said = found != trial.status.report->metrics.end() && std::isfinite(found->second);
  return said ? std::max(0.0, found->second) : 0;
}

// The highest use that was measured; 0 = not measured. On a shared card NVML counts other
// processes, too, so the value is limited to the trial's request.
double used_by(const api::Trial& trial) {
  const double seen = metric_of(trial, api::kGpuMemoryUsed);
  if (seen == 0 || trial.status.runs.empty()) return 0;
  return std::min(seen, trial.status.runs.back().gpu_memory.value_or(seen));
}

double rounded_up(double bytes) {
  return std::max(1.0, std::ceil(bytes / kGpuMemoryStep)) * kGpuMemoryStep;
}

}  // namespace

std::string why_no_larger(const api::Trial& trial, std::optional<double> most) {
  const api::RunRecord& newest = trial.status.runs.back();
  const double says = newest.gpu_memory_short.value_or(0);
  const std::string needs = says > 0 ? "it needs " + api::format_quantity(says) : "it needs more";
  if (!most) return needs + " of a GPU's memory";
  return needs + (says > 0 ? " of a GPU's memory; " : " than that; ") +
         api::format_quantity(*most) + " is the most that one has here";
}

GpuMemory::GpuMemory(const api::StudySpec& spec, const Ledger& ledger) : spec_(spec) {
  // The overhead first: need_of() adds it to plans.
  for (const api::TrialPtr& trial : ledger.trials()) {
    const double planned = metric_of(*trial, api::kGpuMemoryPlanned);
    const double used = used_by(*trial);
    if (planned == 0 || used == 0) continue;
    overhead_ = std::max(overhead_.value_or(0), used - planned);
  }
  for (const api::TrialPtr& trial : ledger.trials()) {
    const double need = need_of(*trial);
    if (need == 0) continue;  // not known
    const std::string shape = shape_of(trial->spec.parameters);
    needed_[shape] = std::max(needed_[shape], need);
    for (const api::RunRecord& run : trial->status.runs) {
      least_[shape] = std::max(least_[shape], run.gpu_memory_short.value_or(0));
    }
  }
}

double GpuMemory::with_overhead(double planned) const {
  return overhead_ ? kRoom * (planned + *overhead_)
                   : planned + kFirstOverhead + kFirstOverheadShare * planned;
}

double GpuMemory::need_of(const api::Trial& trial) const {
  const double planned = metric_of(trial, api::kGpuMemoryPlanned);
  const double used = used_by(trial);
  // Measured use is more exact than a plan.
  double need = used > 0 ? kRoom * used : planned > 0 ? with_overhead(planned) : 0;
  // A run that had too little raises the need to its request, or to a multiple of its share.
  for (const api::RunRecord& run : trial.status.runs) {
    if (!run.gpu_memory_short) continue;
    const double had = run.gpu_memory.value_or(kFirstGpuMemory);
    const double asked_for = *run.gpu_memory_short;  // 0 = it ran out of memory without a figure
    need = std::max(need, asked_for > 0 ? with_overhead(asked_for) : kMoreGpuMemory * had);
  }
  return need;
}

std::string GpuMemory::shape_of(const Json& parameters) const {
  Json shape = Json::object();
  for (const api::Parameter& parameter : spec_.parameters) {
    const Json* const value = parameters.find(parameter.name);
    if (value == nullptr) continue;
    if (parameter.sets == kMomentum) {
      shape.set(parameter.name, value->as_double() > 0);  // without momentum there is no state
    } else if (!is_shapeless(parameter.sets)) {
      shape.set(parameter.name, *value);
    }
  }
  return shape.dump();
}

double GpuMemory::wanted(const Json& parameters, std::optional<double> most) const {
  const std::string shape = shape_of(parameters);
  const auto known = needed_.find(shape);
  double need = known != needed_.end() ? known->second : kFirstGpuMemory;
  // No GPU here can hold a trial of this shape. With the smallest request its trainer soon refuses,
  // which ends it; with a large one it would first wait for a whole GPU.
  const auto least = least_.find(shape);
  if (most && least != least_.end() && least->second > *most) need = kFirstGpuMemory;
  return std::min(rounded_up(need), most.value_or(rounded_up(need)));
}

std::optional<double> GpuMemory::wanted_next(const api::Trial& trial,
                                             std::optional<double> most) const {
  const api::RunRecord& newest = trial.status.runs.back();
  const double had = newest.gpu_memory.value_or(kFirstGpuMemory);
  const double asked_for = newest.gpu_memory_short.value_or(0);  // by the trainer; 0 = not known
  // It had all that a GPU here has, or asked for more than that.
  if (most && (had >= *most || asked_for > *most)) return std::nullopt;
  const auto known = needed_.find(shape_of(trial.spec.parameters));
  const double need = known != needed_.end() ? known->second : need_of(trial);
  // At least a step more than before, so that each retry is a larger request.
  const double next = rounded_up(std::max(need, had + kGpuMemoryStep));
  return std::min(next, most.value_or(next));
}

}  // namespace fettle::core
