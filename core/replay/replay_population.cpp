#include "core/replay/replay_population.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/fields/enum_names.h"
#include "core/names.h"
#include "core/replay/replay_history.h"
#include "core/study/problem.h"
#include "search/rungs/population.h"
#include "search/rungs/promotion.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

// The trial that a new one replaces, the checkpoint from which it continues, and its parameters.
struct Succession {
  std::optional<std::int64_t> replaces;
  std::optional<search::Origin> parent;
  Json parameters = Json::object();
  std::optional<std::int64_t> seed;  // the trainer's, if it is prescribed

  // Every recorded trial has a seed; the rule prescribes one only for some.
  bool agrees(const Succession& recorded) const {
    return replaces == recorded.replaces && parent == recorded.parent &&
           parameters == recorded.parameters && (!seed || seed == recorded.seed);
  }
};

class PopulationReplay {
 public:
  PopulationReplay(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out)
      : study_(study),
        problem_(problem_of(study)),
        steps_(search::population_ladder(problem_)),
        history_(study, trials),
        out_(out) {}

  void run(const std::vector<TrialPtr>& trials) {
    for (auto& [basis, decisions] : recorded_decisions(trials)) {
      history_.learn(basis);
      basis_ = basis;
      left_ = std::move(decisions);
      while (!left_.created.empty() || !left_.promotions.empty()) decide();
    }
  }

 private:
  // Takes the next decision by the rule, and compares it with the record.
  void decide() {
    problem_ = problem_at(study_, std::ssize(history_.known().trials), basis_);
    // The indices between the newest known trial and the next one belong to deleted trials.
    if (!left_.created.empty()) history_.add_deleted_before(left_.created.front()->spec.index);
    if (search::trials_missing(problem_, history_.known()) > 0) return begin_member();
    // `last`: the population is complete, so the planner had no new trial to create either.
    if (const auto promotion = search::next_promotion(problem_, history_.known(), /*last=*/true)) {
      return promote(*promotion);
    }
    if (const auto next = search::next_replacement(problem_, history_.known(), /*last=*/true)) {
      ++out_.replacements;
      return create({next->trial, next->stage.parent, next->parameters, next->stage.seed},
                    ": " + next->reason);
    }
    otherwise("no trial is promoted");
  }

  // A trial begins at step 0. Its parameters are a sampler's; replay_suggestions compares them.
  void begin_member() {
    const search::Stage first = search::first_stages(problem_, history_.known(), 1).front();
    if (left_.created.empty()) return otherwise("a new trial begins");
    create({first.replaces, std::nullopt, left_.created.front()->spec.parameters, first.seed}, "");
  }

  void create(const Succession& again, const std::string& reason) {
    if (left_.created.empty()) return otherwise(words(again) + reason);
    const Trial& trial = *left_.created.front();
    const Succession recorded = succession_of(trial);
    if (!again.agrees(recorded)) {
      out_.differences.push_back(
          history_.difference(trial, words(recorded), words(again) + reason));
    }
    carry_out_creation();
  }

  void promote(const search::Promotion& again) {
    ++out_.promotions;
    const auto same = find_same(left_.promotions, again);
    if (same == left_.promotions.end()) return otherwise(history_.words(again));
    history_.promote(*same);
    left_.promotions.erase(same);
  }

  // The record differs from `decided`, and the replay continues from the record. run() asks only
  // while something is left, so without a promotion there is a creation.
  void otherwise(const std::string& decided) {
    if (!left_.promotions.empty()) {
      const RecordedPromotion recorded = left_.promotions.front();
      left_.promotions.erase(left_.promotions.begin());
      out_.differences.push_back(
          history_.difference(*recorded.trial, history_.words(recorded), decided));
      history_.promote(recorded);
      return;
    }
    const Trial& trial = *left_.created.front();
    out_.differences.push_back(history_.difference(trial, words(succession_of(trial)), decided));
    carry_out_creation();
  }

  // Uses the stage at which the trial began; the record has the stage that it was sent to in the
  // end.
  void carry_out_creation() {
    const Trial& trial = *left_.created.front();
    search::Stage stage = recorded_stage(trial);
    stage.rung = stage.bracket;
    stage.ended = false;
    stage.until_step = step_of_rung(steps_, stage.rung);
    history_.begin(trial, stage);
    left_.created.erase(left_.created.begin());
  }

  const search::Stage& recorded_stage(const Trial& trial) const {
    return history_.whole().stages[static_cast<std::size_t>(trial.spec.index)];
  }
  Succession succession_of(const Trial& trial) const {
    const search::Stage& stage = recorded_stage(trial);
    return {stage.replaces, stage.parent, trial.spec.parameters, trial.spec.seed};
  }

  std::string words(const Succession& of) const {
    std::string out = of.parent ? "a new trial" : "a new member of the population";
    if (of.replaces) out += " in the place of " + name(*of.replaces);
    if (!of.parent) return out;
    out += ", from " + study_.spec.resource.unit + " " + std::to_string(of.parent->step) + " of " +
           name(of.parent->trial) + ", with " + of.parameters.dump();
    if (of.seed) out += " and seed " + std::to_string(*of.seed);
    return out;
  }
  std::string name(std::int64_t trial) const { return trial_name(study_.metadata.name, trial); }

  const api::Study& study_;
  search::Problem problem_;  // by which the next decision was taken
  const std::vector<std::int64_t> steps_;
  ReplayHistory history_;
  Replay& out_;
  std::int64_t basis_ = 0;
  DecisionsOf left_;  // at the present basis, not yet matched
};

}  // namespace

void replay_population(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out) {
  const search::Problem problem = problem_of(study);
  if (!search::promotes(problem) || !api::replaces_trials(problem.algorithm.name)) return;
  PopulationReplay(study, trials, out).run(trials);
}

}  // namespace fettle::core
