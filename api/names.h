// Names: how every enum is spelt in documents. One table each; those of algorithms and of
// early-stopping rules are in algorithm.h.
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
std::span<const EnumName<E>> enum_names() = delete;

template <>
std::span<const EnumName<ParameterType>> enum_names();
template <>
std::span<const EnumName<Scale>> enum_names();
template <>
std::span<const EnumName<Direction>> enum_names();
template <>
std::span<const EnumName<Take>> enum_names();
template <>
std::span<const EnumName<AlgorithmKind>> enum_names();
template <>
std::span<const EnumName<StoppingKind>> enum_names();
template <>
std::span<const EnumName<Execution>> enum_names();
template <>
std::span<const EnumName<WorkersSizing>> enum_names();
template <>
std::span<const EnumName<TolerationOperator>> enum_names();
template <>
std::span<const EnumName<TaintEffect>> enum_names();
template <>
std::span<const EnumName<GpuSharing>> enum_names();
template <>
std::span<const EnumName<GpuEnforcement>> enum_names();
template <>
std::span<const EnumName<LayerType>> enum_names();
template <>
std::span<const EnumName<GeluApproximation>> enum_names();
template <>
std::span<const EnumName<OptimizerKind>> enum_names();
template <>
std::span<const EnumName<Precision>> enum_names();
template <>
std::span<const EnumName<ScheduleKind>> enum_names();
template <>
std::span<const EnumName<ScalingRule>> enum_names();
template <>
std::span<const EnumName<BackendKind>> enum_names();
template <>
std::span<const EnumName<TrialPhase>> enum_names();
template <>
std::span<const EnumName<Outcome>> enum_names();
template <>
std::span<const EnumName<FactKind>> enum_names();

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  enum_names<E>();
};

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
// What brings the workers of a trial together on a cluster.
std::span<const std::string_view> gang_names();
// Whether trial.queue names a queue of the scheduler that the gang is for, and not Kueue's.
bool gang_has_queue(std::string_view gang);
// Those of containers.
std::span<const std::string_view> image_pull_policy_names();

}  // namespace fettle::api
