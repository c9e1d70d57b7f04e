// plan_study: learn, judge, then end the Study or fill its slots (first by promoting trials that
// paused or replacing them, then by creating new trials), and write the status.
//
// The ledger holds the trials as they will be once the actions so far are carried out, so each
// decision sees the earlier decisions. If only the first actions of a plan are carried out, the
// next plan continues there: it reads what was written, and decides the rest as before.
#include "core/study/study_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"
#include "base/philox.h"
#include "core/conditions.h"
#include "core/facts/facts.h"
#include "core/facts/history.h"
#include "core/facts/run_records.h"
#include "core/facts/sizing.h"
#include "core/names.h"
#include "core/study/backlog.h"
#include "core/study/elastic.h"
#include "core/study/expiry.h"
#include "core/study/gpu_memory.h"
#include "core/study/ledger.h"
#include "core/study/replicates.h"
#include "core/study/study_end.h"
#include "core/study/study_status.h"
#include "search/rungs/population.h"
#include "search/rungs/promotion.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

// Keeps the stream of trainer seeds apart from the samplers' use of the same seed.
constexpr std::uint64_t kTrialSeedPurpose = 0x747261696E657273ULL;  // "trainers"

// 53 bits, so that the seed survives every JSON reader.
std::int64_t trial_seed(std::int64_t study_seed, std::int64_t index) {
  const std::uint64_t key = mix_keys(static_cast<std::uint64_t>(study_seed), kTrialSeedPurpose);
  return static_cast<std::int64_t>(mix_keys(key, static_cast<std::uint64_t>(index)) >> 11);
}

class StudyPlanner {
 public:
  // Without a sampler it can only learn().
  StudyPlanner(const StudyView& view, search::Sampler* sampler, Ledger& ledger, std::int64_t now_ms)
      : study_(view.study),
        capacity_(view.capacity),
        sampler_(sampler),
        now_ms_(now_ms),
        ledger_(ledger),
        problem_(ledger.problem()),
        pauses_(search::promotes(problem_)),
        replaces_(api::replaces_trials(view.study.spec.algorithm.name)) {}

  StudyPlan learn() {
    if (study_.metadata.deleted_ms != 0) return {};
    if (!is_over()) judge_trials();  // what a crash left unjudged, before more is learnt
    if (!plan_.is_cut) record_facts();
    return std::move(plan_);
  }

  StudyPlan decide() {
    if (study_.metadata.deleted_ms != 0) return {};
    if (is_over()) return plan_expiry(study_, now_ms_);
    judge_trials();
    fail_silent();
    const Spending spending = ledger_.spending(study_, now_ms_);
    const std::optional<StudyEnd> draining = current_end(study_, ledger_, spending);
    if (draining) {
      stop_all(*draining);
    } else {
      set_suspended(study_.spec.suspend);  // or resumes
      enlarge_gpus();
      if (!study_.spec.suspend) {
        fill_slots();
        set_sizes();
      }
      wake_when_spent(spending);
    }
    report(spending, draining);
    return std::move(plan_);
  }

 private:
  bool is_over() const {
    const bool spec_is_new = study_.status.observed_generation != study_.metadata.generation;
    return is_finished(study_.status) && !spec_is_new;
  }
  void record_facts();
  void judge_trials();
  void fail_silent();
  void judge_one(std::size_t position, std::int64_t basis);
  void stop_all(const StudyEnd& ending);
  void stop(std::size_t position, api::Stop stop);
  void set_suspended(bool suspend);
  void enlarge_gpus();
  bool is_gpu_list_settled(const Trial& trial);
  const GpuMemory& gpu_memory();
  void fill_slots();
  void promote_trials();
  void promote(const search::Promotion& promotion);
  void replace(search::Replacement replacement);
  void stop_replaced();
  void create_trials();
  void create_replicates();
  void repeat(const Trial& leader);
  void set_sizes();
  const Trial& create_trial(Json parameters, const search::Stage& stage,
                            const std::string& repeats = "");
  void wake_when_spent(const Spending& spending);
  void report(const Spending& spending, const std::optional<StudyEnd>& draining);

  // Trials at once: the Study's parallelism, limited by the room.
  std::int64_t slots() const {
    const std::int64_t wanted = study_.spec.budget.parallelism;
    return std::min(wanted, capacity_.trials.value_or(wanted));
  }
  // Trials that may begin at step 0.
  std::int64_t trials_left() const {
    if (!replaces_) {
      return study_.spec.budget.trials - ledger_.searched();
    }
    return search::trials_missing(problem_, ledger_.history());
  }
  std::int64_t free_slots() const { return slots() - std::ssize(ledger_.active()); }
  const Trial& trial_at(std::size_t position) const { return *ledger_.trials()[position]; }
  bool no_more_trials() const { return exhausted_ || trials_left() <= 0; }
  template <class Action>
  void act(Action action) {
    writes_ += std::is_same_v<Action, Note> ? 0 : 1;
    plan_.actions.emplace_back(std::move(action));
  }
  // Whether there is no room for another write. Asked only where one is wanted: it cuts the plan.
  bool is_full() {
    if (writes_ < kMaxWrites) return false;
    plan_.is_cut = true;
    wake_at(now_ms_);
    return true;
  }
  void note(EventType type, std::string reason, std::string message) {
    act(Note{{type, std::move(reason), std::move(message)}});
  }
  void wake_at(std::int64_t at_ms) {
    plan_.wake_at_ms = std::min(at_ms, plan_.wake_at_ms.value_or(at_ms));
  }

  const api::Study& study_;
  const Capacity capacity_;
  search::Sampler* const sampler_;
  const std::int64_t now_ms_;
  Ledger& ledger_;  // of the trials as they are once plan_ is carried out
  StudyPlan plan_;
  std::int64_t writes_ = 0;
  bool exhausted_ = false;
  std::optional<GpuMemory> gpu_memory_;  // decisions do not change it: it is read off reports
  const search::Problem& problem_;
  const bool pauses_;    // trials pause at rungs, and the best are promoted
  const bool replaces_;  // trials take over from others
};

void StudyPlanner::record_facts() {
  std::int64_t seq = ledger_.highest_seq();
  // The ledger forgets the positions that it hands out, so the rest of a cut plan is given back.
  for (const std::size_t position : ledger_.take_unexamined()) {
    const Trial& trial = trial_at(position);
    if (plan_.is_cut) {
      ledger_.leave_unexamined(position);
      continue;
    }
    std::vector<api::Fact> facts = unrecorded_facts(study_, trial, ledger_.rungs(), now_ms_);
    if (facts.empty()) continue;
    if (is_full()) {
      ledger_.leave_unexamined(position);
      continue;
    }
    auto learnt = std::make_shared<Trial>(trial);
    for (api::Fact& fact : facts) {
      fact.seq = ++seq;
      learnt->status.facts.push_back(fact);
    }
    act(RecordFacts{trial.metadata.name, std::move(facts)});
    ledger_.replace(position, std::move(learnt));
  }
}

// Judges every running trial at each rung that it passed since the last reconcile, by what was
// known when the rung became a fact. So the verdicts do not depend on how many rungs one reconcile
// learns of. Rungs that an earlier reconcile recorded are judged again, because it may have crashed
// before it wrote the stop; the verdict is the same.
void StudyPlanner::judge_trials() {
  if (!problem_.early_stopping || pauses_) return;  // pauses_: promotions judge the rungs
  std::map<std::int64_t, std::size_t> by_seq;
  for (const std::size_t position : ledger_.take_unjudged()) {
    const Trial& trial = trial_at(position);
    if (api::is_terminal(trial.status.phase) || trial.spec.stop) continue;
    const api::Fact* rung = newest_fact(trial, api::FactKind::kRung);
    if (rung == nullptr) continue;
    // Rungs of one reconcile have the same time; only the newest are not judged yet.
    for (const api::Fact& fact : trial.status.facts) {
      const bool is_as_new = fact.kind == api::FactKind::kRung && fact.at_ms == rung->at_ms;
      if (is_as_new) by_seq[fact.seq] = position;
    }
  }
  for (const auto& [seq, position] : by_seq) {
    if (trial_at(position).spec.stop) continue;  // at an earlier rung
    if (!plan_.is_cut) judge_one(position, seq);
    if (plan_.is_cut) ledger_.leave_unjudged(position);
  }
}

void StudyPlanner::judge_one(std::size_t position, std::int64_t basis) {
  const search::Judgement judgement = search::judge(
      problem_, *problem_.early_stopping, ledger_.history(), trial_at(position).spec.index, basis);
  if (judgement.verdict == search::Verdict::kContinue || is_full()) return;
  stop(position, {kEarlyStopped, judgement.reason, basis});
}

// A probe that came to the last step in silence has shown that none reports: the trials that paused
// without a value meanwhile have failed as well (late_reports.h).
void StudyPlanner::fail_silent() {
  if (!pauses_ || ledger_.counts().failed == 0 || !ledger_.best().empty()) return;
  for (const std::int64_t trial : search::silent_for_good(problem_, ledger_.history())) {
    if (is_full()) return;
    // The trial, which has paused, then fails (decide() in trial/trial_plan.cpp).
    stop(
        ledger_.position_of(trial),
        {kNoResult, "no trial has reported the objective by the last step", ledger_.highest_seq()});
  }
}

void StudyPlanner::stop_all(const StudyEnd& ending) {
  const std::int64_t basis = ledger_.highest_seq();
  const std::set<std::size_t> active = ledger_.active();  // a copy: stop() changes the ledger
  for (const std::size_t position : active) {
    if (trial_at(position).spec.stop) continue;
    if (is_full()) return;
    stop(position, {ending.reason, ending.message, basis});
  }
}

void StudyPlanner::stop(std::size_t position, api::Stop stop) {
  auto stopped = std::make_shared<Trial>(trial_at(position));
  stopped->spec.stop = std::move(stop);
  stopped->spec.stop->message = truncate_message(stopped->spec.stop->message);
  act(UpdateTrialSpec{stopped->metadata.name, stopped->spec});
  note(EventType::kNormal, stopped->spec.stop->reason,
       stopped->metadata.name + " is stopped: " + stopped->spec.stop->message);
  ledger_.replace(position, std::move(stopped));
}

void StudyPlanner::set_suspended(bool suspend) {
  const std::set<std::size_t> active = ledger_.active();  // a copy: the loop changes the ledger
  for (const std::size_t position : active) {
    const Trial& trial = trial_at(position);
    if (trial.spec.stop || trial.spec.suspend == suspend) continue;
    if (is_full()) return;
    auto changed = std::make_shared<Trial>(trial);
    changed->spec.suspend = suspend;
    act(UpdateTrialSpec{trial.metadata.name, changed->spec});
    ledger_.replace(position, std::move(changed));
  }
}

// Trials whose GPU memory was too small get more, or end if no larger GPU can be had.
void StudyPlanner::enlarge_gpus() {
  if (!sizes_gpu_memory(study_.spec)) return;
  std::vector<std::size_t> too_small;  // apart from active(), which the loop below changes
  for (const std::size_t position : ledger_.active()) {
    const Trial& trial = trial_at(position);
    if (needs_more_gpu_memory(trial) && !trial.spec.stop) too_small.push_back(position);
  }
  if (too_small.empty()) return;
  for (const std::size_t position : too_small) {
    const Trial& trial = trial_at(position);
    const auto next = gpu_memory().wanted_next(trial, capacity_.gpu_memory);
    if (!next && !is_gpu_list_settled(trial)) continue;
    if (is_full()) return;
    if (!next) {
      stop(position, {std::string(kNoSuchGpuMemory), why_no_larger(trial, capacity_.gpu_memory),
                      ledger_.highest_seq()});
      continue;
    }
    auto enlarged = std::make_shared<Trial>(trial);
    enlarged->spec.gpu_memory = next;
    act(UpdateTrialSpec{trial.metadata.name, enlarged->spec});
    note(EventType::kNormal, "MoreGpuMemory",
         trial.metadata.name + " gets " + api::format_quantity(*next) + " of a GPU instead of " +
             api::format_quantity(trial.spec.gpu_memory.value_or(0)));
    ledger_.replace(position, std::move(enlarged));
  }
}

const GpuMemory& StudyPlanner::gpu_memory() {
  if (!gpu_memory_) gpu_memory_.emplace(study_.spec, ledger_);
  return *gpu_memory_;
}

// An administrator who replaces the profiles may remove the large GPUs for a moment, and a trial
// that ends because they are missing ends for good.
bool StudyPlanner::is_gpu_list_settled(const Trial& trial) {
  if (capacity_.gpu_changed_ms == 0) return true;
  const std::int64_t settled_ms = capacity_.gpu_changed_ms + kGpuListSettlesMs;
  if (now_ms_ >= settled_ms) return true;
  wake_at(settled_ms);
  return trial.spec.suspend;
}

// Paused trials are promoted before new trials are created. The last promotions, of the best at
// each rung, wait until it is certain that no new trial will come.
void StudyPlanner::fill_slots() {
  stop_replaced();  // what a crash left undone
  promote_trials();
  create_trials();
  if (no_more_trials()) promote_trials();
  create_replicates();
}

void StudyPlanner::promote_trials() {
  if (!pauses_) return;
  while (free_slots() > 0 && !plan_.is_cut) {
    const search::History& history = ledger_.history();
    const bool last = no_more_trials();  // then one of few is promoted, too (promotion.h)
    if (const auto promotion = search::next_promotion(problem_, history, last)) {
      if (!is_full()) promote(*promotion);  // full: the plan is cut, which ends the loop
    } else if (auto replacement = search::next_replacement(problem_, history, last)) {
      if (is_full()) return;
      replace(std::move(*replacement));
    } else {
      return;
    }
  }
}

// The decision is the creation of a trial that names the one it replaces. The stop of the replaced
// trial follows from that, also after a crash (stop_replaced).
void StudyPlanner::replace(search::Replacement replacement) {
  const Trial& created = create_trial(std::move(replacement.parameters), replacement.stage);
  note(EventType::kNormal, "Replaced",
       created.metadata.name + " takes the place of " + created.spec.search.replaces + " (" +
           replacement.reason + ") and continues from " + study_.spec.resource.unit + " " +
           std::to_string(created.spec.parent->step) + " of " + created.spec.parent->trial);
  stop_replaced();
}

// A stop keeps a replaced trial, which has paused, from being promoted.
void StudyPlanner::stop_replaced() {
  if (!replaces_) return;
  const std::vector<TrialPtr> trials = ledger_.trials();  // a copy: the loop changes the ledger
  std::map<std::string, TrialPtr> successors;
  for (const TrialPtr& trial : trials) {
    if (!trial->spec.search.replaces.empty()) successors[trial->spec.search.replaces] = trial;
  }
  for (std::size_t position = 0; position < trials.size(); ++position) {
    const Trial& trial = *trials[position];
    const auto successor = successors.find(trial.metadata.name);
    const bool paused = trial.status.phase == api::TrialPhase::kCompleted;
    if (successor == successors.end() || trial.spec.stop || !paused) continue;
    if (is_full()) return;
    auto stopped = std::make_shared<Trial>(trial);
    const Trial& next = *successor->second;
    stopped->spec.stop = api::Stop{"Replaced", "its place is taken by " + next.metadata.name,
                                   next.spec.search.basis};
    act(UpdateTrialSpec{trial.metadata.name, stopped->spec});
    ledger_.replace(position, std::move(stopped));
  }
}

void StudyPlanner::promote(const search::Promotion& promotion) {
  const std::size_t position = ledger_.position_of(promotion.trial);
  auto promoted = std::make_shared<Trial>(trial_at(position));
  promoted->spec.until_step = promotion.stage.until_step;
  promoted->spec.search.rung = promotion.stage.rung;
  promoted->spec.search.promotions.push_back({ledger_.highest_seq(), promotion.stage.until_step});
  act(UpdateTrialSpec{promoted->metadata.name, promoted->spec, /*promotion=*/true});
  note(EventType::kNormal, "Promoted",
       promoted->metadata.name + " continues to " + study_.spec.resource.unit + " " +
           std::to_string(promotion.stage.until_step) + ": " + promotion.reason);
  ledger_.replace(position, std::move(promoted));
}

void StudyPlanner::create_trials() {
  const std::int64_t free = std::min(free_slots(), trials_left());  // either may be negative
  if (free <= 0) return;
  const std::int64_t wanted = room_beside(backlog_of(ledger_), free);  // backlog.h
  if (wanted <= 0 || is_full()) return;
  const std::int64_t most = kMaxWrites - writes_;
  const search::History& history = ledger_.history();
  if (pauses_ && search::is_probing(problem_, history)) return;
  search::Suggestion suggestion = sampler_->suggest(history, std::min(wanted, most));
  exhausted_ = suggestion.exhausted;
  std::vector<search::Stage> stages(suggestion.points.size(),
                                    {.until_step = study_.spec.resource.max});
  // A population that does not pause may prescribe seeds in its stages.
  if (pauses_ || replaces_) stages = search::first_stages(problem_, history, stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    create_trial(std::move(suggestion.points[i]), stages[i]);
  }
  // Cut only if it created as many as it may: an exhausted space would be asked again at once.
  if (wanted > most && std::ssize(stages) == most) {
    plan_.is_cut = true;
    wake_at(now_ms_);
  }
}

// Acts once no further trial of the search comes and each has ended: the leaders are final then, so
// a plan that was cut or lost continues with the same leaders.
void StudyPlanner::create_replicates() {
  if (!no_more_trials()) return;
  for (auto room = room_beside(backlog_of(ledger_), free_slots()); room > 0; --room) {
    const std::optional<std::int64_t> leader = ledger_.next_to_repeat();
    if (!leader || is_full()) return;
    repeat(trial_at(ledger_.position_of(*leader)));
  }
}

void StudyPlanner::repeat(const Trial& leader) {
  if (ledger_.replicates() == 0) act(Note{replicating_note(*study_.spec.replicates)});
  create_trial(leader.spec.parameters, replicate_stage(problem_), leader.metadata.name);
}

// Its name follows from its index, so a plan that is carried out twice creates it once.
// `repeats`: the trial that it repeats, if it is a replicate.
const Trial& StudyPlanner::create_trial(Json parameters, const search::Stage& stage,
                                        const std::string& repeats) {
  Trial trial;
  trial.spec.study = study_.metadata.name;
  trial.spec.index = ledger_.next_index();
  trial.spec.parameters = std::move(parameters);
  trial.spec.seed = stage.seed.value_or(trial_seed(study_.spec.algorithm.seed, trial.spec.index));
  trial.spec.until_step = stage.until_step;
  trial.spec.workers = study_.spec.trial.workers.min;
  if (sizes_gpu_memory(study_.spec)) {
    trial.spec.gpu_memory = gpu_memory().wanted(trial.spec.parameters, capacity_.gpu_memory);
  }
  trial.spec.search.basis = ledger_.highest_seq();
  trial.spec.search.bracket = stage.bracket;
  trial.spec.search.rung = stage.rung;
  trial.spec.search.replicates = repeats;
  if (stage.parent) {
    trial.spec.parent =
        api::Parent{trial_name(study_.metadata.name, stage.parent->trial), stage.parent->step};
  }
  if (stage.replaces) {
    trial.spec.search.replaces = trial_name(study_.metadata.name, *stage.replaces);
  }
  trial.metadata.name = trial_name(study_.metadata.name, trial.spec.index);
  trial.metadata.ns = study_.metadata.ns;
  trial.metadata.labels = {{kStudyLabel, study_.metadata.name},
                           {kStudyUidLabel, study_.metadata.uid}};
  act(CreateTrial{trial});
  ledger_.append(std::make_shared<Trial>(std::move(trial)));
  return *ledger_.trials().back();
}

// After new trials were created: the GPUs that they need are not free for growth.
void StudyPlanner::set_sizes() {
  if (!sizes_itself(study_.spec)) return;
  std::vector<std::size_t> positions(ledger_.active().begin(), ledger_.active().end());
  std::vector<TrialPtr> active;
  for (const std::size_t position : positions) active.push_back(ledger_.trials()[position]);
  const api::TrialCounts& counts = ledger_.counts();
  const SizingView view{.min = study_.spec.trial.workers.min,
                        .max = study_.spec.trial.workers.max,
                        .ended = counts.completed + counts.stopped + counts.failed,
                        .waiting_elsewhere_ms = capacity_.waiting_elsewhere_ms,
                        .who_waits = capacity_.who_waits,
                        .may_grow = capacity_.may_grow};
  SizePlan sizes = plan_sizes(view, active, now_ms_);
  if (sizes.wake_at_ms) wake_at(*sizes.wake_at_ms);
  if (!sizes.change || is_full()) return;
  SizeChange& change = *sizes.change;
  auto resized = std::make_shared<Trial>(*active[change.trial]);
  resized->spec.workers = change.workers;
  resized->spec.sizing = change.sizing;
  const std::string& name = resized->metadata.name;
  act(UpdateTrialSpec{.trial = name, .spec = resized->spec, .resize = true});
  note(EventType::kNormal, "Resized", name + " " + change.reason);
  ledger_.replace(positions[change.trial], std::move(resized));
}

// Wakes when the budget is spent, if trials spend it as fast as now.
void StudyPlanner::wake_when_spent(const Spending& spending) {
  const api::Budget& budget = study_.spec.budget;
  // Rounded up: a millisecond earlier, it would not be spent. A small part of a GPU may take longer
  // over the budget than milliseconds can be counted.
  const auto after = [this](double seconds) {
    constexpr double kLongestMs = 1e15;  // 30 thousand years
    return now_ms_ + 1 + static_cast<std::int64_t>(std::min(seconds * 1000, kLongestMs));
  };
  if (budget.wall_time && spending.running) {
    wake_at(after(*budget.wall_time - spending.active_seconds));
  }
  if (budget.gpu_hours && spending.gpus_in_use > 0) {
    const double hours = (*budget.gpu_hours - spending.gpu_hours) / spending.gpus_in_use;
    wake_at(after(hours * 3600));
  }
}

// Adds the status. The Study ends once nothing runs and nothing more will be created.
void StudyPlanner::report(const Spending& spending, const std::optional<StudyEnd>& draining) {
  std::optional<StudyEnd> ended;
  // While the Study is suspended or has no slots, paused trials may still be promoted later.
  // Without slots: the room is used up, or the controller plans without new trials after a refusal.
  const bool held = study_.spec.suspend || slots() <= 0;
  const bool no_more = draining || (no_more_trials() && !(pauses_ && held));
  if (no_more && ledger_.active().empty() && (draining || !ledger_.next_to_repeat())) {
    ended = final_end(study_, ledger_, draining, exhausted_);
  }
  StudyOutlook outlook{ledger_, spending, slots(), draining, ended, sampler_->description()};
  if (!ended) outlook.all_wait = why_all_wait(backlog_of(ledger_));
  outlook.gpu = capacity_.gpu;
  add_status(study_.status, study_status(study_, outlook, now_ms_), spending.running, now_ms_,
             plan_);
}

}  // namespace

StudyPlan plan_facts(const StudyView& view, Ledger& ledger, std::int64_t now_ms) {
  ledger.update(view.study, view.trials);
  return StudyPlanner(view, /*sampler=*/nullptr, ledger, now_ms).learn();
}

StudyPlan plan_decisions(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                         std::int64_t now_ms) {
  return StudyPlanner(view, &sampler, ledger, now_ms).decide();
}

StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, Ledger& ledger,
                     std::int64_t now_ms) {
  StudyPlan plan = plan_facts(view, ledger, now_ms);
  if (plan.is_cut) return plan;  // decisions need all facts (plan_decisions)
  StudyPlan decisions = plan_decisions(view, sampler, ledger, now_ms);
  for (StudyAction& action : decisions.actions) plan.actions.push_back(std::move(action));
  plan.wake_at_ms = decisions.wake_at_ms;  // facts wake only a plan that is cut
  plan.is_cut = decisions.is_cut;
  return plan;
}

StudyPlan plan_study(const StudyView& view, search::Sampler& sampler, std::int64_t now_ms) {
  Ledger ledger;
  return plan_study(view, sampler, ledger, now_ms);
}

StudyPlan plan_refused_study(const api::Study& study, const std::vector<TrialPtr>& trials,
                             const std::string& why, std::int64_t now_ms) {
  const Ledger ledger(study, trials);
  const Spending spending = ledger.spending(study, now_ms);
  const StudyEnd refused{false, "InvalidSpec", why};
  const StudyOutlook outlook{.ledger = ledger,
                             .spending = spending,
                             .slots = study.spec.budget.parallelism,
                             .draining = std::nullopt,
                             .ended = refused,
                             .algorithm = ""};
  api::StudyStatus next = study_status(study, outlook, now_ms);
  StudyPlan plan;
  // Absent: the status says already that the Study is refused.
  if (!write_time(study.status, next, /*running=*/false, now_ms)) return plan;
  plan.actions.emplace_back(UpdateStudyStatus{std::move(next)});
  plan.actions.emplace_back(Note{{EventType::kWarning, refused.reason, refused.message}});
  return plan;
}

}  // namespace fettle::core
