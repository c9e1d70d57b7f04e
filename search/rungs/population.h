// Populations: decides which trials continue and which are replaced in population based training
// (pbt: Jaderberg et al. 2017, arXiv 1711.09846; pb2: Parker-Holder et al. 2020, arXiv 2002.02518),
// and the replay of a schedule that such a search found.
//
// The members train in intervals of some steps and pause after each. Their values there are
// compared: one of the worst is replaced by a new trial that starts from the checkpoint of one of
// the best at the same step, with changed parameters; the others continue. The population
// is constant, and the whole of it costs what as many full trainings cost.
//
// A comparison is made at the lowest step that members are at, as soon as half of them, and at
// least two, have reached it. So no member waits for the slowest, and no member is ever more than
// one interval ahead. With fewer workers than members they take turns. A new trial may start late,
// when its parent is one interval further and the checkpoint it starts from is two old: so a member
// keeps the checkpoints of its newest three intervals (kKeptIntervals).
//
// Only the new trial records that it takes the place of another (Stage::replaces): one decision,
// one write. All of this is a pure function of problem and history; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace fettle::search {

inline constexpr std::int64_t kKeptIntervals = 3;

// A new trial in the place of another.
struct Replacement {
  std::int64_t trial = 0;  // the one that it replaces
  Json parameters = Json::object();
  Stage stage;         // of the new trial
  std::string reason;  // for people: "step 3: 0.71 is number 8 of 8"
};

// Returns the next replacement, if any. `last` as in next_promotion (promotion.h), which is called
// first and again after each; nullopt if trials of the algorithm do not replace others.
std::optional<Replacement> next_replacement(const Problem& problem, const History& history,
                                            bool last);

// Returns the number of trials that must begin at step 0 to complete the population; for other
// algorithms, the trials left in the budget.
std::int64_t trials_missing(const Problem& problem, const History& history);

// ---- For promotion.cpp, if trials replace others -----------------------------------------------

// Whether the training has an interval to pause at.
bool population_pauses(const Problem& problem);
// The steps of the ends of the intervals, ascending; the last one is resource.max.
std::vector<std::int64_t> population_ladder(const Problem& problem);
std::vector<Stage> first_members(const Problem& problem, const History& history, std::size_t n);
std::optional<Promotion> next_to_resume(const Problem& problem, const History& history, bool last);

}  // namespace fettle::search
