#include "cli/suggest/suggest_store.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "api/trial/report.h"
#include "base/file.h"
#include "cli/suggest/suggest_stored.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/names.h"
#include "core/replay/replay.h"
#include "core/study/study_end.h"
#include "core/study/study_status.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/missing_study.h"
#include "runtime/local/store/private_root.h"

namespace fettle::cli {
namespace {

using api::Trial;
using api::TrialPhase;

constexpr const char* kReplaced = "Replaced";

TrialPhase phase_of(const TrialProgress& progress) {
  if (progress.state == TrialState::kRunning) return TrialPhase::kRunning;
  if (!progress.stop_reason.empty()) return TrialPhase::kStopped;
  const bool failed = progress.facts.back().kind == api::FactKind::kFailed;
  return failed ? TrialPhase::kFailed : TrialPhase::kCompleted;
}

void end_run(const TrialProgress& progress, std::int64_t now_ms, api::TrialStatus& status) {
  api::RunRecord& run = status.runs.back();
  if (run.ended_ms != 0) {  // of a paused trial, which gets its result now
    run.outcome = api::Outcome::kSucceeded;
    return;
  }
  run.ended_ms = now_ms;
  run.last_step = progress.report.step;
  run.outcome = api::Outcome::kSucceeded;
  if (!progress.stop_reason.empty()) {
    run.stopping = api::Outcome::kStopped;
    run.outcome = api::Outcome::kStopped;
    run.message = core::truncate_message(progress.stop_reason);
  } else if (status.phase == TrialPhase::kFailed) {
    run.outcome = api::Outcome::kFailed;
    run.message = "the client told no value";
  }
}

// The facts with the time at which they are learnt. A stop comes after the rung that it rests on:
// a rung of the same time as an end was not judged (core/replay/replay.cpp).
void add_facts(const TrialProgress& progress, std::int64_t now_ms, api::TrialStatus& status) {
  for (api::Fact fact : progress.facts) {
    const bool is_stop = !progress.stop_reason.empty() && fact.kind == api::FactKind::kStopped;
    fact.at_ms = now_ms + (is_stop ? 1 : 0);
    status.facts.push_back(std::move(fact));
  }
}

// The stop of a trial whose status says that early stopping ended it.
api::Stop stop_of(const Trial& trial) {
  const api::Fact* const rung = core::newest_fact(trial, api::FactKind::kRung);
  return {core::kEarlyStopped, trial.status.runs.back().message, rung == nullptr ? 0 : rung->seq};
}

void say(const std::string& sentence) { std::cerr << "fettle: " << sentence << '\n'; }

}  // namespace

Result<std::unique_ptr<SuggestStore>> SuggestStore::open(const SuggestPlace& place) {
  const local::Layout layout = local::make_layout(place.root, place.study);
  FETTLE_TRY(local::make_private_root(layout.root));
  FETTLE_TRY(make_directories(layout.study_directory()));
  FETTLE_ASSIGN(local::StudyLock lock, local::StudyLock::acquire(layout.lock(), {.say = say}));
  std::unique_ptr<SuggestStore> out(new SuggestStore(std::move(lock), place.study));
  FETTLE_ASSIGN(out->store_,
                local::SqliteStore::open(layout.database(), local::SqliteStore::Mode::kReadWrite,
                                         out->clock_));
  FETTLE_TRY(local::check_has_study(*out->store_, layout));
  FETTLE_TRY(out->store_->clamp_future_times());
  for (const std::string& warning : out->store_->warnings()) say(warning);
  return out;
}

Status SuggestStore::begin(const api::Study& wanted) {
  const control::Key key{"", name_};
  auto stored = store_->get_study(key);
  if (!stored.ok() && stored.error().code != ErrorCode::kNotFound) return stored.error();
  if (stored.ok()) {
    FETTLE_TRY(check_same_study(*stored, wanted));
    study_ = *std::move(stored);
    FETTLE_TRY(load());
    return adopt_limits(wanted);
  }
  FETTLE_ASSIGN(study_, store_->create_study(wanted));
  return success();
}

Status SuggestStore::load() {
  FETTLE_ASSIGN(trials_, store_->list_trials({"", name_}));
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (trials_[i]->spec.index != static_cast<std::int64_t>(i)) {
      return invalid("study " + name_ + " lacks trial " + core::trial_name(name_, i) +
                     ", so it cannot be continued; choose another name");
    }
  }
  for (std::size_t i = 0; i < trials_.size(); ++i) FETTLE_TRY(mend(i));
  is_over_ = core::is_finished(study_.status);
  return success();
}

// The budget is written first: if the period is cut, the next session finds that it differs.
Status SuggestStore::adopt_limits(const api::Study& wanted) {
  ledger_.update(study_, trials_);
  FETTLE_ASSIGN(const std::optional<api::SearchPeriod> period,
                next_period(study_, wanted, {ledger_.next_index(), ledger_.highest_seq()}));
  if (study_.spec.budget != wanted.spec.budget) {
    api::Study study = study_;
    study.spec.budget = wanted.spec.budget;
    FETTLE_ASSIGN(study_, store_->update_study_spec(study));
  }
  if (!period) return success();
  api::Study study = study_;
  std::vector<api::SearchPeriod>& periods = study.status.search;
  const bool may_go_on =
      periods.back().trials != period->trials || periods.back().max_cost != period->max_cost;
  if (may_go_on) is_over_ = false;  // the next ask says whether it does
  if (periods.back().since == period->since) periods.pop_back();
  periods.push_back(*period);
  FETTLE_ASSIGN(study_, store_->update_study_status(study));
  return success();
}

// Finishes a step that was cut between its two writes.
Status SuggestStore::mend(std::size_t index) {
  const api::TrialPtr read = trials_[index];  // a write below replaces the entry
  const Trial& trial = *read;
  if (trial.status.phase == TrialPhase::kStopped && !trial.spec.stop) {
    Trial stopped = trial;
    stopped.spec.stop = stop_of(trial);
    FETTLE_TRY(write_spec(stopped));
  }
  if (trial.status.phase == TrialPhase::kCompleted && core::is_active(trial)) {  // promoted
    FETTLE_TRY(hand_out(trial.spec.index));
  }
  const auto replaced = core::trial_index(name_, trial.spec.search.replaces);
  if (!replaced || at(*replaced).spec.stop) return success();
  return replace(*replaced, trial.spec.index);
}

const Trial& SuggestStore::at(std::int64_t index) const {
  return *trials_[static_cast<std::size_t>(index)];
}

Error SuggestStore::fail(const Error& error) {
  if (!failure_) failure_ = error;
  return {failure_->code, failure_->message + "; start fettle suggest --study " + name_ +
                              " again, which continues with everything that was acknowledged"};
}

Status SuggestStore::keep(Result<Trial> written) {
  if (!written.ok()) return fail(written.error());
  const auto index = static_cast<std::size_t>(written->spec.index);
  if (index == trials_.size()) trials_.emplace_back();
  trials_[index] = std::make_shared<const Trial>(*std::move(written));
  return success();
}

Status SuggestStore::write_spec(const Trial& trial) {
  return failure_ ? fail(*failure_) : keep(store_->update_trial_spec(trial));
}

Status SuggestStore::write_status(const Trial& trial) {
  return failure_ ? fail(*failure_) : keep(store_->update_trial_status(trial));
}

Trial SuggestStore::born(const TrialBirth& birth) const {
  Trial trial;
  trial.metadata.name = core::trial_name(name_, birth.index);
  trial.metadata.labels = {{core::kStudyLabel, name_}, {core::kStudyUidLabel, study_.metadata.uid}};
  trial.spec.study = name_;
  trial.spec.index = birth.index;
  trial.spec.parameters = birth.parameters;
  trial.spec.seed = birth.stage.seed.value_or(0);
  trial.spec.until_step = birth.stage.until_step;
  trial.spec.search.basis = birth.basis;
  trial.spec.search.bracket = birth.stage.bracket;
  trial.spec.search.rung = birth.stage.rung;
  if (birth.prescribed) trial.metadata.labels[core::kPrescribedLabel] = "true";
  trial.metadata.labels[core::kPriorsLabel] =
      std::to_string(study_.status.prior_observations.size());
  if (const auto& parent = birth.stage.parent) {
    trial.spec.parent = api::Parent{core::trial_name(name_, parent->trial), parent->step};
  }
  if (birth.stage.replaces) {
    trial.spec.search.replaces = core::trial_name(name_, *birth.stage.replaces);
  }
  if (birth.waits) return trial;
  trial.status.phase = TrialPhase::kRunning;
  core::append_run(trial.status, trial.spec, clock_->now_ms()).running_ms = clock_->now_ms();
  return trial;
}

Status SuggestStore::create(const TrialBirth& birth) {
  if (failure_) return fail(*failure_);
  FETTLE_TRY(keep(store_->create_trial(born(birth))));
  is_over_ = false;
  write_study();
  return success();
}

Status SuggestStore::hand_out(std::int64_t index) {
  Trial trial = at(index);
  trial.status.phase = TrialPhase::kRunning;
  core::append_run(trial.status, trial.spec, clock_->now_ms()).running_ms = clock_->now_ms();
  FETTLE_TRY(write_status(trial));
  write_study();
  return success();
}

// The decision is the new step in the spec; the run that follows from it is also begun by mend().
Status SuggestStore::promote(std::int64_t index, const search::Stage& stage, std::int64_t basis) {
  Trial trial = at(index);
  trial.spec.until_step = stage.until_step;
  trial.spec.search.rung = stage.rung;
  trial.spec.search.promotions.push_back({basis, stage.until_step});
  FETTLE_TRY(write_spec(trial));
  return hand_out(index);
}

Status SuggestStore::replace(std::int64_t index, std::int64_t by) {
  Trial trial = at(index);
  const Trial& next = at(by);
  trial.spec.stop =
      api::Stop{kReplaced, "its place is taken by " + next.metadata.name, next.spec.search.basis};
  FETTLE_TRY(write_spec(trial));
  write_study();
  return success();
}

// The status comes first: it holds all that mend() needs for the stop.
Status SuggestStore::record(const TrialProgress& progress) {
  const std::int64_t now_ms = clock_->now_ms();
  Trial trial = at(progress.index);
  api::Report report = trial.status.report.value_or(api::Report{});
  api::ReportLine line;
  line.step = progress.report.step;
  line.metrics = progress.report.metrics;
  line.final_result = progress.told;
  api::add_line(report, std::move(line), {ledger_.rungs(), study_.spec.objectives}, now_ms);
  trial.status.report = std::move(report);
  trial.status.phase = phase_of(progress);
  add_facts(progress, now_ms, trial.status);
  if (progress.state != TrialState::kRunning) end_run(progress, now_ms, trial.status);
  FETTLE_TRY(write_status(trial));
  if (!progress.stop_reason.empty()) {
    Trial stopped = at(progress.index);
    stopped.spec.stop = stop_of(stopped);
    FETTLE_TRY(write_spec(stopped));
  }
  write_study();
  return success();
}

Status SuggestStore::add_priors(const std::vector<api::PriorObservation>& priors) {
  if (failure_) return fail(*failure_);
  api::Study study = study_;
  auto& stored = study.status.prior_observations;
  stored.insert(stored.end(), priors.begin(), priors.end());
  Result<api::Study> written = store_->update_study_status(study);
  if (!written.ok()) return fail(written.error());
  study_ = *std::move(written);
  return success();
}

Status SuggestStore::finish(bool exhausted) {
  is_over_ = true;
  exhausted_ = exhausted;
  write_study();
  return success();
}

void SuggestStore::write_study(bool at_once) {
  const std::int64_t now_ms = clock_->now_ms();
  ledger_.update(study_, trials_);
  const core::Spending spending = ledger_.spending(study_, now_ms);
  std::optional<core::StudyEnd> ended;
  if (is_over_) ended = core::final_end(study_, ledger_, std::nullopt, exhausted_);
  const core::StudyOutlook outlook{.ledger = ledger_,
                                   .spending = spending,
                                   .slots = study_.spec.budget.parallelism,
                                   .draining = std::nullopt,
                                   .ended = ended,
                                   .algorithm = algorithm_};
  api::StudyStatus before = study_.status;
  if (at_once) before.updated_ms = std::min(before.updated_ms, now_ms - core::kStatusIntervalMs);
  core::StudyPlan plan;
  core::add_status(before, core::study_status(study_, outlook, now_ms), spending.running, now_ms,
                   plan);
  apply(plan, now_ms);
}

void SuggestStore::apply(const core::StudyPlan& plan, std::int64_t now_ms) {
  for (const core::StudyAction& action : plan.actions) {
    if (const auto* update = std::get_if<core::UpdateStudyStatus>(&action)) {
      api::Study study = study_;
      study.status = update->status;
      Result<api::Study> written = store_->update_study_status(study);
      if (!written.ok()) return;
      study_ = *std::move(written);
    } else if (const auto* note = std::get_if<core::Note>(&action)) {
      store_->record_event({control::Kind::kStudy, {"", name_}, name_},
                           note->event.type == core::EventType::kWarning, note->event.reason,
                           note->event.message, now_ms);
    }
  }
}

SuggestStore::~SuggestStore() {
  if (store_ != nullptr && !failure_ && !study_.metadata.uid.empty()) write_study(/*at_once=*/true);
}

}  // namespace fettle::cli
