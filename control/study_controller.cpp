// Writes carry the resourceVersion that was planned from, or that of this look's last write.
#include "control/study_controller.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <variant>

#include "control/refusals.h"
#include "core/blocked.h"
#include "core/facts.h"
#include "core/history.h"
#include "core/names.h"
#include "core/problem.h"
#include "core/search_period.h"
#include "core/study_plan.h"
#include "core/warm_start.h"
#include "search/space/fingerprint.h"

namespace fettle::control {

namespace {

// How long the end of a trial waits for a look that is deciding: less than a write takes, for a
// sampler may take seconds, and the workers are everybody's.
constexpr std::chrono::milliseconds kWaitForLook{5};

// The same sampler, and how long it takes.
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

// Whether somebody said no, rather than that the plan was made from an old view.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid ||
         code == ErrorCode::kUnavailable;
}

// The number of actions up to and with the last that records facts.
std::ptrdiff_t count_until_facts(const core::StudyPlan& plan) {
  const auto last =
      std::find_if(plan.actions.rbegin(), plan.actions.rend(), [](const core::StudyAction& action) {
        return std::holds_alternative<core::RecordFacts>(action);
      });
  return plan.actions.rend() - last;
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
  const std::shared_ptr<Memory> memory = memory_of(key);
  Order order(memory->order);
  FETTLE_ASSIGN(const std::vector<api::TrialPtr> trials, store_.list_trials(key));
  FETTLE_ASSIGN(const core::StudyPlan plan, this->plan(*study, trials, room, *memory));
  ReconcileResult result{.actions = 0,
                         .wake_at_ms = plan.wake_at_ms,
                         .has_blocked_condition = core::is_blocked(study->status)};
  Objects objects{std::move(study).value(), trials, {}};
  const Status done = carry_out(plan, objects, result, std::move(order), *memory);
  if (done.ok()) return result;
  if (is_refusal(done.error().code)) record_what_is_known(key);
  return done.error();
}

// Once the facts of the plan are stored, those of trials that end may follow. What is decided after
// them rests on the facts of the plan alone, as its basis says.
Status StudyController::carry_out(const core::StudyPlan& plan, Objects& objects,
                                  ReconcileResult& result, Order order, Memory& memory) {
  std::ptrdiff_t facts_left = count_until_facts(plan);
  for (const core::StudyAction& action : plan.actions) {
    if (facts_left-- == 0) order.unlock();
    Status done = execute(action, objects);
    if (!done.ok()) {
      if (!order.owns_lock()) order.lock();
      memory.clear();  // it has learnt facts that may never be stored as they were planned
      return done;
    }
    ++result.actions;
  }
  return success();
}

Result<api::Trial> StudyController::store_end(const api::Study& study, const api::Trial& ended) {
  // Never a new one: of a Study that is gone meanwhile nobody would forget it.
  const std::shared_ptr<Memory> memory = find_memory({study.metadata.ns, study.metadata.name});
  if (memory == nullptr) return store_.update_trial_status(ended);
  const Order order(memory->order, kWaitForLook);
  const bool knows_place = order.owns_lock() && memory->newest_seq && memory->ledger.is_of(study);
  if (!knows_place) return store_.update_trial_status(ended);
  api::Trial next = ended;
  std::int64_t seq = *memory->newest_seq;
  for (api::Fact& fact :
       core::unrecorded_facts(study, ended, memory->ledger.rungs(), clock_.now_ms())) {
    fact.seq = ++seq;
    next.status.facts.push_back(std::move(fact));
  }
  // A write that failed may have been done all the same.
  memory->newest_seq.reset();
  FETTLE_ASSIGN(api::Trial stored, store_.update_trial_status(next));
  memory->newest_seq = seq;
  return stored;
}

// A trial that may not be created now (a quota) ends the plan before the status is written. What
// became of the others is told all the same: the plan is made as if there were no room.
void StudyController::record_what_is_known(const Key& key) {
  Result<api::Study> study = store_.get_study(key);
  const std::shared_ptr<Memory> memory = memory_of(key);
  Order order(memory->order);
  const Result<std::vector<api::TrialPtr>> trials = store_.list_trials(key);
  if (!study.ok() || !trials.ok()) return;
  const Result<core::StudyPlan> plan = this->plan(*study, *trials, {.trials = 0}, *memory);
  if (!plan.ok()) return;
  ReconcileResult result;
  Objects objects{std::move(study).value(), *trials, {}};
  (void)carry_out(*plan, objects, result, std::move(order), *memory);
}

Status StudyController::set_blocked(const Key& key, const std::string& words) {
  const Result<api::Study> study = store_.get_study(key);
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) return success();
  if (!study.ok()) return study.error();
  api::Study next = *study;
  next.status = core::blocked_status(*study, words, clock_.now_ms());
  const bool was = core::is_blocked(study->status);
  const std::string& told = core::blocked_message(next.status);
  const bool known = was && same_reason(core::blocked_message(study->status), told);
  if (words.empty() ? !was : known) return success();
  FETTLE_TRY(store_.update_study_status(next));
  if (!was) note({core::EventType::kWarning, "Blocked", told}, *study);
  return success();
}

// One that cannot be read counts as one that is gone: the Study does not wait for it.
core::StudyPlan StudyController::plan_warm_start(const api::Study& study, Memory& memory) {
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
  memory.clear();  // it began with nothing
  return core::plan_warm_start(study, earlier, clock_.now_ms());
}

Result<core::StudyPlan> StudyController::plan(const api::Study& study,
                                              const std::vector<api::TrialPtr>& trials,
                                              core::Capacity room, Memory& memory) {
  const std::int64_t now_ms = clock_.now_ms();
  memory.newest_seq.reset();
  const Status startable = check(study, trials);
  if (!startable.ok() && startable.error().code != ErrorCode::kInvalid) return startable.error();
  if (!startable.ok()) {
    return core::plan_refused_study(study, trials, startable.error().message, now_ms);
  }
  const std::int64_t earlier = trials.empty() ? store_.count_earlier_trials(study) : 0;
  if (earlier > 0) return core::plan_waiting_study(study, earlier, now_ms);
  if (core::needs_priors(study, trials)) return plan_warm_start(study, memory);
  memory.ledger.update(study, trials);
  if (!core::needs_search_period(study, memory.ledger, search::fingerprint())) {
    return plan_settled(study, trials, room, memory);
  }
  core::StudyPlan plan = core::plan_search_period(study, memory.ledger, search::fingerprint());
  // What follows rests on what is written first.
  api::Study settled = study;
  settled.status = std::get<core::UpdateStudyStatus>(plan.actions.front()).status;
  memory.ledger.update(settled, trials);
  core::StudyPlan rest = plan_settled(settled, trials, room, memory);
  for (core::StudyAction& action : rest.actions) plan.actions.push_back(std::move(action));
  plan.wake_at_ms = rest.wake_at_ms;
  return plan;
}

core::StudyPlan StudyController::plan_settled(const api::Study& study,
                                              const std::vector<api::TrialPtr>& trials,
                                              core::Capacity room, Memory& memory) {
  const std::int64_t now_ms = clock_.now_ms();
  const Result<search::Sampler*> sampler = sampler_of(study, memory);
  if (!sampler.ok()) {
    return core::plan_refused_study(study, trials, sampler.error().message, now_ms);
  }
  TimedSampler timed(**sampler, clock_, [&](std::int64_t took_ms) {
    observer_.on_suggested({study.metadata.ns, study.metadata.name}, took_ms);
  });
  core::StudyPlan plan = core::plan_study({study, trials, room}, timed, memory.ledger, now_ms);
  memory.newest_seq = memory.ledger.highest_seq();
  return plan;
}

// Only before the first trial: afterwards the trials themselves show whether they can start. The
// status remembers the answer, by its observedGeneration.
Status StudyController::check(const api::Study& study, const std::vector<api::TrialPtr>& trials) {
  const bool asked = study.status.observed_generation == study.metadata.generation;
  const bool needed = trials.empty() && !asked && study.metadata.deleted_ms == 0;
  return needed ? runs_.check(study) : success();
}

void StudyController::forget(const Key& key) {
  const std::lock_guard lock(mutex_);
  memories_.erase(key);
}

std::shared_ptr<StudyController::Memory> StudyController::memory_of(const Key& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Memory>& memory = memories_[key];
  if (memory == nullptr) memory = std::make_shared<Memory>();
  return memory;
}

std::shared_ptr<StudyController::Memory> StudyController::find_memory(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(key);
  return found == memories_.end() ? nullptr : found->second;
}

void StudyController::Memory::clear() {
  ledger = {};
  folded = -1;
  sampler.reset();
  newest_seq.reset();
}

Result<search::Sampler*> StudyController::sampler_of(const api::Study& study, Memory& memory) {
  const bool is_fresh = memory.sampler != nullptr && memory.folded == memory.ledger.rebuilds();
  if (!is_fresh) {
    FETTLE_ASSIGN(memory.sampler, search::make_sampler(core::problem_of(study)));
    memory.folded = memory.ledger.rebuilds();
  }
  return memory.sampler.get();
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
  note(std::get<core::Note>(action).event, objects.study);
  return success();
}

// An existing trial of that name is this decision, taken before and not seen yet: the conflict
// makes the Manager look again, and what is stored counts. Unless it belongs to somebody else: that
// is for people to mend.
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

void StudyController::note(const core::EventNote& event, const api::Study& study) {
  const api::Metadata& meta = study.metadata;
  const Change about{Kind::kStudy, {meta.ns, meta.name}, meta.name};
  const std::int64_t now_ms = clock_.now_ms();
  store_.record_event(about, event.type == core::EventType::kWarning, event.reason, event.message,
                      now_ms);
  observer_.on_event(about, event, now_ms);
}

}  // namespace fettle::control
