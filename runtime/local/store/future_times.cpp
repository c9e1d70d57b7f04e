#include "runtime/local/store/future_times.h"

#include <algorithm>
#include <map>
#include <vector>

namespace fettle::local {
namespace {

class Present {
 public:
  explicit Present(std::int64_t now_ms) : now_ms_(now_ms) {}

  void clamp(std::int64_t& at_ms) {
    note(at_ms);
    at_ms = std::min(at_ms, now_ms_);
  }
  void clamp(std::vector<api::StatusCondition>& conditions) {
    for (api::StatusCondition& condition : conditions) clamp(condition.since_ms);
  }

  // Moves all of them back by as much as the latest is ahead; 0 is no time.
  void move(const std::vector<std::int64_t*>& times) {
    std::int64_t latest = 0;
    for (const std::int64_t* time : times) latest = std::max(latest, *time);
    const std::int64_t ahead = latest - now_ms_;
    note(latest);
    if (ahead <= 0) return;
    for (std::int64_t* time : times) {
      if (*time > 0) *time = std::max<std::int64_t>(*time - ahead, 1);
    }
  }

  // Different times stay different: a millisecond apart, the latest of them now.
  void close_up(std::vector<api::Fact>& facts) {
    std::map<std::int64_t, std::int64_t> moved;
    for (const api::Fact& fact : facts) {
      if (fact.at_ms > now_ms_) moved[fact.at_ms] = 0;
    }
    std::int64_t left = std::ssize(moved);  // the map is ascending, so the order stays
    for (auto& [from, to] : moved) to = now_ms_ - --left;
    for (api::Fact& fact : facts) {
      note(fact.at_ms);
      if (fact.at_ms > now_ms_) fact.at_ms = moved[fact.at_ms];
    }
  }

  std::int64_t ahead_ms() const { return ahead_ms_; }

 private:
  void note(std::int64_t at_ms) { ahead_ms_ = std::max(ahead_ms_, at_ms - now_ms_); }

  const std::int64_t now_ms_;
  std::int64_t ahead_ms_ = 0;
};

void move_run(api::RunRecord& run, Present& present) {
  std::vector<std::int64_t*> times = {&run.started_ms, &run.running_ms, &run.ended_ms};
  for (api::Resize& resize : run.resizes) times.push_back(&resize.at_ms);
  present.move(times);
}

}  // namespace

std::int64_t clamp_future_times(api::Study& study, std::int64_t now_ms) {
  Present present(now_ms);
  api::StudyStatus& status = study.status;
  for (std::int64_t* time :
       {&study.metadata.created_ms, &status.updated_ms, &status.started_ms, &status.ended_ms}) {
    present.clamp(*time);
  }
  present.clamp(status.conditions);
  return present.ahead_ms();
}

std::int64_t clamp_future_times(api::Trial& trial, std::int64_t now_ms) {
  Present present(now_ms);
  present.clamp(trial.metadata.created_ms);
  present.clamp(trial.status.conditions);
  for (api::RunRecord& run : trial.status.runs) move_run(run, present);
  present.close_up(trial.status.facts);
  if (trial.status.report) present.clamp(trial.status.report->at_ms);
  return present.ahead_ms();
}

}  // namespace fettle::local
