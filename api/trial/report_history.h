// The learning curve inside a Report: at most kMaxHistoryPoints points, whatever the number of
// steps, dense where curves bend (early) and sparse later. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/study/study.h"
#include "api/trial/trial.h"

namespace fettle::api {

// Returns the bytes of JSON left for the history in a Report of at most 4 KiB.
std::size_t history_room(const Report& report);

// Points that a curve must keep, because decisions and results are read from them.
struct CurveNeeds {
  std::vector<std::int64_t> rungs;    // ascending
  std::vector<Objective> objectives;  // the best and the newest value of each
};

// Drops points of `history`, which is ascending by step, until it has at most kMaxHistoryPoints and
// takes at most `most_bytes` of JSON. The point whose neighbours lie closest together on a
// logarithmic scale of steps goes first. The first point, the newest and the points in `needs`
// stay. If these alone are too much, the oldest points that no objective needs are dropped, then
// the oldest of all.
void thin_history(std::vector<HistoryPoint>& history, const CurveNeeds& needs,
                  std::size_t most_bytes);

// Adds `point` to `history`, which is ascending by step and stays so, and thins it.
//
// A point at the newest step is merged into it. A point at an earlier step means that training went
// back (to a checkpoint, or to the start): the points from there on are dropped first.
void add_history_point(std::vector<HistoryPoint>& history, HistoryPoint point,
                       const CurveNeeds& needs, std::size_t most_bytes);

}  // namespace fettle::api
