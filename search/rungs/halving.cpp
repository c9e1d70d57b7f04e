#include "search/rungs/halving.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "search/rungs/rung_table.h"
#include "search/rungs/twins.h"

namespace fettle::search {
namespace {

// With more rungs, neighbours would be closer than the differences of their values.
constexpr std::size_t kMaxRungs = 100;
// Bounds of trust: every bracket keeps a share, however well or badly the lowest rungs predict.
constexpr double kLeastTrust = 0.05;
constexpr double kMostTrust = 0.95;
// This share of the work goes to trials that no rung decides on. If early values predict the end,
// it costs little. If they mislead, these trials show it, since early values did not select them,
// and the search then relies on them.
constexpr double kHedge = 0.25;

double reduction_factor(const Problem& problem) {
  if (api::traits(problem.algorithm.name).halves) return problem.algorithm.reduction_factor;
  return problem.early_stopping->reduction_factor;
}

// Returns the expected work, in steps, of a trial that begins at `rung`: its own, and its share of
// the cost of the 1/eta trials promoted on every rung above.
double work_of(const std::vector<std::int64_t>& steps, std::size_t rung, double eta) {
  auto work = static_cast<double>(steps[rung]);
  double share = 1;
  for (std::size_t next = rung + 1; next < steps.size(); ++next) {
    share /= eta;
    work += share * static_cast<double>(steps[next] - steps[next - 1]);
  }
  return work;
}

// Returns Hyperband's relative numbers of trials for the brackets.
std::vector<double> shares_of_equal_work(const std::vector<std::int64_t>& steps, double eta) {
  std::vector<double> out;
  const auto rungs = static_cast<std::int64_t>(steps.size());
  for (std::int64_t rung = 0; rung < rungs; ++rung) {
    out.push_back(static_cast<double>(bracket_size(rung, rungs, eta)));
  }
  return out;
}

// Returns the same by trust, for all work but the hedge: rung 0 gets the share by which it is
// trusted, rung 1 the share of the rest by which it is trusted, and so on; the last bracket gets
// the remainder. A bracket has as many trials as its work covers: its share over work_of() one of
// them.
std::vector<double> shares_by_trust(const RungTable& table, const std::vector<std::int64_t>& steps,
                                    double eta) {
  std::vector<double> out;
  double rest = 1 - kHedge;
  for (std::size_t rung = 0; rung < steps.size(); ++rung) {
    const bool last = rung + 1 == steps.size();
    const double trust = table.trust(static_cast<std::int64_t>(rung));
    const double share = last ? 1 : std::clamp(trust, kLeastTrust, kMostTrust);
    out.push_back((rest * share + (last ? kHedge : 0)) / work_of(steps, rung, eta));
    rest *= 1 - share;
  }
  return out;
}

// Returns the next `n` brackets of a sequence that follows the shares as closely as possible. By
// Webster's rule a small share comes when half a member is due, so the hedge does not come last.
std::vector<std::size_t> in_proportion(const std::vector<double>& shares,
                                       const std::vector<Stage>& stages, std::size_t n) {
  std::vector<double> taken(shares.size(), 0);
  for (const Stage& stage : stages) {
    if (stage.is_replicate) continue;
    const auto bracket = static_cast<std::size_t>(stage.bracket);
    // A bracket beyond the ladder counts as its last one.
    taken[std::min(bracket, taken.size() - 1)] += 1;
  }
  std::vector<std::size_t> out;
  while (out.size() < n) {
    // The bracket whose next member is most overdue; a share of 0 is never due.
    std::size_t best = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      if ((taken[i] + 0.5) / shares[i] < (taken[best] + 0.5) / shares[best]) best = i;
    }
    taken[best] += 1;
    out.push_back(best);
  }
  return out;
}

// Returns the best trial that waits at `rung`, if it is among the best `places` that ever came
// there; trials that were promoted from it, or failed since, keep their places. `twins`: whether
// twins of promoted trials count (twins.h).
std::optional<Promotion> promote_from(const RungTable& table, const History& history,
                                      std::int64_t rung, std::size_t places, bool twins) {
  const std::vector<RungTable::Entry>& entries = table.at(rung);
  for (std::size_t i = 0; i < std::min(places, entries.size()); ++i) {
    const std::int64_t trial = entries[i].trial;
    const Stage& stage = history.stages[static_cast<std::size_t>(trial)];
    // A promoted trial keeps its entry here, but its stage has moved to a higher rung.
    const bool ready =
        stage.rung == rung && std::isfinite(entries[i].loss) && table.waits(trial, stage);
    if (!ready || (!twins && has_promoted_twin(table, history.stages, rung, trial))) continue;
    const Stage next{
        .bracket = stage.bracket, .rung = rung + 1, .until_step = table.step(rung + 1)};
    return Promotion{trial, next,
                     "rung " + std::to_string(rung) + " (step " + std::to_string(table.step(rung)) +
                         "): it is number " + std::to_string(i + 1) + " of " +
                         std::to_string(entries.size())};
  }
  return std::nullopt;
}

// Returns the silent trial that has come furthest, if it should resume: to the rung at which others
// first reported or, while that is unknown, as the only probe for it.
std::optional<Promotion> next_silent(const RungTable& table, const History& history) {
  std::optional<std::size_t> next;
  bool has_probe = false;
  for (std::size_t i = 0; i < history.stages.size(); ++i) {
    const auto trial = static_cast<std::int64_t>(i);
    const Stage& stage = history.stages[i];
    has_probe = has_probe || table.is_probe(trial, stage);
    if (!table.is_early(trial, stage)) continue;
    if (!next || stage.rung > history.stages[*next].rung) next = i;
  }
  if (!next) return std::nullopt;
  const Stage& stage = history.stages[*next];
  const bool is_known = stage.rung < table.first_rung();  // others have reported above this rung
  if (!is_known && has_probe) return std::nullopt;
  const std::string step = std::to_string(table.step(stage.rung));
  // is_early() ensures that a higher rung exists.
  return Promotion{
      static_cast<std::int64_t>(*next),
      {.bracket = stage.bracket, .rung = stage.rung + 1, .until_step = table.step(stage.rung + 1)},
      is_known ? "trials first report after step " + step
               : "it has reported nothing by step " + step + ", and probes for the first report"};
}

// Whether a probe failed without ever having had a value: is_probe() also holds for trials that are
// over.
bool has_failed_probe(const RungTable& table, const History& history) {
  for (std::size_t i = 0; i < history.stages.size(); ++i) {
    const auto trial = static_cast<std::int64_t>(i);
    const Stage& stage = history.stages[i];
    if (table.is_probe(trial, stage) && !table.runs(trial, stage)) return true;
  }
  return false;
}

}  // namespace

bool is_probing(const RungTable& table, const History& history) {
  bool found = false;
  for (std::size_t i = 0; i < history.stages.size(); ++i) {
    const auto trial = static_cast<std::int64_t>(i);
    const Stage& stage = history.stages[i];
    // Below first_rung() an early trial needs no probe: next_silent() sends it to that rung.
    found = found || table.is_probe(trial, stage) ||
            (table.is_early(trial, stage) && stage.rung >= table.first_rung());
  }
  return found && !has_failed_probe(table, history);
}

std::vector<std::int64_t> silent_for_good(const RungTable& table, const History& history) {
  if (!has_failed_probe(table, history)) return {};
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < history.stages.size(); ++i) {
    const auto trial = static_cast<std::int64_t>(i);
    const Stage& stage = history.stages[i];
    // Early trials below first_rung() still resume (next_silent()).
    if (table.is_early(trial, stage) && stage.rung >= table.first_rung()) out.push_back(trial);
  }
  return out;
}

bool halves(const Problem& problem) {
  if (problem.resource.min >= problem.resource.max) return false;
  if (api::traits(problem.algorithm.name).halves) return true;
  return problem.early_stopping && problem.early_stopping->promote;
}

std::vector<std::int64_t> rung_ladder(const api::Resource& resource, double reduction_factor) {
  std::vector<std::int64_t> out = {resource.max};
  const auto least = static_cast<double>(std::max<std::int64_t>(resource.min, 1));
  auto exact = static_cast<double>(resource.max);
  while (out.size() < kMaxRungs) {
    // Rungs that would round to the same step are passed over, however small the factor.
    exact = std::min(exact / reduction_factor, static_cast<double>(out.back()) - 0.51);
    // A little below `min` is still at it: 81/3/3/3/3 need not be 1 to the last bit.
    if (exact < least * (1 - 1e-9)) break;
    out.push_back(std::llround(exact));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::int64_t bracket_size(std::int64_t rung, std::int64_t rungs, double reduction_factor) {
  const std::int64_t above = rungs - 1 - rung;      // the paper's s
  const std::int64_t rounds = rungs / (above + 1);  // rounded down, as in Table 1
  return rounds * std::llround(std::pow(reduction_factor, static_cast<double>(above)));
}

std::vector<std::int64_t> halving_ladder(const Problem& problem) {
  return rung_ladder(problem.resource, reduction_factor(problem));
}

std::vector<Stage> halving_stages(const Problem& problem, const RungTable& table,
                                  const History& history, std::size_t n) {
  const std::vector<std::int64_t> steps = halving_ladder(problem);
  const double eta = reduction_factor(problem);
  std::vector<double> shares(steps.size(), 0);
  shares[0] = 1;  // asha: a single bracket
  if (problem.algorithm.name == api::AlgorithmKind::kHyperband) {
    shares = shares_of_equal_work(steps, eta);
  } else if (api::traits(problem.algorithm.name).halves) {
    shares = shares_by_trust(table, steps, eta);
  }
  // No trial begins at a rung where programs have not reported yet.
  const auto first = static_cast<std::size_t>(table.first_rung());
  for (std::size_t rung = 0; rung < first; ++rung) {
    shares[first] += std::exchange(shares[rung], 0);
  }
  std::vector<Stage> out;
  for (const std::size_t bracket : in_proportion(shares, history.stages, n)) {
    const auto rung = static_cast<std::int64_t>(bracket);
    out.push_back({.bracket = rung, .rung = rung, .until_step = steps[bracket]});
  }
  return out;
}

std::optional<Promotion> next_halving(const Problem& problem, const RungTable& table,
                                      const History& history, bool last) {
  if (auto promotion = next_silent(table, history)) return promotion;
  const double eta = reduction_factor(problem);
  // `places_of`: the number of a rung's entries to promote altogether.
  const auto promote = [&](auto&& places_of, bool twins) -> std::optional<Promotion> {
    for (std::int64_t rung = table.rungs() - 2; rung >= 0; --rung) {
      auto promotion = promote_from(table, history, rung, places_of(table.at(rung).size()), twins);
      if (promotion) return promotion;
    }
    return std::nullopt;
  };
  const auto share = [eta](std::size_t entries) {
    return static_cast<std::size_t>(std::floor(static_cast<double>(entries) / eta));
  };
  const bool all = problem.revision < 2;  // revision 1 promotes twins, too (docs/decisions/0066)
  if (auto promotion = promote(share, all)) return promotion;
  if (!last || table.any_runs(history.stages)) return std::nullopt;
  const auto at_least_one = [&](std::size_t entries) {
    return std::max<std::size_t>(1, share(entries));
  };
  if (auto promotion = promote(at_least_one, all)) return promotion;
  // The better trials have failed since. One trial at the end is enough.
  if (!table.at(table.rungs() - 1).empty()) return std::nullopt;
  return promote([](std::size_t entries) { return entries; }, /*twins=*/true);
}

}  // namespace fettle::search
