// What the algorithm `auto` stands for: a choice by space, objectives, budget and parallelism, with
// the reason in words; and before that, where trials have steps and the Study sets no rule, whether
// all of them run to their end (docs/decisions/0009-learning-curves.md). Pure; usable from any
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

struct Choice {
  api::AlgorithmKind algorithm = api::AlgorithmKind::kAuto;
  std::string reason;  // completes "..., because "
};

// Whether a Gaussian process is worth its cost. With too many parameters, conditions or trials it
// is slow, and TPE as good.
bool is_worth_gp(const Problem& problem, const Space& space);

// What decides whether steps can be saved, and are worth it.
struct Fidelity {
  bool resumes = false;      // a trial that pauses resumes from its checkpoint
  bool limits_work = false;  // the budget is time or GPU-hours, not only a number of trials
  bool few_trials = false;   // at most kFewTrials of them
};

// Up to this many trials, running all to their end costs no more than a search that saves steps
// needs to become as good.
inline constexpr std::int64_t kFewTrials = 25;

// Settles what `auto` does about steps: puts `bohb`, or a rule of early stopping, into the problem
// where that pays, and says why in problem.fidelity. An algorithm or a rule that was set stays as
// it is; the rule "none" is taken out, and that is all.
void settle_fidelity(Problem& problem, const Fidelity& fidelity);

Choice choose_algorithm(const Problem& problem, const Space& space);

}  // namespace fettle::search
