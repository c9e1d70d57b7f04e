#include "api/trial/trial.h"

namespace fettle::api {

TrialSpec::TrialSpec() = default;
TrialSpec::TrialSpec(const TrialSpec& other) = default;
TrialSpec::TrialSpec(TrialSpec&& other) noexcept = default;
TrialSpec& TrialSpec::operator=(const TrialSpec& other) = default;
TrialSpec& TrialSpec::operator=(TrialSpec&& other) noexcept = default;
TrialSpec::~TrialSpec() = default;

TrialStatus::TrialStatus() = default;
TrialStatus::TrialStatus(const TrialStatus& other) = default;
TrialStatus::TrialStatus(TrialStatus&& other) noexcept = default;
TrialStatus& TrialStatus::operator=(const TrialStatus& other) = default;
TrialStatus& TrialStatus::operator=(TrialStatus&& other) noexcept = default;
TrialStatus::~TrialStatus() = default;

}  // namespace fettle::api
