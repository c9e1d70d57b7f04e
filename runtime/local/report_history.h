// The learning curve inside a Report: at most kMaxHistoryPoints points, whatever the number of
// steps, dense where curves bend (early) and sparse later. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "api/trial.h"

namespace fettle::local {

inline constexpr std::size_t kMaxHistoryPoints = 50;
// An upper bound of what one metric takes as JSON: name, quotes, colon, comma and the digits.
std::size_t metric_bytes(const std::string& name);

// Adds `point` to `history`, which is ascending by step and stays so.
//
// A point at the newest step is merged into it. A point at an earlier step means that training went
// back (to a checkpoint, or to the start): the points from there on are dropped first.
// Beyond the bounds (kMaxHistoryPoints, `most_bytes` of JSON) the point whose neighbours lie
// closest together on a logarithmic scale of steps goes. The first and the newest point stay, and
// those at `rungs` (ascending) too: if the rungs alone are too many, the oldest of them go.
void add_history_point(std::vector<api::HistoryPoint>& history, api::HistoryPoint point,
                       const std::vector<std::int64_t>& rungs, std::size_t most_bytes);

}  // namespace fettle::local
