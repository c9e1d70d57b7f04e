// The loop: carries out everything that is due, then advances to the next event.
#include "tests/sim/simulation.h"

#include <algorithm>
#include <cmath>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/check.h"
#include "base/philox.h"
#include "core/conditions.h"
#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "search/rungs/promotion.h"

namespace fettle::sim {

namespace {

// More reconciles than this at one time are a loop.
constexpr int kMostStepsAtOnce = 100'000;
// From a crash to the next Manager.
constexpr std::int64_t kRestartMs = 20;

std::string fingerprint_of(const api::Trial& trial, bool order) {
  std::string text = trial.metadata.name + " " + trial.spec.parameters.dump() + " seed " +
                     std::to_string(trial.spec.seed) + " " +
                     std::string(api::to_string(trial.status.phase));
  if (trial.spec.stop) text += " stop " + trial.spec.stop->reason;
  if (!trial.spec.search.replicates.empty()) text += " again as " + trial.spec.search.replicates;
  if (order) text += " basis " + std::to_string(trial.spec.search.basis);
  for (const api::Fact& fact : trial.status.facts) {
    text += "\n  ";
    if (order) text += std::to_string(fact.seq) + " ";
    text += std::string(api::to_string(fact.kind)) + " step " + std::to_string(fact.step);
    for (const auto& value : fact.values) text += " " + (value ? Json(*value).dump() : "none");
    if (fact.infeasible) text += " infeasible";
  }
  return text + "\n";
}

}  // namespace

api::Study digits_study() {
  api::Study study;
  study.metadata.name = "digits";
  api::Objective objective;
  objective.metric = "accuracy";
  objective.direction = api::Direction::kMaximize;
  study.spec.objectives = {objective};
  api::Parameter x;
  x.name = "x";
  x.min = 0;
  x.max = 1;
  study.spec.parameters = {x};
  study.spec.resource = {"epoch", 1, 9};
  study.spec.algorithm.name = api::AlgorithmKind::kRandom;
  study.spec.algorithm.seed = 7;
  study.spec.budget.trials = 12;
  study.spec.budget.parallelism = 4;
  study.spec.budget.failures = 5;
  study.spec.trial.heartbeat = 30;
  study.spec.trial.pod_template =
      parse_json(R"({"spec": {"containers": [{"name": "trial", "image": "digits"}]}})").value();
  return study;
}

double digits_curve(const Json& parameters, std::int64_t step) {
  const double x = parameters.find("x")->as_double();
  const double best = 1 - (x - 0.3) * (x - 0.3);
  return best * (1 - std::exp(-static_cast<double>(step) / 3));
}

Script all_finish(std::int64_t, std::int64_t) { return {}; }

Script bad_days(std::int64_t index, std::int64_t run) {
  switch (index % 7) {
    case 1:
      return run == 0 ? Script{Fate::kFail, 2} : Script{};
    case 2:
      return run < 3 ? Script{Fate::kDisrupt, 2} : Script{};
    case 3:
      return {Fate::kFail, 1};
    case 4:
      return run == 0 ? Script{Fate::kHang, 4} : Script{};
    case 5:
      return run == 0 ? Script{Fate::kOutOfMemory, 0} : Script{};
    default:
      return {};
  }
}

Simulation::Simulation(const api::Study& study, Scripts scripts)
    : store_(faults_),
      runs_(faults_, clock_, std::move(scripts), digits_curve),
      began_ms_(clock_.now_ms()) {
  CHECK(store_.create_study(study).ok(), "the Study could not be created");
  restart();
}

void Simulation::restart() {
  manager_.reset();
  manager_ = std::make_unique<control::Manager>(store_, runs_, clock_, observer_);
}

bool Simulation::step() {
  try {
    const Result<bool> worked = manager_->step();
    if (worked.ok()) return *worked;
    error_ = worked.error().message;
    return false;
  } catch (const Crash&) {
    clock_.advance_to(clock_.now_ms() + kRestartMs);
    restart();
    return true;
  }
}

bool Simulation::step_through() {
  int steps = 0;
  while (step()) CHECK(++steps < kMostStepsAtOnce, "the controllers never come to rest");
  return error_.empty();
}

std::int64_t Simulation::next_ms() {
  std::int64_t next = std::max(manager_->next_ms(), clock_.now_ms() + 1);
  for (const std::int64_t other : {runs_.next_ms(), store_.next_ms()}) {
    if (other >= 0) next = std::min(next, other);
  }
  return next;
}

// Carries out events outside the controllers.
void Simulation::advance() {
  runs_.advance();
  for (const std::string& trial : store_.collect_garbage(clock_.now_ms())) runs_.forget(trial);
}

void Simulation::run_until(std::int64_t at_s) {
  const std::int64_t end_ms = began_ms_ + at_s * 1000;
  while (step_through() && clock_.now_ms() < end_ms) {
    clock_.advance_to(std::min(end_ms, next_ms()));
    advance();
  }
}

void Simulation::run_to_end(std::int64_t most_s) {
  while (step_through() && !core::is_finished(study().status)) {
    clock_.advance_to(next_ms());
    CHECK(clock_.now_ms() < began_ms_ + most_s * 1000, "the Study does not come to an end");
    advance();
  }
  if (error_.empty()) expect_quiet();
}

// If trials pause, all others would wait for a trial that still counts as at work.
void Simulation::expect_nobody_runs() {
  const search::Problem problem = core::problem_of(study());
  if (!search::promotes(problem)) return;
  CHECK(!search::any_runs(problem, core::history_of(study(), trials())),
        "the Study has ended, and a trial still counts as at work");
}

// Remains are cleaned up within a resync; then there is silence.
void Simulation::expect_quiet() {
  expect_nobody_runs();
  restart();
  step_through();
  CHECK(runs_.present() == 0, "runs are left behind");
  const std::int64_t writes = faults_.writes();
  for (int i = 0; i < 5; ++i) {
    restart();
    clock_.advance_to(clock_.now_ms() + 31'000);
    step_through();
  }
  CHECK(faults_.writes() == writes, "something is written though nothing changes");
}

void Simulation::run_two_stale_managers(std::uint64_t seed) {
  Random random(seed);
  StaleStore views[2] = {StaleStore(store_), StaleStore(store_)};
  std::unique_ptr<control::Manager> managers[2];
  for (int i = 0; i < 2; ++i) {
    control::ManagerOptions options;
    options.resync_ms = 700;
    managers[i] = std::make_unique<control::Manager>(views[i], runs_, clock_, observer_, options);
  }
  while (!core::is_finished(study().status)) {
    const std::size_t turn = random.below(2);
    if (random.below(3) == 0) views[turn].refresh();
    for (std::uint64_t steps = random.below(12); steps > 0; --steps) {
      CHECK(managers[turn]->step().ok(), "a stale manager gave up");
    }
    clock_.advance_to(clock_.now_ms() + static_cast<std::int64_t>(random.below(400)));
    CHECK(clock_.now_ms() < began_ms_ + 3'600'000, "the Study does not come to an end");
    runs_.advance();
  }
  expect_quiet();
}

api::Study Simulation::study() { return store_.objects().studies.at({"", "digits"}); }

std::vector<api::TrialPtr> Simulation::trials() {
  return store_.list_trials({"", "digits"}).value();
}

std::string Simulation::fingerprint(bool order) {
  std::string text;
  for (const api::TrialPtr& trial : trials()) text += fingerprint_of(*trial, order);
  return text;
}

}  // namespace fettle::sim
