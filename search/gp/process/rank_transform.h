// RankTransform: transforms outcomes of trials into targets that a Gaussian process can model.
//
// The model must locate good trials, but outcomes may be anything: losses over decades, plateaus,
// crashes, outliers of 1e12. So (after Vizier's half-rank warp, Song et al. 2024) the better half
// keeps its values, scaled to match a normal's lower half and with steps between neighbours of at
// most kLongestStep. The worse half, with all trials that have no comparable value, counts only by
// rank, as quantiles of a normal. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fettle::search::gp {

// A trial's place in the order of the ended trials.
struct Ranked {
  std::optional<double> loss;  // finite; nullopt if only the rank is known
  bool tied = false;           // with the previous one
};

// In standard deviations.
inline constexpr double kLongestStep = 2;

// `order`: best first, trials with a loss before trials without. Returns targets in the same order,
// lower is better, with mean 0 and variance 1 (all 0 if all are tied). `kept`: how many keep their
// values, if more than half.
std::vector<double> rank_transform(const std::vector<Ranked>& order, std::size_t kept = 0);

// Returns the loss that a target stands for. `targets` and `losses` are the output and input of
// rank_transform(), best first; only the first losses.size() targets count, at least one. Linear
// between neighbours; beyond the best, with the mean slope from the best to the middle one; never
// worse than the worst.
double inverse_rank_transform(const std::vector<double>& targets, const std::vector<double>& losses,
                              double target);

}  // namespace fettle::search::gp
