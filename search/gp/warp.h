// Warp: outcomes of trials into targets that a Gaussian process can model.
//
// What matters is where the good ones lie, and outcomes are anything: losses over decades,
// plateaus, crashes, outliers of 1e12. So (after Vizier's half-rank warp, Song et al. 2024) the
// better half keeps its values, scaled to match a normal's lower half and with no step between
// neighbours longer than kLongestStep; the worse half, with all trials that have no comparable
// value, only counts by rank, as quantiles of a normal. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fettle::search::gp {

// The place of a trial among those that ended.
struct Ranked {
  std::optional<double> loss;  // finite; nothing where only the rank is known
  bool tied = false;           // with the one before it
};

// In standard deviations.
inline constexpr double kLongestStep = 2;

// `order`: best first, those with a loss before those without. Targets in the same order, lower is
// better, of mean 0 and variance 1 (all 0 if all are tied). `kept`: how many keep their values if
// that is more than half.
std::vector<double> warp(const std::vector<Ranked>& order, std::size_t kept = 0);

// The loss that a target stands for. `targets` and `losses` are what warp() made of what, best
// first; of the targets count as many as there are losses, at least one. Straight between
// neighbours and, beyond the best, as steep as over the better half; nothing is worse than the
// worst.
double unwarp(const std::vector<double>& targets, const std::vector<double>& losses, double target);

}  // namespace fettle::search::gp
