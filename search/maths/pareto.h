// Pareto fronts of several objectives: dominance, crowding and hypervolume.
//
// Losses: one number per objective, all to be minimised, finite. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace fettle::search {

using Losses = std::vector<double>;

// Whether `a` is at least as good in all objectives and better in some. Both have the same length.
bool dominates(const Losses& a, const Losses& b);

// The front of each point: 0 = dominated by none, 1 = dominated only by points of front 0, and so
// on (Zhang et al. 2015, "efficient non-dominated sort"). Equal losses are in one front.
std::vector<std::size_t> front_numbers(const std::vector<Losses>& points);

// Crowding distance within one front (Deb et al. 2002): the sum over the objectives of the gap
// between both neighbours as a share of the front's range; infinite at either end.
std::vector<double> crowding_distances(const std::vector<Losses>& front);

// The volume that `points` dominate and that dominates `reference`: a sweep for two objectives, the
// WFG algorithm (While et al. 2012) for more. Points that are dominated, or not better than the
// reference in every objective, add nothing. Returns nullopt if the work exceeds
// kMaxHypervolumeWork, or if the volume is not finite.
std::optional<double> hypervolume(std::vector<Losses> points, const Losses& reference);

// With three or more objectives: comparisons of two points before hypervolume() gives up, about a
// tenth of a second. A hundred points of four objectives stay well below it.
inline constexpr std::size_t kMaxHypervolumeWork = 10'000'000;

}  // namespace fettle::search
