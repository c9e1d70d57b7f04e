#include <array>

#include "api/trial/trial.h"

namespace fettle::api {
namespace {

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

}  // namespace

EnumNames<TrialPhase> names_of(TrialPhase /*any*/) { return kTrialPhases; }
EnumNames<Outcome> names_of(Outcome /*any*/) { return kOutcomes; }
EnumNames<FactKind> names_of(FactKind /*any*/) { return kFactKinds; }

}  // namespace fettle::api
