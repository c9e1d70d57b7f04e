// Writes carry the resourceVersion of the object that was planned, or of this reconcile's last
// write.
#include "core/control/study_controller.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <variant>

#include "core/control/refusals.h"
#include "core/facts/facts.h"
#include "core/facts/history.h"
#include "core/names.h"
#include "core/study/blocked.h"
#include "core/study/problem.h"
#include "core/study/search_period.h"
#include "core/study/study_plan.h"
#include "core/study/warm_start.h"
#include "search/space/fingerprint.h"

namespace fettle::control {

namespace {

// How long store_end() waits while other facts are stored. Storing takes milliseconds unless the
// store hangs, and a worker that waits cannot reconcile anything else.
constexpr std::chrono::milliseconds kMaxWaitForFacts{100};

// Passes calls on to another sampler and reports how long they take.
class TimedSampler : public search::Sampler {
 public:
  TimedSampler(search::Sampler& sampler, Clock& clock, std::function<void(std::int64_t)> tell)
      : sampler_(sampler), clock_(clock), tell_(std::move(tell)) {}

  search::Suggestion suggest(const search::History& history, std::int64_t n) override {
    const std::int64_t began_ms = clock_.now_ms();
    search::Suggestion suggestion = sampler_.suggest(history, n);
    tell_(clock_.now_ms() - began_ms);
    return suggestion;
  }
  std::string description() const override { return sampler_.description(); }

 private:
  search::Sampler& sampler_;
  Clock& clock_;
  const std::function<void(std::int64_t)> tell_;
};

// Whether the write was refused; a conflict only means that it was planned from an old view.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid ||
         code == ErrorCode::kUnavailable;
}

}  // namespace

Result<ReconcileResult> StudyController::reconcile(const Key& key) {
  Result<api::Study> study = store_.get_study(key);
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) {
    forget(key);
    return ReconcileResult{};
  }
  if (!study.ok()) return study.error();
  const core::Capacity room = runs_.capacity(*study);
  const std::shared_ptr<Cache> cache = cache_of(key);
  const std::lock_guard lock(cache->mutex);
  Pass pass{{std::move(study).value()}, room, *cache, clock_.now_ms()};
  pass.result.said_refused = core::is_blocked(pass.objects.study.status);
  const Status done = advance(pass);
  if (done.ok()) return pass.result;
  // The error stays that of the plan that was asked for.
  if (is_refusal(done.error().code)) advance_without_new_trials(key, *cache);
  return done.error();
}

Status StudyController::advance(Pass& pass) {
  FETTLE_ASSIGN(const bool searches, learn(pass));
  return searches ? decide(pass) : success();
}

// The first half; false: there is nothing to decide. Trials are listed under the lock, because the
// next seq depends on all facts that are stored.
Result<bool> StudyController::learn(Pass& pass) {
  Cache& cache = pass.cache;
  const std::lock_guard lock(cache.facts_mutex);
  cache.facts.reset();  // until all facts of the plan are stored
  const api::Metadata& meta = pass.objects.study.metadata;
  FETTLE_ASSIGN(pass.objects.listed, store_.list_trials({meta.ns, meta.name}));
  FETTLE_ASSIGN(const std::optional<core::StudyPlan> instead, plan_without_search(pass));
  if (instead) {
    FETTLE_TRY(carry_out(*instead, pass));
    return false;
  }
  FETTLE_TRY(record_search_period(pass));
  const api::Study& study = pass.objects.study;
  const Status searchable = refresh_sampler(study, cache);
  if (!searchable.ok()) {
    FETTLE_TRY(carry_out(core::plan_refused_study(study, pass.objects.listed,
                                                  searchable.error().message, pass.now_ms),
                         pass));
    return false;
  }
  const core::StudyView view{study, pass.objects.listed, pass.room};
  const core::StudyPlan facts = core::plan_facts(view, cache.ledger, pass.now_ms);
  FETTLE_TRY(carry_out(facts, pass));
  if (facts.is_cut) return false;  // the next reconcile learns the rest, then decides
  cache.facts = {core::version_of(study), cache.ledger.rungs(), cache.ledger.highest_seq()};
  return true;
}

// The second half. It uses only the facts in the ledger: the newest of them is its basis.
Status StudyController::decide(Pass& pass) {
  const api::Study& study = pass.objects.study;
  TimedSampler sampler(*pass.cache.sampler, clock_, [&](std::int64_t took_ms) {
    observer_.on_suggested({study.metadata.ns, study.metadata.name}, took_ms);
  });
  const core::StudyView view{study, pass.objects.listed, pass.room};
  return carry_out(core::plan_decisions(view, sampler, pass.cache.ledger, pass.now_ms), pass);
}

Status StudyController::carry_out(const core::StudyPlan& plan, Pass& pass) {
  pass.result.wake_at_ms = plan.wake_at_ms;  // the last plan's; a plan before it has none
  for (const core::StudyAction& action : plan.actions) {
    Status done = execute(action, pass.objects);
    if (!done.ok()) {
      pass.cache.clear();  // the ledger holds what was planned, as if it were stored
      return done;
    }
    ++pass.result.actions;
  }
  return success();
}

Result<api::Trial> StudyController::store_end(const api::Study& study, const api::Trial& ended) {
  // Never creates a cache: if the Study is gone by now, no reconcile would erase it.
  const std::shared_ptr<Cache> cache = find_cache({study.metadata.ns, study.metadata.name});
  if (cache == nullptr) return store_.update_trial_status(ended);
  const std::unique_lock lock(cache->facts_mutex, kMaxWaitForFacts);
  const bool knows_order =
      lock.owns_lock() && cache->facts && cache->facts->study == core::version_of(study);
  if (!knows_order) return store_.update_trial_status(ended);
  FactOrder order = *std::exchange(cache->facts, std::nullopt);
  api::Trial next = ended;
  for (api::Fact& fact : core::unrecorded_facts(study, ended, order.rungs, clock_.now_ms())) {
    fact.seq = ++order.newest_seq;
    next.status.facts.push_back(std::move(fact));
  }
  // If this fails, the write may still have been done: cache->facts stays unset.
  FETTLE_ASSIGN(api::Trial stored, store_.update_trial_status(next));
  cache->facts = std::move(order);
  return stored;
}

// If a trial may not be created (a quota), the plan ends before the status is written. So that the
// status still follows the other trials, a second plan is made with no room for new trials.
void StudyController::advance_without_new_trials(const Key& key, Cache& cache) {
  Result<api::Study> study = store_.get_study(key);
  if (!study.ok()) return;
  Pass pass{{std::move(study).value()}, {.trials = 0}, cache, clock_.now_ms()};
  (void)advance(pass);
}

Status StudyController::set_blocked(const Key& key, const std::string& words) {
  const Result<api::Study> study = store_.get_study(key);
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) return success();
  if (!study.ok()) return study.error();
  api::Study next = *study;
  next.status = core::blocked_status(*study, words, clock_.now_ms());
  const bool was = core::is_blocked(study->status);
  const std::string message = core::blocked_message(next.status);
  // The same refusal with other counts or times in its message is no change.
  const bool says_it = was && same_reason(core::blocked_message(study->status), message);
  const bool is_as_wanted = words.empty() ? !was : says_it;
  if (is_as_wanted) return success();
  FETTLE_TRY(store_.update_study_status(next));
  // If it was not blocked, `words` is not empty: this would have returned above.
  if (!was) record_event({core::EventType::kWarning, "Blocked", message}, *study);
  return success();
}

// The plan of a Study that is refused, waits for an earlier one's trials, or reads its warm start
// first. Absent: it can be searched.
Result<std::optional<core::StudyPlan>> StudyController::plan_without_search(const Pass& pass) {
  const api::Study& study = pass.objects.study;
  const std::vector<api::TrialPtr>& trials = pass.objects.listed;
  // kInvalid: no run can ever start, so the Study fails. Any other error may pass (runs.h).
  const Status startable = check(pass);
  if (!startable.ok() && startable.error().code != ErrorCode::kInvalid) return startable.error();
  if (!startable.ok()) {
    return std::optional(
        core::plan_refused_study(study, trials, startable.error().message, pass.now_ms));
  }
  // Trials that are left of a deleted Study of the same name.
  const std::int64_t earlier = trials.empty() ? store_.count_earlier_trials(study) : 0;
  if (earlier > 0) return std::optional(core::plan_waiting_study(study, earlier, pass.now_ms));
  if (!core::needs_priors(study, trials)) return std::optional<core::StudyPlan>();
  pass.cache.clear();  // its sampler was made without the results of earlier Studies
  return std::optional(plan_warm_start(study, pass.now_ms));
}

// An earlier Study that cannot be read counts as deleted: this one does not wait for it. Requires
// spec.warmStart, which core::needs_priors() has asked for.
core::StudyPlan StudyController::plan_warm_start(const api::Study& study, std::int64_t now_ms) {
  std::vector<core::EarlierStudy> earlier;
  for (const std::string& name : study.spec.warm_start->studies) {
    Result<Store::StudyAndTrials> read = store_.read_other({study.metadata.ns, name});
    earlier.push_back({.name = name, .study = {}, .trials = {}, .problem = {}});
    if (read.ok()) {
      earlier.back().study = std::move(read->study);
      earlier.back().trials = std::move(read->trials);
    } else {
      earlier.back().problem = read.error().message;
    }
  }
  return core::plan_warm_start(study, earlier, now_ms);
}

// Records which algorithm and machine choose the next trials (core/study/search_period.h).
Status StudyController::record_search_period(Pass& pass) {
  const api::Study& study = pass.objects.study;
  core::Ledger& ledger = pass.cache.ledger;
  ledger.update(study, pass.objects.listed);
  const std::string& computed_by = search::fingerprint();
  if (!core::needs_search_period(study, ledger, computed_by)) return success();
  FETTLE_TRY(
      carry_out(core::plan_search_period(study, ledger, computed_by, pass.room.place), pass));
  ledger.update(study, pass.objects.listed);  // `study` is as written: its problem has changed
  return success();
}

// Asks only before the first trial: later the trials themselves show whether they can start.
// status.observedGeneration records that the question was asked. A blocked Study has it, too, but
// may be blocked by this question, so it asks again.
Status StudyController::check(const Pass& pass) {
  const api::Study& study = pass.objects.study;
  const bool asked = study.status.observed_generation == study.metadata.generation &&
                     !core::is_blocked(study.status);
  const bool needed = pass.objects.listed.empty() && !asked && study.metadata.deleted_ms == 0;
  if (!needed) return success();
  const core::StudyVersion version = core::version_of(study);
  if (const auto refused = pass.cache.checks.standing(version, pass.now_ms)) return *refused;
  Status answer = runs_.check(study);
  pass.cache.checks.note(version, answer, clock_.now_ms());
  return answer;
}

void StudyController::forget(const Key& key) {
  const std::lock_guard lock(mutex_);
  caches_.erase(key);
}

std::shared_ptr<StudyController::Cache> StudyController::cache_of(const Key& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Cache>& cache = caches_[key];
  if (cache == nullptr) cache = std::make_shared<Cache>();
  return cache;
}

std::shared_ptr<StudyController::Cache> StudyController::find_cache(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = caches_.find(key);
  return found == caches_.end() ? nullptr : found->second;
}

void StudyController::Cache::clear() {
  ledger = {};
  sampler.reset();
  sampler_rebuilds = -1;
}

// Makes a new sampler if the present one has folded another history. kInvalid: the space cannot be
// searched by this algorithm.
Status StudyController::refresh_sampler(const api::Study& study, Cache& cache) {
  const std::int64_t rebuilds = cache.ledger.rebuilds();
  if (cache.sampler != nullptr && cache.sampler_rebuilds == rebuilds) return success();
  FETTLE_ASSIGN(cache.sampler, search::make_sampler(core::problem_of(study)));
  cache.sampler_rebuilds = rebuilds;
  return success();
}

api::TrialPtr StudyController::Objects::find(const std::string& name) const {
  const auto found = written.find(name);
  return found == written.end() ? core::find_trial(listed, name) : found->second;
}

Status StudyController::execute(const core::StudyAction& action, Objects& objects) {
  if (const auto* facts = std::get_if<core::RecordFacts>(&action)) {
    return record_facts(*facts, objects);
  }
  if (const auto* update = std::get_if<core::UpdateTrialSpec>(&action)) {
    return update_spec(*update, objects);
  }
  if (const auto* creation = std::get_if<core::CreateTrial>(&action)) {
    return create(creation->trial, objects.study);
  }
  if (const auto* update = std::get_if<core::UpdateStudyStatus>(&action)) {
    objects.study.status = update->status;
    FETTLE_ASSIGN(objects.study, store_.update_study_status(objects.study));
    return success();
  }
  if (std::holds_alternative<core::DeleteStudy>(action)) return store_.delete_study(objects.study);
  record_event(std::get<core::Note>(action).event, objects.study);
  return success();
}

// If this Study's trial of that name exists, the decision was taken before and this view is old:
// the conflict makes the Manager reconcile again from the stored objects. If the trial belongs to
// another Study, a person has to resolve that.
Status StudyController::create(const api::Trial& trial, const api::Study& study) {
  const Result<api::Trial> created = store_.create_trial(trial);
  if (created.ok()) return success();
  if (created.error().code != ErrorCode::kAlreadyExists) return created.error();
  const auto stored = store_.get_trial({trial.metadata.ns, trial.metadata.name});
  if (!stored.ok() || core::belongs_to(**stored, study)) {
    return Error{ErrorCode::kConflict, created.error().message};
  }
  return Error{ErrorCode::kAlreadyExists,
               "trial " + trial.metadata.name +
                   " exists but is not this Study's; delete it or give this Study another name"};
}

Status StudyController::record_facts(const core::RecordFacts& action, Objects& objects) {
  api::Trial next = *objects.find(action.trial);
  next.status.facts.insert(next.status.facts.end(), action.facts.begin(), action.facts.end());
  FETTLE_ASSIGN(api::Trial stored, store_.update_trial_status(next));
  objects.written[action.trial] = std::make_shared<api::Trial>(std::move(stored));
  return success();
}

Status StudyController::update_spec(const core::UpdateTrialSpec& action, Objects& objects) {
  api::Trial next = *objects.find(action.trial);
  next.spec = action.spec;
  FETTLE_ASSIGN(api::Trial stored, store_.update_trial_spec(next));
  objects.written[action.trial] = std::make_shared<api::Trial>(std::move(stored));
  return success();
}

void StudyController::record_event(const core::EventNote& event, const api::Study& study) {
  const api::Metadata& meta = study.metadata;
  control::record_event(store_, observer_, {Kind::kStudy, {meta.ns, meta.name}, meta.name}, event,
                        clock_.now_ms());
}

}  // namespace fettle::control
