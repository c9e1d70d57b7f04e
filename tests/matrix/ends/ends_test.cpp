// Goes through every way in which a run can end, for pods and for processes; the production code
// judges it and plans the trial to its end, and the result must satisfy these laws:
//
//   - A trial fails only through its own program, its own metric or its own memory.
//   - A result (a final report, or the objective at the step that was asked for) and a recorded
//     value are never discarded.
//   - Whatever does not end the trial leads to another run, or to a wait that says for what.
//   - Pods and processes of this machine end the same way, wherever both can express it.
//
// The runs after the first one are undisturbed. With `ahead` they have nothing left to report.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>
#include <variant>

#include "api/fields/enum_names.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/conditions.h"
#include "core/trial/trial_plan.h"
#include "tests/matrix/ends/ending.h"

namespace fettle::ends {
namespace {

using api::Outcome;
using api::TrialPhase;
using core::Run;
using core::RunState;

constexpr int kMaxLooks = 500;
constexpr std::int64_t kWaitedMs = 120'000;  // then all obstacles are gone

Outcome outcome_of(Stop stop) {
  if (stop == Stop::kTimedOut) return Outcome::kTimedOut;
  return stop == Stop::kHung ? Outcome::kHung : Outcome::kStopped;
}

// Returns the trial as recorded when its first run is about to end.
api::Trial trial_of(const Ending& ending) {
  api::Trial trial;
  trial.metadata.name = "digits-0";
  trial.metadata.ns = "team";
  trial.spec.study = "digits";
  trial.spec.until_step = kLastStep;
  trial.status.phase = TrialPhase::kRunning;
  trial.status.report = recorded_of(ending.said);
  api::RunRecord record;
  record.pod_uid = kUid;
  record.until_step = kLastStep;
  record.started_ms = kStartedMs;
  record.running_ms = kStartedMs;
  if (ending.stop != Stop::kNone) record.stopping = outcome_of(ending.stop);
  if (ending.stop == Stop::kStop) trial.spec.stop = api::Stop{"EarlyStopped", "as decided", 0};
  if (ending.stop == Stop::kSuspend) trial.spec.suspend = true;
  trial.status.runs.push_back(record);
  return trial;
}

// Returns an undisturbed run. If the checkpoint is ahead, it has nothing to report.
Run next_run(const Ending& ending, std::int64_t id, std::int64_t now_ms) {
  Run run;
  run.id = id;
  run.state = RunState::kExited;
  run.outcome = Outcome::kSucceeded;
  run.exit_code = 0;
  run.started_ms = run.ended_ms = now_ms;
  if (!ending.ahead) run.report = report_of(Said::kAtRung);
  return run;
}

class Life {
 public:
  Life(const Ending& ending, bool is_pod)
      : ending_(ending), is_pod_(is_pod), study_(study_of(ending)), trial_(trial_of(ending)) {
    observe(/*cured=*/false);
  }

  // Plans the trial until it has ended. Returns "" or an error on the way.
  std::string live() {
    for (int look = 0; look < kMaxLooks; ++look) {
      if (std::string wrong = step(); !wrong.empty()) return wrong;
      if (api::is_terminal(trial_.status.phase)) return "";
      if (trial_.status.phase == TrialPhase::kPaused) trial_.spec.suspend = false;
    }
    return "never ended";
  }

  const api::TrialStatus& status() const { return trial_.status; }
  std::string reason() const {
    for (const char* type : {"Complete", "Failed"}) {
      const auto* condition = core::find_condition(trial_.status.conditions, type);
      if (condition != nullptr && condition->status) return condition->reason;
    }
    return "";
  }
  std::string words() const {
    return std::string(api::to_string(trial_.status.phase)) + " (" + reason() + ") at step " +
           std::to_string(trial_.status.report ? trial_.status.report->step : 0) + " after " +
           std::to_string(trial_.status.runs.size()) + " runs";
  }

 private:
  void observe(bool cured) {
    Run run = is_pod_ ? pod_run(ending_, cured) : process_run(ending_);
    runs_ = {std::move(run)};
  }

  std::string step() {
    const core::TrialPlan plan = core::plan_trial({study_, trial_, runs_}, now_ms_);
    const bool acts = carry_out(plan);
    if (acts || api::is_terminal(trial_.status.phase)) return "";
    if (trial_.status.phase == TrialPhase::kPaused) return "";
    if (now_ms_ >= kNowMs + kWaitedMs) {
      observe(/*cured=*/true);
    } else if (const bool first = trial_.status.runs.size() == 1 && !runs_.empty();
               first && now_ms_ >= kNowMs + 60'000 && !says_why()) {
      return "waits for a minute and does not say for what";
    }
    const std::int64_t next_ms = plan.wake_at_ms.value_or(now_ms_ + 30'000);
    now_ms_ = std::max(now_ms_ + 1, next_ms);
    if (!runs_.empty() && runs_.front().state != RunState::kExited) now_ms_ += 10'000;
    return "";
  }

  bool says_why() const { return core::is_true(trial_.status.conditions, "Waiting"); }

  // Returns whether a run was started or forgotten.
  bool carry_out(const core::TrialPlan& plan) {
    bool acts = false;
    for (const core::TrialAction& action : plan.actions) {
      if (const auto* write = std::get_if<core::UpdateTrialStatus>(&action)) {
        trial_.status = write->status;
      } else if (const auto* started = std::get_if<core::StartRun>(&action)) {
        runs_ = {next_run(ending_, started->run, now_ms_)};
        acts = true;
      } else if (const auto* gone = std::get_if<core::DeleteRun>(&action)) {
        acts = std::erase_if(runs_, [&](const Run& run) {
                 return run.id == gone->run && !run.terminating;
               }) > 0;
        lingering_ = !runs_.empty();
      }
    }
    if (lingering_ && now_ms_ >= kNowMs + kWaitedMs) runs_.clear();  // removed by force
    return acts;
  }

  const Ending ending_;
  const bool is_pod_;
  const api::Study study_;
  api::Trial trial_;
  std::vector<Run> runs_;
  bool lingering_ = false;
  std::int64_t now_ms_ = kNowMs;
};

// Whether the result of the first run could be known when it ended.
bool is_known(const Ending& ending, bool is_pod) {
  if (!is_pod) return true;
  const bool by_message = ending.said == Said::kFinal || ending.said == Said::kFinalBelow;
  if (ending.trainer)
    return !by_message || (ending.pod == Pod::kThere && ending.fate != Fate::kLost);
  // The log can be read in the end, unless a stop does not wait for it.
  if (ending.log == Log::kWaits) return ending.stop == Stop::kNone && ending.fate != Fate::kLost;
  return ending.log == Log::kRead;
}

bool has_result(const Ending& ending) {
  return ending.said != Said::kNothing && ending.said != Said::kBelow;
}

// Whether a trial may fail: through its program itself, its metric (exit 0 without a value, all
// output read), or its own time.
bool may_fail(const Ending& ending, bool is_pod) {
  if (ending.stop == Stop::kTimedOut || ending.stop == Stop::kHung) return true;
  if (ended_by_itself(ending)) return ending.pod == Pod::kThere;
  const bool silent = ending.exit == Exit::kZero && ending.said == Said::kNothing;
  const bool watched = ending.fate == Fate::kNone && is_known(ending, is_pod);
  return silent && watched && ending.pod == Pod::kThere;
}

std::string violation(const Ending& ending, bool is_pod, Life& life) {
  const std::string wrong = life.live();
  if (!wrong.empty()) return wrong;
  const TrialPhase phase = life.status().phase;
  const bool completed = phase == TrialPhase::kCompleted;
  if (phase == TrialPhase::kFailed && !may_fail(ending, is_pod)) return "blames the trial";
  if (has_result(ending) && is_known(ending, is_pod) && !completed) return "discards a result";
  const bool lost = !life.status().report || life.reason() == "ResultLost";
  if (recorded_of(ending.said) && lost) return "discards a recorded value";
  const bool stop = ending.stop == Stop::kStop;
  if (phase == TrialPhase::kStopped && !stop && life.reason() != "ResultLost")
    return "stops unasked";
  if (life.reason() == "ResultLost" && !ending.ahead)
    return "gives a result up that would come again";
  if (completed && !life.status().report) return "completes without a value";
  return "";
}

int report(const std::map<std::string, std::vector<std::string>>& violations) {
  int count = 0;
  for (const auto& [what, where] : violations) {
    count += static_cast<int>(where.size());
    std::cout << what << ": " << where.size() << " rows, the first:\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(where.size(), 8); ++i) {
      std::cout << "  " << where[i] << "\n";
    }
  }
  return count;
}

TEST(EndsOfARun, HasTheSameVerdictEverywhere) {
  std::map<std::string, std::vector<std::string>> violations;
  std::map<std::string, std::string> pods;
  std::size_t rows = 0;
  for (const bool is_pod : {true, false}) {
    for (const Ending& ending : is_pod ? endings_of_pods() : endings_of_processes()) {
      ++rows;
      const std::string name = name_of(ending);
      Life life(ending, is_pod);
      const std::string wrong = violation(ending, is_pod, life);
      const std::string where = (is_pod ? "pod: " : "process: ") + name + " -> " + life.words();
      if (!wrong.empty()) violations[wrong].push_back(where);
      if (is_pod) pods[name] = life.words();
      const auto twin = is_pod ? pods.end() : pods.find(name);
      const bool agrees = twin == pods.end() || twin->second == life.words();
      if (!agrees) violations["pods end otherwise"].push_back(where + "; pod: " + twin->second);
    }
  }
  const int count = report(violations);
  std::cout << "ends of a run: " << rows << " rows, " << count << " violations\n";
  EXPECT_EQ(count, 0);
  EXPECT_GT(rows, 1'000u) << "combinations are missing";
}

}  // namespace
}  // namespace fettle::ends
