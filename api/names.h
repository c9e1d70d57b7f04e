// Names: the spelling of every enum in documents, a table each; algorithm.h has the tables of
// algorithms and early-stopping rules.
// Pure functions; usable from any thread.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string_view>

#include "api/algorithm.h"
#include "api/gpu_profile.h"
#include "api/study.h"
#include "api/trainer_config.h"
#include "api/trial.h"

namespace fettle::api {

template <class E>
struct EnumName {
  E value;
  std::string_view name;
};

// All values of an enum with their names, in the order in which messages list them (names.cpp).
template <class E>
using EnumNames = std::span<const EnumName<E>>;

EnumNames<ParameterType> names_of(ParameterType);
EnumNames<Scale> names_of(Scale);
EnumNames<Direction> names_of(Direction);
EnumNames<Take> names_of(Take);
EnumNames<AlgorithmKind> names_of(AlgorithmKind);
EnumNames<StoppingKind> names_of(StoppingKind);
EnumNames<WorkersSizing> names_of(WorkersSizing);
EnumNames<TolerationOperator> names_of(TolerationOperator);
EnumNames<TaintEffect> names_of(TaintEffect);
EnumNames<GpuSharing> names_of(GpuSharing);
EnumNames<GpuEnforcement> names_of(GpuEnforcement);
EnumNames<LayerType> names_of(LayerType);
EnumNames<GeluApproximation> names_of(GeluApproximation);
EnumNames<OptimizerKind> names_of(OptimizerKind);
EnumNames<Precision> names_of(Precision);
EnumNames<ScheduleKind> names_of(ScheduleKind);
EnumNames<ScalingRule> names_of(ScalingRule);
EnumNames<BackendKind> names_of(BackendKind);
EnumNames<TrialPhase> names_of(TrialPhase);
EnumNames<Outcome> names_of(Outcome);
EnumNames<FactKind> names_of(FactKind);

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  names_of(E{});
};

template <NamedEnum E>
EnumNames<E> enum_names() {
  return names_of(E{});
}

// Every value is in its table, so this always finds one.
template <NamedEnum E>
std::string_view to_string(E value) {
  for (const EnumName<E>& entry : enum_names<E>()) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

// from_string<Direction>("Maximize"); absent for a name that is not in the table.
template <NamedEnum E>
std::optional<E> from_string(std::string_view name) {
  for (const EnumName<E>& entry : enum_names<E>()) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// Names of the access modes of PersistentVolumeClaims.
std::span<const std::string_view> access_mode_names();
// Values of trial.gang: the schedulers that can place all workers of a trial together.
std::span<const std::string_view> gang_names();
// Whether trial.queue names a queue of the gang's own scheduler instead of Kueue's.
bool gang_has_queue(std::string_view gang);
// Names of the policies for pulling a container's image.
std::span<const std::string_view> image_pull_policy_names();

}  // namespace fettle::api
