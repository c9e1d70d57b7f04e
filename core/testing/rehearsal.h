// Rehearsal: a Study that is really planned, and whose trials train in memory. For tests; not
// synchronised.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "core/conditions.h"
#include "core/facts/history.h"
#include "core/plan.h"
#include "core/replay/replay.h"
#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "core/study/search_period.h"
#include "core/study/study_plan.h"
#include "search/space/fingerprint.h"

namespace fettle::core {

// One step of every running trial, then a reconcile.
class Rehearsal {
 public:
  explicit Rehearsal(const std::string& algorithm) {
    api::Parameter x;
    x.name = "x";
    x.max = 1;
    api::Objective loss;
    loss.metric = "loss";
    study.metadata.name = "s";
    study.metadata.generation = 1;
    study.spec.parameters = {x};
    study.spec.objectives = {loss};
    study.spec.algorithm.name = *api::from_string<api::AlgorithmKind>(algorithm);
    study.spec.algorithm.startup_trials = 4;
    study.spec.resource.max = 9;
    study.spec.budget.trials = 20;
    study.spec.budget.parallelism = 3;
  }

  // A change of the budget, as a spec is changed.
  template <class Edit>
  void change_budget(const Edit& edit) {
    edit(study.spec.budget);
    ++study.metadata.generation;
  }

  void run(int reconciles = 1000) {
    settle();
    const auto sampler = search::make_sampler(problem_of(study));
    ASSERT_TRUE(sampler.ok());
    for (int i = 0; i < reconciles && !is_over(); ++i) {
      now_ms += 1500;
      const StudyPlan plan = plan_study({study, trials, {}}, **sampler, now_ms);
      for (const StudyAction& action : plan.actions) carry_out(action);
      for (api::TrialPtr& trial : trials) train(trial);
    }
    ASSERT_TRUE(is_finished(study.status) || reconciles < 1000);
  }

  // Replaces a trial by one that `edit` changed.
  template <class Edit>
  void edit(std::size_t index, const Edit& edit) {
    api::Trial changed = *trials[index];
    edit(changed);
    trials[index] = std::make_shared<const api::Trial>(std::move(changed));
  }

  api::Study study;
  std::vector<api::TrialPtr> trials;
  std::int64_t now_ms = 1'000'000;
  std::string machine = search::fingerprint();
  std::vector<std::string> notes;
  double noise = 0;  // of the loss, by the trial's seed

 private:
  bool is_over() const {
    return is_finished(study.status) &&
           study.status.observed_generation == study.metadata.generation;
  }

  void settle() {
    const Ledger ledger(study, trials);
    if (!needs_search_period(study, ledger, machine)) return;
    const StudyPlan plan = plan_search_period(study, ledger, machine);
    for (const StudyAction& action : plan.actions) carry_out(action);
  }

  void carry_out(const StudyAction& action) {
    if (const auto* create = std::get_if<CreateTrial>(&action)) {
      trials.push_back(std::make_shared<const api::Trial>(create->trial));
    } else if (const auto* record = std::get_if<RecordFacts>(&action)) {
      edit(index_of(record->trial), [record](api::Trial& trial) {
        auto& facts = trial.status.facts;
        facts.insert(facts.end(), record->facts.begin(), record->facts.end());
      });
    } else if (const auto* update = std::get_if<UpdateTrialSpec>(&action)) {
      edit(index_of(update->trial), [update](api::Trial& trial) { trial.spec = update->spec; });
    } else if (const auto* status = std::get_if<UpdateStudyStatus>(&action)) {
      study.status = status->status;
    } else if (const auto* note = std::get_if<Note>(&action)) {
      notes.push_back(note->event.reason + ": " + note->event.message);
    }
  }

  std::size_t index_of(const std::string& name) const {
    std::size_t index = 0;
    while (trials[index]->metadata.name != name) ++index;
    return index;
  }

  // The loss falls to (x - 0.3)^2. Trials differ in speed, so that they end out of order.
  void train(api::TrialPtr& trial) {
    if (!is_active(*trial)) return;
    api::Trial next = *trial;
    const bool promoted = next.status.phase == api::TrialPhase::kCompleted;
    if (next.status.runs.empty() || promoted) {
      next.status.runs.emplace_back();
      next.status.runs.back().running_ms = now_ms;
      next.status.runs.back().until_step = next.spec.until_step;
    }
    api::Report report = next.status.report.value_or(api::Report{});
    for (std::int64_t i = 0; i <= next.spec.index % 3 && !next.spec.stop; ++i) {
      if (report.step >= next.spec.until_step) break;
      const double x = next.spec.parameters.find("x")->as_double();
      const double left = 1.0 / static_cast<double>(++report.step);
      const double luck = noise * static_cast<double>(next.spec.seed % 97);
      const double loss = (x - 0.3) * (x - 0.3) + left + luck;
      report.metrics = {{"loss", loss}};
      report.history.push_back({report.step, report.metrics});
    }
    next.status.phase = api::TrialPhase::kRunning;
    if (next.spec.stop) {
      next.status.phase = api::TrialPhase::kStopped;
    } else if (report.step >= next.spec.until_step) {
      next.status.phase = api::TrialPhase::kCompleted;
    }
    next.status.report = std::move(report);
    trial = std::make_shared<const api::Trial>(std::move(next));
  }
};

inline api::EarlyStopping rule(const std::string& name) {
  api::EarlyStopping rules;
  rules.name = *api::from_string<api::StoppingKind>(name);
  return rules;
}

inline std::vector<Difference> differences_of(const Rehearsal& rehearsal) {
  const auto again = replay(rehearsal.study, rehearsal.trials);
  EXPECT_TRUE(again.ok());
  return again.ok() ? again->differences : std::vector<Difference>();
}

}  // namespace fettle::core
