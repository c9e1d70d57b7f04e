// Bounds and forms that several fields of a Study share (study_fields.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/fields/field.h"
#include "api/fields/label_syntax.h"
#include "api/trainer/trainer_fields.h"

namespace fettle::api {

inline constexpr std::string_view kApiVersion = "fettle.dev/v1alpha1";
inline constexpr std::size_t kMostParameters = 128;
inline constexpr std::size_t kMostValues = 256;    // of a categorical parameter
inline constexpr std::size_t kLongestValue = 256;  // bytes
inline constexpr std::size_t kMostObjectives = 8;
inline constexpr std::size_t kMostConstraints = 16;
inline constexpr std::size_t kMostFirstPoints = 100;
inline constexpr std::size_t kMostKnownResults = 256;
inline constexpr std::int64_t kMostLeaders = 20;      // configurations that replicates repeat
inline constexpr std::int64_t kMostReplicates = 100;  // of each
inline constexpr std::size_t kLongestStudyName = 40;
inline constexpr std::size_t kLongestName = 63;
inline constexpr std::size_t kLongestMessage = 4096;
inline constexpr std::size_t kMostSelectors = 16;  // of a pod's nodes
inline constexpr std::size_t kMostTolerations = 16;
inline constexpr std::size_t kMostPodLabels = 32;  // and annotations
inline constexpr std::size_t kLongestAnnotation = 4096;
inline constexpr std::size_t kMostSpreads = 16;
inline constexpr std::size_t kMostVolumes = 32;
inline constexpr std::size_t kMostMounts = 64;
inline constexpr std::size_t kMostPodVariables = 256;  // of the environment of a trainer's pod
inline constexpr std::size_t kMostEnvSources = 32;
inline constexpr std::int64_t kMostSlots = 64;  // of one worker process
inline constexpr std::size_t kMostPassedVariables = 64;
inline constexpr std::size_t kLongestVariable = 128;  // bytes of a name
inline constexpr double kLongestDuration = 10.0 * 365 * 86400;

inline FieldRules dns_label() { return text(1, kLongestName).as(Form::kDnsLabel); }
inline FieldRules metric_name() { return text(1, kLongestName).as(Form::kMetricName); }
inline FieldRules label_key() { return text(1, kLongestLabelKey).as(Form::kLabelKey); }
inline FieldRules label_value() { return text(0, kLongestLabelName).as(Form::kLabelValue); }
inline FieldRules dns_subdomain() { return text(1, kLongestDomain).as(Form::kDnsSubdomain); }
inline FieldRules grace_period() { return number(0, 86'400).as(Form::kDuration); }
inline FieldRules duration_above_zero() { return above(0, kLongestDuration).as(Form::kDuration); }
inline FieldRules quantity() { return number(-kLargestBound, kLargestBound).as(Form::kQuantity); }
inline FieldRules scalars(std::size_t most) {
  return list(1, most).as(Form::kScalar).of_text(kLongestValue);
}

}  // namespace fettle::api
