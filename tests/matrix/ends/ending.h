// Ending: one way in which the first run of a trial ends, apart from its observer, and its form in
// pods and in processes of this machine. Test code; pure, except for the log of a killed
// supervisor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "core/plan.h"

namespace fettle::ends {

enum class Exit { kZero, kOne, kMissesOthers, kSigterm, kSigkill, kCrash, kMemory };
// The program's output by then; the Study asks for steps up to kLastStep.
enum class Said { kNothing, kBelow, kAtRung, kFinal, kFinalBelow };
// kWaits: reading fails, and is retried. kGivenUp: it was retried for long enough.
enum class Log { kRead, kWaits, kGivenUp };
enum class Pod { kThere, kGone };
// kMoved: ended by its surroundings (eviction; Ctrl-C). kDeleted: by somebody (kubectl delete pod;
// the guard killed). kLost: its observer is gone (node; supervisor). kQueue: Kueue takes the nodes
// back. kPeer: another worker was evicted right before.
enum class Fate { kNone, kMoved, kDeleted, kLost, kQueue, kPeer };
enum class Stop { kNone, kStop, kSuspend, kTimedOut, kHung };

struct Ending {
  Exit exit = Exit::kZero;
  Said said = Said::kNothing;
  Log log = Log::kRead;
  Pod pod = Pod::kThere;
  Fate fate = Fate::kNone;
  Stop stop = Stop::kNone;
  // Its checkpoint is newer than its last report: the next run has nothing to do or to report.
  bool ahead = false;
  bool trainer = false;  // the built-in one, with its own reports; else a template with a claim
};

inline constexpr std::int64_t kLastStep = 3;
inline constexpr std::int64_t kStartedMs = 900'000;
inline constexpr std::int64_t kEndedMs = 950'000;
inline constexpr std::int64_t kNowMs = 1'000'000;
inline constexpr const char* kUid = "pod-0";

std::string name_of(const Ending& ending);
bool ended_by_itself(const Ending& ending);  // its exit may be its own fault
// Returns the report from its output; absent if it printed nothing.
std::optional<api::Report> report_of(Said said);
// Returns the report recorded while it ran: without the last lines.
std::optional<api::Report> recorded_of(Said said);
api::Study study_of(const Ending& ending);

// Return every combination that a cluster can express, and that one machine can.
std::vector<Ending> endings_of_pods();
std::vector<Ending> endings_of_processes();

// Returns the run as observed. `cured`: after the obstacle is gone (the log can be read, the pod
// object was removed).
core::Run pod_run(const Ending& ending, bool cured);
core::Run process_run(const Ending& ending);

}  // namespace fettle::ends
