#include "api/study/study_names.h"

#include <array>

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
// The last two names occur in Studies that earlier versions have stored.
constexpr std::array<EnumName<Execution>, 5> kExecutions{{
    {Execution::kAuto, "auto"},
    {Execution::kProcess, "Process"},
    {Execution::kWarm, "Warm"},
    {Execution::kProcess, "Job"},
    {Execution::kAuto, "Pool"},
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
constexpr std::array<std::string_view, 3> kAccessModes{"ReadWriteOnce", "ReadWriteOncePod",
                                                       "ReadWriteMany"};
constexpr std::string_view kGangs[] = {"auto", "none", "native", "coscheduling", "volcano", "kai"};
constexpr std::string_view kImagePullPolicies[] = {"Always", "IfNotPresent", "Never"};

}  // namespace

EnumNames<ParameterType> names_of(ParameterType /*any*/) { return kParameterTypes; }
EnumNames<Scale> names_of(Scale /*any*/) { return kScales; }
EnumNames<Direction> names_of(Direction /*any*/) { return kDirections; }
EnumNames<Take> names_of(Take /*any*/) { return kTakes; }
EnumNames<Execution> names_of(Execution /*any*/) { return kExecutions; }
EnumNames<WorkersSizing> names_of(WorkersSizing /*any*/) { return kWorkersSizings; }
EnumNames<TolerationOperator> names_of(TolerationOperator /*any*/) { return kTolerationOperators; }
EnumNames<TaintEffect> names_of(TaintEffect /*any*/) { return kTaintEffects; }

std::span<const std::string_view> access_mode_names() { return kAccessModes; }
std::span<const std::string_view> gang_names() { return kGangs; }
bool gang_has_queue(std::string_view gang) { return gang == "volcano" || gang == "kai"; }
std::span<const std::string_view> image_pull_policy_names() { return kImagePullPolicies; }

}  // namespace fettle::api
