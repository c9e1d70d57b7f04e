// Whether the workers of a run have met, judged by its reports.
//
// Workers that cannot reach each other (a network policy, a DNS server that does not answer) look
// like a run that trains: all containers run. The built-in trainer reports which ranks it waits
// for, and ends by itself after kMeetingMs. Other programs report nothing before they train.
// Neither is the fault of a configuration. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

// How long rank 0 waits for the other workers once its own container runs. All have a node by then,
// so this is time for pulling images; longer means that they cannot reach each other.
inline constexpr std::int64_t kMeetingMs = 900'000;
// A run of several workers that has not reported this long after it began to run says so.
inline constexpr std::int64_t kFirstReportMs = 60'000;

// Reasons of the condition Waiting of a trial whose run is Running.
inline constexpr const char* kWorkersMissing = "WorkersMissing";
inline constexpr const char* kNoReport = "NoReport";

// Whether the newest run of `status`, which is Running, may be one of several workers that have not
// met yet: it has not reported training.
bool may_lack_workers(const api::TrialStatus& status, const Run& run);

// Why such a run waits. Both texts are empty while the meeting may still take time, or if it
// trains.
struct Meeting {
  std::string reason;
  std::string words;
  std::int64_t wake_at_ms = 0;  // when there may be words; 0 = time alone brings none
};
Meeting meeting_of(const api::TrialStatus& status, const Run& run, std::int64_t now_ms);

// Sets the condition Waiting if the meeting has words. Returns whether they are news: `before`
// lacks them.
bool set_meeting(const Meeting& meeting, const std::vector<api::StatusCondition>& before,
                 std::int64_t now_ms, std::vector<api::StatusCondition>& conditions);

// How long after its last sign a meeting may still succeed; the trainer itself ends a meeting that
// does not. 0: no meeting is known to be under way.
std::int64_t meeting_time_ms(const api::TrialStatus& status, const Run& run);

}  // namespace fettle::core
