// Messages about a run: why it waits, and how often that is written; how far it came.
// Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::core {

// A new reason is recorded when the run is observed within this window of each period, so at most
// once or twice a period, however often reasons change. The first one is recorded at once. The
// window is longer than the interval at which a pending run is observed.
inline constexpr std::int64_t kReasonPeriodMs = 30'000;
inline constexpr std::int64_t kReasonWindowMs = 6'000;

// Sets the message of `record` from the reason that its run gives now. A reason that differs from
// the recorded one in its digits only is no news, and neither is one that came too soon: each is a
// write and an event, and the words of a scheduler change with every cycle. `before`: the records
// as they are stored. Returns whether it is news.
bool update_message(api::RunRecord& record, const std::vector<api::RunRecord>& before,
                    const std::string& reason, std::int64_t now_ms);

// How far a successful run came: "reached epoch 9", or that it fell short of the step that it was
// asked for.
std::string describe_completion(const api::StudySpec& study, const api::TrialStatus& status,
                                const api::RunRecord& record);

}  // namespace fettle::core
