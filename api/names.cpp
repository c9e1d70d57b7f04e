#include "api/names.h"

#include <array>
#include <vector>

namespace fettle::api {
namespace {

constexpr std::array<EnumName<ParameterType>, 4> kParameterTypes{{
    {ParameterType::kDouble, "Double"},
    {ParameterType::kInteger, "Integer"},
    {ParameterType::kCategorical, "Categorical"},
    {ParameterType::kBoolean, "Boolean"},
}};
constexpr std::array<EnumName<Scale>, 2> kScales{{
    {Scale::kLinear, "Linear"},
    {Scale::kLog, "Log"},
}};
constexpr std::array<EnumName<Direction>, 2> kDirections{{
    {Direction::kMinimize, "Minimize"},
    {Direction::kMaximize, "Maximize"},
}};
constexpr std::array<EnumName<Take>, 2> kTakes{{
    {Take::kLast, "Last"},
    {Take::kBest, "Best"},
}};
constexpr std::array<EnumName<WorkersSizing>, 2> kWorkersSizings{{
    {WorkersSizing::kAuto, "Auto"},
    {WorkersSizing::kManual, "Manual"},
}};
constexpr std::array<EnumName<TolerationOperator>, 2> kTolerationOperators{{
    {TolerationOperator::kEqual, "Equal"},
    {TolerationOperator::kExists, "Exists"},
}};
constexpr std::array<EnumName<TaintEffect>, 3> kTaintEffects{{
    {TaintEffect::kNoSchedule, "NoSchedule"},
    {TaintEffect::kPreferNoSchedule, "PreferNoSchedule"},
    {TaintEffect::kNoExecute, "NoExecute"},
}};
constexpr std::array<EnumName<GpuSharing>, 9> kGpuSharings{{
    {GpuSharing::kWhole, "Whole"},
    {GpuSharing::kMig, "MIG"},
    {GpuSharing::kMps, "MPS"},
    {GpuSharing::kTimeSlicing, "TimeSlicing"},
    {GpuSharing::kDra, "DRA"},
    {GpuSharing::kKai, "KAI"},
    {GpuSharing::kHami, "HAMi"},
    {GpuSharing::kVolcano, "Volcano"},
    {GpuSharing::kOther, "Other"},
}};
constexpr std::array<EnumName<GpuEnforcement>, 3> kGpuEnforcements{{
    {GpuEnforcement::kNothing, "Nothing"},
    {GpuEnforcement::kMemory, "Memory"},
    {GpuEnforcement::kHardware, "Hardware"},
}};
constexpr std::array<EnumName<LayerType>, 18> kLayerTypes{{
    {LayerType::kLinear, "linear"},
    {LayerType::kConv, "conv"},
    {LayerType::kBatchNorm, "batchNorm"},
    {LayerType::kLayerNorm, "layerNorm"},
    {LayerType::kRmsNorm, "rmsNorm"},
    {LayerType::kRelu, "relu"},
    {LayerType::kGelu, "gelu"},
    {LayerType::kMaxPool, "maxPool"},
    {LayerType::kAveragePool, "averagePool"},
    {LayerType::kGlobalPool, "globalPool"},
    {LayerType::kFlatten, "flatten"},
    {LayerType::kDropout, "dropout"},
    {LayerType::kEmbedding, "embedding"},
    {LayerType::kAttention, "attention"},
    {LayerType::kHead, "head"},
    {LayerType::kResidual, "residual"},
    {LayerType::kShortcut, "shortcut"},
    {LayerType::kAdd, "add"},
}};
constexpr std::array<EnumName<GeluApproximation>, 2> kGeluApproximations{{
    {GeluApproximation::kNone, "none"},
    {GeluApproximation::kTanh, "tanh"},
}};
constexpr std::array<EnumName<OptimizerKind>, 5> kOptimizers{{
    {OptimizerKind::kSgd, "sgd"},
    {OptimizerKind::kAdam, "adam"},
    {OptimizerKind::kAdamW, "adamw"},
    {OptimizerKind::kRmsprop, "rmsprop"},
    {OptimizerKind::kLamb, "lamb"},
}};
constexpr std::array<EnumName<Precision>, 5> kPrecisions{{
    {Precision::kAuto, "auto"},
    {Precision::kFp32, "fp32"},
    {Precision::kTf32, "tf32"},
    {Precision::kBf16, "bf16"},
    {Precision::kFp16, "fp16"},
}};
constexpr std::array<EnumName<ScheduleKind>, 4> kSchedules{{
    {ScheduleKind::kConstant, "constant"},
    {ScheduleKind::kStep, "step"},
    {ScheduleKind::kCosine, "cosine"},
    {ScheduleKind::kLinear, "linear"},
}};
constexpr std::array<EnumName<ScalingRule>, 4> kScalingRules{{
    {ScalingRule::kAuto, "auto"},
    {ScalingRule::kNone, "none"},
    {ScalingRule::kLinear, "linear"},
    {ScalingRule::kSqrt, "sqrt"},
}};
constexpr std::array<EnumName<BackendKind>, 4> kBackends{{
    {BackendKind::kAuto, "auto"},
    {BackendKind::kReference, "reference"},
    {BackendKind::kOnednn, "onednn"},
    {BackendKind::kCuda, "cuda"},
}};
constexpr std::array<EnumName<TrialPhase>, 6> kTrialPhases{{
    {TrialPhase::kPending, "Pending"},
    {TrialPhase::kRunning, "Running"},
    {TrialPhase::kPaused, "Paused"},
    {TrialPhase::kCompleted, "Completed"},
    {TrialPhase::kStopped, "Stopped"},
    {TrialPhase::kFailed, "Failed"},
}};
constexpr std::array<EnumName<Outcome>, 7> kOutcomes{{
    {Outcome::kSucceeded, "Succeeded"},
    {Outcome::kFailed, "Failed"},
    {Outcome::kTimedOut, "TimedOut"},
    {Outcome::kHung, "Hung"},
    {Outcome::kOutOfMemory, "OutOfMemory"},
    {Outcome::kDisrupted, "Disrupted"},
    {Outcome::kStopped, "Stopped"},
}};
constexpr std::array<EnumName<FactKind>, 4> kFactKinds{{
    {FactKind::kRung, "Rung"},
    {FactKind::kResult, "Result"},
    {FactKind::kStopped, "Stopped"},
    {FactKind::kFailed, "Failed"},
}};
constexpr std::array<std::string_view, 3> kAccessModes{"ReadWriteOnce", "ReadWriteOncePod",
                                                       "ReadWriteMany"};
constexpr std::string_view kGangs[] = {"auto", "none", "native", "coscheduling", "volcano", "kai"};
constexpr std::string_view kImagePullPolicies[] = {"Always", "IfNotPresent", "Never"};

// Converts a table of traits to a table of names.
template <class Traits>
auto as_names(std::span<const Traits> table) {
  std::vector<EnumName<decltype(Traits::kind)>> out;
  for (const Traits& row : table) out.push_back({row.kind, row.name});
  return out;
}

}  // namespace

EnumNames<ParameterType> names_of(ParameterType /*any*/) { return kParameterTypes; }
EnumNames<Scale> names_of(Scale /*any*/) { return kScales; }
EnumNames<Direction> names_of(Direction /*any*/) { return kDirections; }
EnumNames<Take> names_of(Take /*any*/) { return kTakes; }
EnumNames<WorkersSizing> names_of(WorkersSizing /*any*/) { return kWorkersSizings; }
EnumNames<TolerationOperator> names_of(TolerationOperator /*any*/) { return kTolerationOperators; }
EnumNames<TaintEffect> names_of(TaintEffect /*any*/) { return kTaintEffects; }
EnumNames<GpuSharing> names_of(GpuSharing /*any*/) { return kGpuSharings; }
EnumNames<GpuEnforcement> names_of(GpuEnforcement /*any*/) { return kGpuEnforcements; }
EnumNames<LayerType> names_of(LayerType /*any*/) { return kLayerTypes; }
EnumNames<GeluApproximation> names_of(GeluApproximation /*any*/) { return kGeluApproximations; }
EnumNames<OptimizerKind> names_of(OptimizerKind /*any*/) { return kOptimizers; }
EnumNames<Precision> names_of(Precision /*any*/) { return kPrecisions; }
EnumNames<ScheduleKind> names_of(ScheduleKind /*any*/) { return kSchedules; }
EnumNames<ScalingRule> names_of(ScalingRule /*any*/) { return kScalingRules; }
EnumNames<BackendKind> names_of(BackendKind /*any*/) { return kBackends; }
EnumNames<TrialPhase> names_of(TrialPhase /*any*/) { return kTrialPhases; }
EnumNames<Outcome> names_of(Outcome /*any*/) { return kOutcomes; }
EnumNames<FactKind> names_of(FactKind /*any*/) { return kFactKinds; }

EnumNames<AlgorithmKind> names_of(AlgorithmKind /*any*/) {
  static const auto kNames = as_names(all_algorithms());
  return kNames;
}
EnumNames<StoppingKind> names_of(StoppingKind /*any*/) {
  static const auto kNames = as_names(all_stopping_rules());
  return kNames;
}

std::span<const std::string_view> access_mode_names() { return kAccessModes; }
std::span<const std::string_view> gang_names() { return kGangs; }
bool gang_has_queue(std::string_view gang) { return gang == "volcano" || gang == "kai"; }
std::span<const std::string_view> image_pull_policy_names() { return kImagePullPolicies; }

}  // namespace fettle::api
