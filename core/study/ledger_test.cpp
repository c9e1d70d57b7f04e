// A ledger that is kept between reconciles gives the plans of a new one: random Studies, in which
// trials report, end, fail and are deleted, plans are carried out in part, and the spec is changed.
#include "core/study/ledger.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "base/philox.h"
#include "core/conditions.h"
#include "core/facts/run_records.h"
#include "core/plan.h"
#include "core/study/problem.h"
#include "core/study/study_plan.h"

namespace fettle::core {
namespace {

using api::Trial;
using api::TrialPhase;
using api::TrialPtr;

// ---- Comparison --------------------------------------------------------------------------------

std::string text_of(const StudyAction& action) {
  if (const auto* record = std::get_if<RecordFacts>(&action)) {
    api::TrialStatus status;
    status.facts = record->facts;
    return "facts of " + record->trial + " " + api::write_trial_status(status).dump();
  }
  if (const auto* update = std::get_if<UpdateTrialSpec>(&action)) {
    return "spec of " + update->trial + " " + api::write_trial_spec(update->spec).dump();
  }
  if (const auto* creation = std::get_if<CreateTrial>(&action)) {
    return "create " + api::write_trial(creation->trial).dump();
  }
  if (const auto* update = std::get_if<UpdateStudyStatus>(&action)) {
    return "status " + api::write_study_status(update->status).dump();
  }
  if (std::holds_alternative<DeleteStudy>(action)) return "delete";
  const auto& note = std::get<Note>(action);
  return "note " + note.event.reason + " " + note.event.message;
}

std::string text_of(const StudyPlan& plan) {
  std::string text;
  for (const StudyAction& action : plan.actions) text += text_of(action) + "\n";
  return text + "again at " + std::to_string(plan.wake_at_ms.value_or(-1));
}

// ---- The world ---------------------------------------------------------------------------------

api::Study study_of(const std::string& algorithm, Random& random) {
  api::Study study;
  study.metadata.name = "digits";
  study.metadata.uid = "u1";
  study.metadata.generation = 1;
  study.spec.objectives.emplace_back().metric = "loss";
  if (algorithm == "nsga2") study.spec.objectives.emplace_back().metric = "seconds";
  api::Parameter& x = study.spec.parameters.emplace_back();
  x.name = "x";
  x.max = 1;
  study.spec.resource = {"epoch", 1, 9};
  const bool repeats = algorithm == "replicates";
  study.spec.algorithm.name =
      *api::from_string<api::AlgorithmKind>(repeats ? "hyperband" : algorithm);
  study.spec.algorithm.startup_trials = 4;
  study.spec.budget.trials = 20 + static_cast<std::int64_t>(random.below(30));
  study.spec.budget.parallelism = 1 + static_cast<std::int64_t>(random.below(6));
  study.spec.budget.failures = 3 + static_cast<std::int64_t>(random.below(20));
  if (random.below(3) == 0) study.spec.budget.wall_time = 600;
  if (random.below(3) == 0) study.spec.objectives[0].goal = 0.01;
  study.spec.trial.gpu.emplace().count = 1;
  if (algorithm == "random") {
    study.spec.early_stopping.emplace().name =
        random.below(2) == 0 ? api::StoppingKind::kAsha : api::StoppingKind::kMedian;
    study.spec.early_stopping->min_trials = 2;
  }
  if (repeats) {
    study.spec.replicates = {.leaders = 1 + static_cast<std::int64_t>(random.below(3)), .runs = 4};
    study.spec.budget.trials = 4 + static_cast<std::int64_t>(random.below(4));
    study.spec.objectives[0].goal.reset();
  }
  if (algorithm == "pbt") study.spec.algorithm.interval = 3;
  return study;
}

class World {
 public:
  World(const std::string& algorithm, std::uint64_t seed)
      : random_(seed), study_(study_of(algorithm, random_)), unsteady_(random_.below(4) == 0) {}

  // Plans by the kept ledger and by a new one, compares, and carries out a part of the plan.
  void reconcile() {
    ledger_.update(study_, trials_);
    if (folded_ != ledger_.rebuilds()) sampler_ = make_sampler();
    folded_ = ledger_.rebuilds();
    const StudyPlan kept = plan_study({study_, trials_, {}}, *sampler_, ledger_, now_ms_);
    const StudyPlan fresh = plan_study({study_, trials_, {}}, *make_sampler(), now_ms_);
    ASSERT_EQ(text_of(kept), text_of(fresh));
    const bool dies = random_.below(5) == 0;
    std::size_t left = dies ? random_.below(kept.actions.size() + 1) : kept.actions.size();
    for (const StudyAction& action : kept.actions) {
      if (left-- == 0) break;
      carry_out(action);
    }
  }

  // Time passes, and the trials proceed.
  void live() {
    now_ms_ += static_cast<std::int64_t>(random_.below(3'000));
    for (TrialPtr& trial : trials_) {
      if (random_.below(2) == 0) live(trial);
    }
    if (random_.below(40) == 0 && !trials_.empty()) {
      trials_.erase(trials_.begin() + static_cast<std::ptrdiff_t>(random_.below(trials_.size())));
    }
    if (random_.below(25) == 0) study_.spec.suspend = !study_.spec.suspend, change_spec();
    if (random_.below(40) == 0) study_.spec.budget.trials += 3, change_spec();
  }

  std::int64_t rebuilds() const { return ledger_.rebuilds(); }
  const api::Study& study() const { return study_; }
  bool is_over() const { return is_finished(study_.status); }
  std::int64_t means() const { return means_; }

 private:
  std::unique_ptr<search::Sampler> make_sampler() const {
    return search::make_sampler(problem_of(study_)).value();
  }

  void change_spec() { ++study_.metadata.generation; }

  TrialPtr& named(const std::string& name) {
    for (TrialPtr& trial : trials_) {
      if (trial->metadata.name == name) return trial;
    }
    std::abort();
  }

  void carry_out(const StudyAction& action) {
    if (const auto* record = std::get_if<RecordFacts>(&action)) {
      Trial next = *named(record->trial);
      std::vector<api::Fact>& facts = next.status.facts;
      facts.insert(facts.end(), record->facts.begin(), record->facts.end());
      named(record->trial) = std::make_shared<Trial>(std::move(next));
    } else if (const auto* update = std::get_if<UpdateTrialSpec>(&action)) {
      Trial next = *named(update->trial);
      next.spec = update->spec;
      named(update->trial) = std::make_shared<Trial>(std::move(next));
    } else if (const auto* creation = std::get_if<CreateTrial>(&action)) {
      trials_.push_back(std::make_shared<Trial>(creation->trial));
    } else if (const auto* status = std::get_if<UpdateStudyStatus>(&action)) {
      study_.status = status->status;
      const auto& best = study_.status.best;
      if (!best.empty() && best[0].replicates && best[0].replicates->deviation) ++means_;
    }
  }

  void live(TrialPtr& trial) {
    Trial next = *trial;
    api::TrialStatus& status = next.status;
    const bool goes_on = status.phase == TrialPhase::kCompleted && !next.spec.stop &&
                         next.spec.until_step > status.runs.back().until_step;
    if (api::is_terminal(status.phase) && !goes_on) return;
    const bool runs = !status.runs.empty() && !status.runs.back().outcome;
    if (runs) {
      train(next);
    } else if (next.spec.stop) {
      status.phase = TrialPhase::kStopped;
    } else if (next.spec.suspend) {
      status.phase = TrialPhase::kPaused;
    } else {
      append_run(status, next.spec, now_ms_).running_ms = now_ms_ + 5;
      status.phase = TrialPhase::kRunning;
    }
    trial = std::make_shared<Trial>(std::move(next));
  }

  void train(Trial& trial) {
    api::TrialStatus& status = trial.status;
    if (!status.report) status.report.emplace();
    api::Report& report = *status.report;
    const std::int64_t until = trial.spec.until_step;
    report.step = std::min(until, report.step + 1 + static_cast<std::int64_t>(random_.below(3)));
    const double x = trial.spec.parameters.find("x")->as_double();
    // Replicates differ by the luck of their seed.
    const double luck =
        study_.spec.replicates ? 1e-3 * static_cast<double>(trial.spec.seed % 97) : 0;
    const double left = 1.0 / static_cast<double>(report.step);
    report.metrics = {{"loss", (x - 0.3) * (x - 0.3) + left + luck}, {"seconds", 1 - x}};
    report.history.push_back({report.step, report.metrics});
    const std::uint64_t fate = random_.below(12);
    if (unsteady_ && fate > 1) return end(trial, api::Outcome::kDisrupted, TrialPhase::kPending);
    if (trial.spec.stop) return end(trial, api::Outcome::kStopped, TrialPhase::kStopped);
    if (trial.spec.suspend) return end(trial, api::Outcome::kStopped, TrialPhase::kPaused);
    if (fate == 0) return end(trial, api::Outcome::kDisrupted, TrialPhase::kPending);
    if (fate == 1) return end(trial, api::Outcome::kFailed, TrialPhase::kFailed);
    if (report.step >= until) end(trial, api::Outcome::kSucceeded, TrialPhase::kCompleted);
  }

  void end(Trial& trial, api::Outcome outcome, TrialPhase phase) const {
    api::RunRecord& run = trial.status.runs.back();
    run.ended_ms = now_ms_;
    run.outcome = outcome;
    trial.status.phase = phase;
  }

  Random random_;
  api::Study study_;
  const bool unsteady_;  // runs are disrupted until their records are pruned
  std::vector<TrialPtr> trials_;
  std::int64_t now_ms_ = 1'800'000'000'000;
  Ledger ledger_;
  std::int64_t folded_ = -1;
  std::unique_ptr<search::Sampler> sampler_;
  std::int64_t means_ = 0;  // statuses whose best trial had several replicates
};

class KeptLedger : public testing::TestWithParam<std::string> {};

TEST_P(KeptLedger, GivesThePlansOfANewOne) {
  const std::uint64_t seeds = GetParam() == "bohb" ? 4 : 20;  // its models are made again each time
  std::set<std::string> ends;
  std::int64_t means = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    World world(GetParam(), seed);
    for (int i = 0; i < 250; ++i) {
      ASSERT_NO_FATAL_FAILURE(world.reconcile()) << "seed " << seed << ", reconcile " << i;
      world.live();
    }
    means += world.means();
    ends.insert(api::write_study_status(world.study().status).dump());
  }
  EXPECT_GE(ends.size(), seeds - 2) << "the Studies were too much alike";
  EXPECT_EQ(means > 0, GetParam() == "replicates");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, KeptLedger,
                         testing::Values("random", "tpe", "nsga2", "hyperband", "bohb", "pbt",
                                         "replicates"));

// ---- Cost --------------------------------------------------------------------------------------

TrialPtr trial_of(std::int64_t index, std::int64_t seq) {
  Trial trial;
  trial.metadata.name = "digits-" + std::to_string(index);
  trial.spec.index = index;
  if (seq > 0) {
    trial.status.phase = TrialPhase::kCompleted;
    trial.status.facts = {{.seq = seq, .values = {0.5}}};
  }
  return std::make_shared<Trial>(std::move(trial));
}

api::Study plain_study() {
  api::Study study;
  study.spec.objectives.emplace_back().metric = "loss";
  return study;
}

TEST(Ledger, ReadsOnlyChangedTrialsAgain) {
  const api::Study study = plain_study();
  std::vector<TrialPtr> trials = {trial_of(0, 1), trial_of(1, 0), trial_of(2, 2)};
  Ledger ledger(study, trials);
  EXPECT_EQ(ledger.take_unexamined(), (std::set<std::size_t>{0, 1, 2}));
  ledger.update(study, trials);
  EXPECT_TRUE(ledger.take_unexamined().empty());
  trials[1] = trial_of(1, 3);
  trials.push_back(trial_of(3, 0));
  const std::int64_t before = ledger.rebuilds();
  ledger.update(study, trials);
  EXPECT_EQ(ledger.take_unexamined(), (std::set<std::size_t>{1, 3}));
  EXPECT_EQ(ledger.rebuilds(), before) << "the history only became longer";
  EXPECT_EQ(ledger.highest_seq(), 3);
}

TEST(Ledger, AFactInTheMiddleRewritesTheHistory) {
  const api::Study study = plain_study();
  std::vector<TrialPtr> trials = {trial_of(0, 1), trial_of(1, 0), trial_of(2, 3)};
  Ledger ledger(study, trials);
  const std::int64_t before = ledger.rebuilds();
  trials[1] = trial_of(1, 2);
  ledger.update(study, trials);
  EXPECT_GT(ledger.rebuilds(), before);
  EXPECT_EQ(ledger.history().events[1].trial, 1);
}

TEST(IntervalUnion, CountsEachMomentOnce) {
  IntervalUnion time;
  for (const Interval& interval : std::vector<Interval>{{50, 60}, {0, 10}, {5, 20}, {20, 25}}) {
    time.add(interval);
  }
  EXPECT_EQ(time.length_with({}), 35);
  EXPECT_EQ(time.length_with({{10, 55}, {10, 30}, {90, 100}, {7, 7}}), 70);
}

}  // namespace
}  // namespace fettle::core
