#include "search/rungs/population.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/trial/trial.h"
#include "base/check.h"
#include "base/philox.h"
#include "search/incremental_sampler.h"
#include "search/rungs/pb2.h"
#include "search/rungs/perturb.h"
#include "search/rungs/rung_table.h"
#include "search/space/space.h"

namespace fettle::search {
namespace {

// Size of the population if no budget sets it.
constexpr std::int64_t kMembers = 20;
constexpr std::int64_t kFewestCompared = 2;
constexpr std::int64_t kIntervals = 10;  // of a training, unless the interval is given

bool is_schedule(const Problem& problem) { return api::traits(problem.algorithm.name).replays; }

std::int64_t members_wanted(const Problem& problem) {
  return problem.max_trials > 0 ? problem.max_trials : kMembers;
}

std::int64_t interval_of(const Problem& problem) {
  const api::Resource& resource = problem.resource;
  const std::int64_t tenth = (resource.max + kIntervals - 1) / kIntervals;
  return std::max<std::int64_t>(1,
                                problem.algorithm.interval.value_or(std::max(resource.min, tenth)));
}

// The next move of a member: it continues or, with `parent`, another takes its place.
struct Move {
  std::int64_t trial = 0;
  std::int64_t rung = 0;  // the destination of the trial
  std::optional<std::int64_t> parent;
  std::string reason;
};

class Population {
 public:
  Population(const Problem& problem, const History& history)
      : problem_(problem),
        history_(history),
        table_(problem, history, population_ladder(problem)),
        superseded_(history.trials.size(), false),
        failed_(history.trials.size(), false),
        over_(history.trials.size(), false),
        paused_(history.trials.size()) {
    CHECK(history.stages.size() == history.trials.size(), "each trial has a stage");
    for (const Stage& stage : history.stages) {
      if (stage.replaces) superseded_[static_cast<std::size_t>(*stage.replaces)] = true;
    }
    for (const Event& event : history.events) {
      const auto trial = static_cast<std::size_t>(event.trial);
      // A failure without a seq stands for a trial that was deleted by hand
      // (core/study/ledger.cpp): no trial takes its place.
      const bool deleted = event.fact.seq == 0;
      if (event.fact.kind == api::FactKind::kFailed && !deleted) failed_[trial] = true;
      if (event.fact.kind == api::FactKind::kFailed && deleted) over_[trial] = true;
      if (event.fact.kind == api::FactKind::kResult) over_[trial] = true;
      if (event.fact.kind == api::FactKind::kStopped) paused_[trial].push_back(event.fact.step);
    }
    // A member that left without a value counts as failed.
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      if (table_.is_silent(trial, stage(trial))) failed_[static_cast<std::size_t>(trial)] = true;
    }
  }

  // Members that failed before any checkpoint existed for a successor.
  std::vector<std::int64_t> failed_at_start() const {
    std::vector<std::int64_t> out;
    if (is_schedule(problem_)) return out;  // a failed trial of a schedule gets no successor
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      if (has_failed(trial) && rung_to_join(trial) == 0) out.push_back(trial);
    }
    return out;
  }

  std::int64_t begun() const {
    return std::count_if(history_.stages.begin(), history_.stages.end(),
                         [](const Stage& stage) { return !stage.replaces; });
  }

  std::optional<Move> next_move() const {
    if (is_schedule(problem_)) return next_leg();
    if (auto move = replace_failed()) return move;
    const std::int64_t rung = lowest_rung(/*but=*/size());  // no trial has this number
    // No member continues, or all are on their last leg.
    if (rung < 0 || rung + 1 >= table_.rungs()) return std::nullopt;
    // A comparison waits for half of the members, unless no member that could still come is at
    // work.
    const std::int64_t enough = std::max(kFewestCompared, (count_continuing() + 1) / 2);
    if (any_at_work() && static_cast<std::int64_t>(at(rung).size()) < enough) return std::nullopt;
    // The best one that waits moves first; the caller asks again for the next.
    for (const RungTable::Entry& entry : at(rung)) {
      if (waits_at(entry.trial, rung)) return decide(entry, rung);
    }
    return std::nullopt;
  }

  const RungTable& table() const { return table_; }

 private:
  using Entries = std::vector<RungTable::Entry>;
  std::int64_t size() const { return static_cast<std::int64_t>(history_.trials.size()); }
  const Entries& at(std::int64_t rung) const { return table_.at(rung); }
  const Stage& stage(std::int64_t trial) const {
    return history_.stages[static_cast<std::size_t>(trial)];
  }

  // Whether the trial is a member that has neither come to the end nor stopped for good.
  bool continues(std::int64_t trial) const {
    const auto i = static_cast<std::size_t>(trial);
    return !superseded_[i] && !failed_[i] && !over_[i] && !stage(trial).ended;
  }
  bool has_failed(std::int64_t trial) const {
    const auto i = static_cast<std::size_t>(trial);
    return failed_[i] && !superseded_[i] && !stage(trial).ended;
  }
  bool waits_at(std::int64_t trial, std::int64_t rung) const {
    return continues(trial) && stage(trial).rung == rung && table_.waits(trial, stage(trial));
  }
  std::int64_t count_continuing() const {
    std::int64_t count = 0;
    for (std::int64_t trial = 0; trial < size(); ++trial) count += continues(trial) ? 1 : 0;
    return count;
  }
  bool any_at_work() const {
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      if (continues(trial) && !table_.waits(trial, stage(trial))) return true;
    }
    return false;
  }

  // The lowest rung that members other than `but` were sent to; -1 without other members.
  std::int64_t lowest_rung(std::int64_t but) const {
    std::int64_t lowest = -1;
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      if (trial == but || !continues(trial)) continue;
      if (lowest < 0 || stage(trial).rung < lowest) lowest = stage(trial).rung;
    }
    return lowest;
  }

  // The first rung of the successor of a failed member.
  std::int64_t rung_to_join(std::int64_t trial) const {
    const std::int64_t others = lowest_rung(trial);
    return others < 0 ? stage(trial).rung : others;
  }

  // The number of values at a rung that count as the best, and also as the worst.
  std::size_t quantile_size(std::int64_t rung) const {
    const auto values = static_cast<double>(at(rung).size());
    const double share = std::ceil(problem_.algorithm.quantile * values);
    // At most half, so that no trial is among the best and among the worst.
    return static_cast<std::size_t>(std::min(share, std::floor(values / 2)));
  }

  // Whether the trial was still training at the step of the rung, as far as its reports say. A
  // program that left earlier, by its own early stopping, has no checkpoint of that step.
  bool came_to(std::int64_t trial, std::int64_t rung) const {
    // Each leg ends in one pause: the first one at the rung that the trial was first sent to.
    const std::int64_t leg = rung - stage(trial).bracket;
    const std::vector<std::int64_t>& steps = paused_[static_cast<std::size_t>(trial)];
    return leg >= 0 && leg < static_cast<std::int64_t>(steps.size()) &&
           steps[static_cast<std::size_t>(leg)] >= table_.step(rung);
  }

  // Entries at the rung with a checkpoint that another trial can start from, best first. A program
  // that evaluates every second epoch reports the step of no rung, and still comes to each: if none
  // is known to have come, all may have.
  Entries possible_parents(std::int64_t rung) const {
    Entries out;
    for (const RungTable::Entry& entry : at(rung)) {
      if (came_to(entry.trial, rung)) out.push_back(entry);
    }
    return out.empty() ? at(rung) : out;
  }

  // The same draws until another trial exists, so a repeated decision has the same result.
  Random draws() const {
    return Random(draw_key(problem_.algorithm.seed, Purpose::kExplore),
                  static_cast<std::uint64_t>(size()));
  }

  // Decides the move of a member that waits at `rung`: one of the worst is replaced by a trial that
  // starts from one of the best, if any is better than it; every other member continues.
  Move decide(const RungTable::Entry& entry, std::int64_t rung) const {
    const std::size_t count = quantile_size(rung);  // of the best, and of the worst
    const Entries& all = at(rung);                  // best first
    const auto same = [&](const RungTable::Entry& other) { return other.trial == entry.trial; };
    const auto where =
        static_cast<std::size_t>(std::find_if(all.begin(), all.end(), same) - all.begin());
    Move move{entry.trial, rung + 1, std::nullopt,
              problem_.resource.unit + " " + std::to_string(table_.step(rung)) + ": number " +
                  std::to_string(where + 1) + " of " + std::to_string(all.size())};
    if (where + count < all.size()) return move;  // not among the worst
    const auto is_better = [&](const RungTable::Entry& parent) {
      return std::any_of(
          all.begin(), all.begin() + static_cast<std::ptrdiff_t>(where),
          [&](const RungTable::Entry& other) { return other.trial == parent.trial; });
    };
    std::vector<std::int64_t> better;
    for (const RungTable::Entry& parent : possible_parents(rung)) {
      // Best first, so the first one that is not better ends the search. The member itself may be
      // missing here, and all possible parents may be worse than it.
      if (better.size() == count || !is_better(parent)) break;
      if (std::isfinite(parent.loss)) better.push_back(parent.trial);
    }
    if (!better.empty()) move.parent = better[draws().below(better.size())];
    return move;
  }

  // The trials from which the successor of a failed member may start: the best at the rung, failed
  // trials only if there are no others; if no value is finite, the first entry.
  std::vector<std::int64_t> best_at(std::int64_t rung) const {
    const Entries parents = possible_parents(rung);
    Entries sound;
    for (const RungTable::Entry& entry : parents) {
      if (!failed_[static_cast<std::size_t>(entry.trial)]) sound.push_back(entry);
    }
    if (sound.empty()) sound = parents;
    std::vector<std::int64_t> out;
    // quantile_size() is the number of best trials of a rung.
    const std::size_t count = std::max<std::size_t>(1, quantile_size(rung));
    for (const RungTable::Entry& entry : sound) {
      if (out.size() == count || (std::isinf(entry.loss) && !out.empty())) break;
      out.push_back(entry.trial);
    }
    return out;
  }

  std::optional<Move> replace_failed() const {
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      if (!has_failed(trial)) continue;
      const std::int64_t rung = rung_to_join(trial);
      if (rung == 0) continue;  // failed_at_start()
      const std::vector<std::int64_t> best = best_at(rung - 1);
      if (best.empty()) continue;  // no value yet at the rung before: a later call replaces it
      return Move{trial, rung, best[draws().below(best.size())], "it failed"};
    }
    return std::nullopt;
  }

  std::optional<Move> next_leg() const {
    for (std::int64_t trial = 0; trial < size(); ++trial) {
      const std::int64_t rung = stage(trial).rung;
      const bool last = rung + 1 >= table_.rungs();
      if (last || !continues(trial) || !table_.waits(trial, stage(trial))) continue;
      // The parent is the trial itself: each leg is a new trial that starts from the checkpoint of
      // the leg before, with its own parameters.
      return Move{trial, rung + 1, trial,
                  "the schedule continues at " + problem_.resource.unit + " " +
                      std::to_string(table_.step(rung))};
    }
    return std::nullopt;
  }

  const Problem& problem_;
  const History& history_;
  const RungTable table_;
  std::vector<bool> superseded_;                   // another trial has taken its place
  std::vector<bool> failed_;                       // by itself
  std::vector<bool> over_;                         // at its last step, or deleted by hand
  std::vector<std::vector<std::int64_t>> paused_;  // the steps each trial paused at, in order
};

// Returns the parameters of the new trial in a move.
Json explore(const Problem& problem, const History& history, const RungTable& table,
             const Move& move) {
  Result<Space> space = Space::make(problem.parameters);
  CHECK(space.ok(), "the space was searched before");
  // Independent of Population::draws(), which chose the parent.
  const std::uint64_t key =
      mix_keys(draw_key(problem.algorithm.seed, Purpose::kExplore), history.trials.size());
  Random random(key);
  const auto parent = space->read(history.trials[static_cast<std::size_t>(*move.parent)]);
  if (problem.algorithm.name == api::AlgorithmKind::kPb2) {
    const auto chosen = choose_by_bandit(*space, table, history, move.rung, random);
    if (chosen) return space->write(*chosen);
  }
  // If the parent's parameters belong to another space, draw from the prior.
  if (!parent) return space->write(space->draw(random));
  return space->write(
      perturb(*space, problem.parameters, *parent, problem.algorithm.resample_probability, random));
}

}  // namespace

std::vector<std::int64_t> population_ladder(const Problem& problem) {
  std::vector<std::int64_t> out;
  if (is_schedule(problem)) {
    for (const api::ScheduleLeg& leg : problem.algorithm.legs) out.push_back(leg.until_step);
    if (out.empty()) out.push_back(problem.resource.max);
    return out;
  }
  const std::int64_t interval = interval_of(problem);
  for (std::int64_t step = interval; step < problem.resource.max; step += interval) {
    out.push_back(step);
  }
  out.push_back(problem.resource.max);
  return out;
}

bool population_pauses(const Problem& problem) { return population_ladder(problem).size() > 1; }

std::vector<Stage> first_members(const Problem& problem, const History& history, std::size_t n) {
  Stage first{.until_step = population_ladder(problem).front()};
  if (is_schedule(problem) && !problem.algorithm.legs.empty()) {
    first.seed = problem.algorithm.legs.front().seed;
  }
  std::vector<Stage> out(n, first);
  if (!population_pauses(problem)) return out;
  const std::vector<std::int64_t> failed = Population(problem, history).failed_at_start();
  // The first of the new trials succeed members that failed before any checkpoint existed.
  for (std::size_t i = 0; i < std::min(n, failed.size()); ++i) out[i].replaces = failed[i];
  return out;
}

std::int64_t trials_missing(const Problem& problem, const History& history) {
  if (!api::replaces_trials(problem.algorithm.name)) {
    if (problem.max_trials <= 0) return std::numeric_limits<std::int64_t>::max();
    return problem.max_trials - static_cast<std::int64_t>(history.trials.size());
  }
  if (!population_pauses(problem)) {
    return members_wanted(problem) - static_cast<std::int64_t>(history.trials.size());
  }
  const Population population(problem, history);
  // Members in failed_at_start() have begun, and each needs a successor that begins at step 0
  // again.
  return std::max<std::int64_t>(0, members_wanted(problem) - population.begun()) +
         static_cast<std::int64_t>(population.failed_at_start().size());
}

std::optional<Promotion> next_to_resume(const Problem& problem, const History& history, bool last) {
  if (!last) return std::nullopt;  // the population comes first
  const Population population(problem, history);
  const std::optional<Move> move = population.next_move();
  if (!move || move->parent) return std::nullopt;
  Stage next = history.stages[static_cast<std::size_t>(move->trial)];
  next.rung = move->rung;
  next.until_step = population.table().step(move->rung);
  return Promotion{move->trial, next, move->reason};
}

std::optional<Replacement> next_replacement(const Problem& problem, const History& history,
                                            bool last) {
  if (!last || !api::replaces_trials(problem.algorithm.name) || !population_pauses(problem)) {
    return std::nullopt;
  }
  const Population population(problem, history);
  const std::optional<Move> move = population.next_move();
  if (!move || !move->parent) return std::nullopt;
  const RungTable& table = population.table();
  Replacement out;
  out.trial = move->trial;
  out.reason = move->reason;
  // The new trial trains over the interval that ends at move->rung, from the checkpoint at its
  // beginning. A move with a parent never leads to rung 0, so a rung before it exists.
  out.stage = {.bracket = move->rung, .rung = move->rung, .until_step = table.step(move->rung)};
  out.stage.parent = Origin{*move->parent, table.step(move->rung - 1)};
  out.stage.replaces = move->trial;
  if (is_schedule(problem)) {
    const auto& leg = problem.algorithm.legs[static_cast<std::size_t>(move->rung)];
    out.parameters = leg.parameters;
    out.stage.seed = leg.seed;
  } else {
    out.parameters = explore(problem, history, table, *move);
  }
  return out;
}

}  // namespace fettle::search
