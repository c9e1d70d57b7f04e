#include "tests/matrix/calls/invariants.h"

#include <algorithm>
#include <utility>

#include "kube/objects/json_path.h"
#include "kube/watch/watch_loop.h"

namespace fettle::matrix {
namespace {

using kube::array_at;
using kube::boolean_at;
using kube::integer_at;
using kube::text_at;

bool has_condition(const Json& object, const std::string& type, const std::string& reason = "") {
  for (const Json& condition : array_at(object, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) != type || text_at(condition, {"status"}) != "True") continue;
    if (text_at(condition, {"message"}).empty()) continue;
    if (reason.empty() || text_at(condition, {"reason"}) == reason) return true;
  }
  return false;
}

bool says_what_it_waits_for(const Json& object) {
  return has_condition(object, "Waiting") || has_condition(object, "Blocked") ||
         has_condition(object, "Stalled") || has_condition(object, "Suspended") ||
         has_condition(object, "Running", "Waiting");
}

bool is_of_caches(const kube::ApiCall* row) {
  return row != nullptr && row->purpose.starts_with("cache of");
}

bool holds_up_worker(FaultKind kind) {
  return kind == FaultKind::kSilence || kind == FaultKind::kThrottledWithTime;
}

std::string status_of(const Json& object) {
  const Json* status = object.find("status");
  return status == nullptr ? "no status" : status->dump();
}

bool is_over(const std::string& phase) {
  return phase == "Completed" || phase == "Stopped" || phase == "Failed";
}

// Omits fields that change without progress, such as the renewed intent to start a run.
std::string progress_of(const Json& trial) {
  std::string out = text_at(trial, {"status", "phase"});
  for (const Json& run : array_at(trial, {"status", "runs"})) {
    out += '|' + std::to_string(integer_at(run, {"run"})) + text_at(run, {"podUID"}) +
           text_at(run, {"outcome"}) + text_at(run, {"runningTime"});
  }
  return out + '|' + std::to_string(integer_at(trial, {"status", "report", "step"})) + '|' +
         std::to_string(boolean_at(trial, {"status", "report", "final"}) ? 1 : 0);
}

}  // namespace

bool is_left_unbegun(const Json& trial) {
  return array_at(trial, {"metadata", "ownerReferences"}).empty() &&
         array_at(trial, {"status", "runs"}).empty() &&
         !is_over(text_at(trial, {"status", "phase"}));
}

Invariants::Invariants(kube::FakeApiServer& server, VirtualTime& time, const FaultState& fault,
                       const FaultyTransport& calls, const PlayedCluster& cluster,
                       std::string study)
    : server_(server),
      time_(time),
      fault_(fault),
      calls_(calls),
      cluster_(cluster),
      study_(std::move(study)) {}

void Invariants::add(const std::string& what) {
  if (!said_.insert(what.substr(0, what.find(" [at "))).second) return;
  violations_.push_back(what + " [at " + std::to_string(time_.since_begin_ms() / 1'000) + " s]");
}

// Checks at most once a second.
void Invariants::check() {
  if (time_.now_ms() < checked_ms_ + 1'000) return;
  checked_ms_ = time_.now_ms();
  for (const Json& trial : server_.list(kube::kTrials)) check_trial(trial);
  check_study();
  check_load();
}

// While the operator cannot see that its Study is gone, it may create trials for it. Their owner is
// gone, so the garbage collector deletes them at once.
bool Invariants::is_garbage(const Json& trial) const {
  const std::vector<Json>& owners = array_at(trial, {"metadata", "ownerReferences"});
  return !owners.empty() && is_study_gone();
}

bool Invariants::is_study_gone() const {
  return server_.get(kube::kStudies, {"team", study_}).is_null();
}

void Invariants::check_trial(const Json& trial) {
  const std::string name = text_at(trial, {"metadata", "name"});
  if (text_at(trial, {"spec", "study"}) == "broken" || is_garbage(trial)) return;
  if (is_left_unbegun(trial)) return;
  TrialSeen& seen = trials_[name];
  const std::string uid = text_at(trial, {"metadata", "uid"});
  if (!seen.uid.empty() && seen.uid != uid) add("(e) trial " + name + " was created twice");
  seen.uid = uid;
  if (text_at(trial, {"status", "phase"}) == "Failed") {
    add("(a) trial " + name + " is Failed: " + status_of(trial));
  }
  for (const Json& run : array_at(trial, {"status", "runs"})) {
    const std::string outcome = text_at(run, {"outcome"});
    const bool bad = outcome == "Failed" || outcome == "TimedOut" || outcome == "Hung" ||
                     outcome == "OutOfMemory";
    if (bad) add("(a) a run of " + name + " counts as its fault: " + run.dump());
  }
  for (const Json& fact : array_at(trial, {"status", "facts"})) {
    if (boolean_at(fact, {"infeasible"})) add("(a) a fact of " + name + " is infeasible");
  }
  check_kept(trial, seen);
  check_progress(trial, seen);
}

void Invariants::check_kept(const Json& trial, TrialSeen& seen) {
  const std::string name = text_at(trial, {"metadata", "name"});
  const std::int64_t step = integer_at(trial, {"status", "report", "step"});
  const bool final_report = boolean_at(trial, {"status", "report", "final"});
  const std::size_t facts = array_at(trial, {"status", "facts"}).size();
  if (step < seen.step)
    add("(c) the report of " + name + " went back from step " + std::to_string(seen.step) + " to " +
        std::to_string(step));
  if (facts < seen.facts) add("(c) a fact of " + name + " is lost");
  // A promotion continues from a final report.
  if (seen.final_report && !final_report && step <= seen.step) {
    add("(c) the final report of " + name + " is lost");
  }
  seen.step = step;
  seen.facts = facts;
  seen.final_report = final_report;
}

// Whether the status of this resource can be written now.
bool Invariants::can_speak_of(const char* resource) const {
  const kube::ApiCall* row = fault_.plan().row;
  if (row == nullptr || !fault_.is_active()) return true;
  // A stale Trial cannot be written: the Study reports instead.
  const std::string_view written = resource;
  const bool sees = row->verb == "list" || row->verb == "watch";
  if (sees && written.starts_with("fettle.dev/trials") && row->resource == "fettle.dev/trials") {
    return false;
  }
  return row->resource != written;
}

bool Invariants::has_two_studies() const {
  const std::vector<Json> studies = server_.list(kube::kStudies);
  return std::ranges::any_of(studies, [&](const Json& one) {
    const std::string name = text_at(one, {"metadata", "name"});
    return name != study_ && name != "broken";
  });
}

// A watch without events is noticed by missing bookmarks (kube::kWatchIdle); an operator that never
// listed Studies knows none.
std::int64_t Invariants::most_silent_ms() const {
  const kube::ApiCall* row = fault_.plan().row;
  if (row == nullptr) return kSilentMs;
  const bool silent_watch = row->verb == "watch" && fault_.plan().kind == FaultKind::kSilence;
  // Two watches in a row meet a fault of kFaultMs.
  if (silent_watch) return kSilentMs + 2 * kube::kWatchIdle.count();
  // This test reads one log after the other, and each waits for half a minute.
  const bool silent_log = row->verb == "log" && fault_.plan().kind == FaultKind::kSilence;
  if (silent_log) return kSilentMs + kSilentLogsMs;
  // One worker serves all here, and calls that wait for half a minute delay it. With one Study it
  // reaches each trial in time, with two it does not; the operator has four workers.
  if (holds_up_worker(fault_.plan().kind) && has_two_studies()) return kSilentMs + kFaultMs;
  const bool unknown = row->verb == "list" && row->resource == "fettle.dev/studies";
  return unknown && fault_.plan().phase == Phase::kBefore ? kSilentMs + kFaultMs : kSilentMs;
}

void Invariants::check_progress(const Json& trial, TrialSeen& seen) {
  const std::string name = text_at(trial, {"metadata", "name"});
  const std::string phase = text_at(trial, {"status", "phase"});
  const std::int64_t now_ms = time_.now_ms();
  std::string progress = progress_of(trial) + '|' + std::to_string(cluster_.steps_of(name));
  const bool is_paused = phase == "Paused" || boolean_at(trial, {"spec", "suspend"});
  // The Study reports unseen pods or Jobs, while it exists.
  const bool is_blind = is_study_gone() && fault_.is_active() && is_of_caches(fault_.plan().row);
  const bool may_be_silent = is_paused || is_blind || !can_speak_of("fettle.dev/trials/status");
  if (progress != seen.progress || may_be_silent || says_what_it_waits_for(trial)) {
    seen.progress = std::move(progress);
    seen.since_ms = now_ms;
  }
  if (is_over(phase)) {
    if (seen.over_ms == 0) seen.over_ms = now_ms;
    if (fault_.is_active()) seen.over_ms = now_ms;
    if (cluster_.pods_of(name) > 0 && now_ms - seen.over_ms > kHoldMs) {
      add("(b) pods of " + name + " run though it is " + phase);
    }
    return;
  }
  seen.over_ms = 0;
  if (now_ms - seen.since_ms <= most_silent_ms()) return;
  add("(b) " + name + " makes no progress and does not say why: " + status_of(trial));
}

void Invariants::check_sight(const Json& study) {
  const kube::ApiCall* row = fault_.plan().row;
  const bool fails = is_of_caches(row) && fault_.is_active();
  const bool told = has_condition(study, "Blocked") || has_condition(study, "Succeeded");
  // An edited Study that is seen unedited cannot be written.
  const bool is_old = integer_at(study, {"metadata", "generation"}) !=
                      integer_at(study, {"status", "observedGeneration"});
  if (!fails || told || is_old || blind_since_ms_ == 0) blind_since_ms_ = time_.now_ms();
  const std::int64_t most_ms = most_silent_ms() - kSilentMs + kUntoldMs;
  if (time_.now_ms() - blind_since_ms_ <= most_ms) return;
  add("(b) the Study does not tell that it is not seen: " + status_of(study));
}

void Invariants::check_load() {
  if (time_.now_ms() < minute_ms_ + 60'000) return;
  const std::int64_t made = calls_.writes() - std::exchange(writes_, calls_.writes());
  minute_ms_ = time_.now_ms();
  // Trials made for a Study that is gone (is_garbage) are as many as are collected.
  if (is_study_gone()) return;
  if (made > kMaxWritesAMinute) add("(f) " + std::to_string(made) + " writes within a minute");
}

void Invariants::check_study() {
  const Json study = server_.get(kube::kStudies, {"team", study_});
  if (study.is_null()) return;
  const std::int64_t now_ms = time_.now_ms();
  if (has_condition(study, "Failed")) {
    add("(a) the Study failed: " + status_of(study));
  }
  std::string progress;
  for (const auto& [name, seen] : trials_) progress += name + seen.progress + ';';
  const bool may_be_silent =
      has_condition(study, "Succeeded") || !can_speak_of("fettle.dev/studies/status");
  if (progress != study_progress_ || may_be_silent || says_what_it_waits_for(study)) {
    study_progress_ = std::move(progress);
    study_since_ms_ = now_ms;
  }
  check_sight(study);
  if (study_since_ms_ == 0) study_since_ms_ = now_ms;
  if (now_ms - study_since_ms_ <= most_silent_ms()) return;
  add("(b) the Study makes no progress and does not say why: " + status_of(study));
}

}  // namespace fettle::matrix
