#include "tests/matrix/ends/ending.h"

#include <utility>

#include "api/trainer/trainer_config.h"
#include "api/trial/report.h"

namespace fettle::ends {
namespace {

template <class E>
std::vector<E> all(E last) {
  std::vector<E> values;
  for (int i = 0; i <= static_cast<int>(last); ++i) values.push_back(static_cast<E>(i));
  return values;
}

// If the end of the program is not seen, only one exit counts.
bool has_exit(Fate fate) { return fate != Fate::kLost; }

bool is_possible_pod(const Ending& ending) {
  const bool first_exit = ending.exit == Exit::kZero;
  if (!has_exit(ending.fate) && !first_exit) return false;
  // Without its pod, the Job only reports Complete or Failed.
  if (ending.pod == Pod::kGone && ending.exit > Exit::kOne) return false;
  // A log that waits belongs to an existing pod; the trainer's log does not count.
  if (ending.log == Log::kWaits && ending.pod == Pod::kGone) return false;
  if (ending.trainer && ending.log != Log::kRead) return false;
  // A worker only misses others if there are others.
  const bool has_peer = ending.fate == Fate::kPeer;
  if (has_peer && (ending.pod == Pod::kGone || first_exit)) return false;
  return ending.exit != Exit::kMissesOthers || ending.fate == Fate::kPeer;
}

bool is_possible_process(const Ending& ending) {
  if (!has_exit(ending.fate) && ending.exit != Exit::kZero) return false;
  const bool has_pod = ending.pod == Pod::kThere && ending.log == Log::kRead && !ending.trainer;
  const bool known_fate = ending.fate != Fate::kQueue && ending.fate != Fate::kPeer;
  return has_pod && known_fate && ending.exit != Exit::kMissesOthers;
}

std::vector<Ending> every_ending(bool (*is_possible)(const Ending&)) {
  std::vector<Ending> found;
  for (const Exit exit : all(Exit::kMemory)) {
    for (const Said said : all(Said::kFinalBelow)) {
      for (const Log log : all(Log::kGivenUp)) {
        for (const Pod pod : all(Pod::kGone)) {
          for (const Fate fate : all(Fate::kPeer)) {
            for (const Stop stop : all(Stop::kHung)) {
              for (const bool ahead : {false, true}) {
                for (const bool trainer : {false, true}) {
                  const Ending one{exit, said, log, pod, fate, stop, ahead, trainer};
                  if (is_possible(one)) found.push_back(one);
                }
              }
            }
          }
        }
      }
    }
  }
  return found;
}

api::Report report_at(std::int64_t step, bool final_result) {
  api::Report report;
  for (std::int64_t at = 1; at <= step; ++at) {
    api::ReportLine line;
    line.step = at;
    line.metrics["loss"] = 1.0 / static_cast<double>(at);
    api::add_line(report, std::move(line), {}, 0);
  }
  report.final_result = final_result;
  return report;
}

}  // namespace

std::string name_of(const Ending& ending) {
  static constexpr const char* kExits[] = {"exit 0",  "exit 1", "exit 75",    "SIGTERM",
                                           "SIGKILL", "crash",  "over memory"};
  static constexpr const char* kSaid[] = {"said nothing", "below the rung", "at the rung", "final",
                                          "final below"};
  static constexpr const char* kLogs[] = {"log read", "log waits", "log given up"};
  static constexpr const char* kPods[] = {"pod there", "pod gone"};
  static constexpr const char* kFates[] = {"undisturbed", "moved", "deleted",
                                           "lost",        "queue", "peer lost"};
  static constexpr const char* kStops[] = {"no stop", "stop", "suspend", "timed out", "hung"};
  const auto at = [](const auto& names, auto value) {
    return std::string(names[static_cast<int>(value)]) + ", ";
  };
  return at(kExits, ending.exit) + at(kSaid, ending.said) + at(kLogs, ending.log) +
         at(kPods, ending.pod) + at(kFates, ending.fate) + at(kStops, ending.stop) +
         (ending.ahead ? "checkpoint ahead" : "checkpoint behind") +
         (ending.trainer ? ", trainer" : ", template");
}

bool ended_by_itself(const Ending& ending) {
  if (ending.fate != Fate::kNone) return false;
  return ending.exit == Exit::kOne || ending.exit == Exit::kCrash || ending.exit == Exit::kMemory;
}

std::optional<api::Report> report_of(Said said) {
  switch (said) {
    case Said::kNothing:
      return std::nullopt;
    case Said::kBelow:
      return report_at(kLastStep - 1, false);
    case Said::kAtRung:
      return report_at(kLastStep, false);
    case Said::kFinal:
      return report_at(kLastStep, true);
    case Said::kFinalBelow:
      return report_at(kLastStep - 1, true);
  }
  return std::nullopt;
}

std::optional<api::Report> recorded_of(Said said) {
  if (said == Said::kNothing) return std::nullopt;
  return report_at(1, false);
}

api::Study study_of(const Ending& ending) {
  api::Study study;
  study.metadata.name = "digits";
  study.metadata.ns = "team";
  study.spec.objectives.emplace_back().metric = "loss";
  study.spec.resource.max = kLastStep;
  study.spec.trial.retries = 0;
  if (ending.stop == Stop::kTimedOut) study.spec.trial.timeout = 60;
  if (ending.stop == Stop::kHung) study.spec.trial.heartbeat = 60;
  if (ending.trainer) study.spec.trial.trainer.emplace();
  return study;
}

std::vector<Ending> endings_of_pods() { return every_ending(is_possible_pod); }
std::vector<Ending> endings_of_processes() { return every_ending(is_possible_process); }

}  // namespace fettle::ends
