// Auto: resolves the algorithm `auto` from the space, the objectives, the budget and the
// parallelism, and gives the reason in words. If trials have steps and the Study sets no rule, it
// first decides whether every trial runs to its end (docs/decisions/0009-learning-curves.md). Pure;
// usable from any thread.
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
// is slow, and TPE is as good.
bool is_worth_gp(const Problem& problem, const Space& space);

// The facts that decide whether saving steps is possible and worthwhile.
struct Fidelity {
  bool resumes = false;      // a trial that pauses resumes from its checkpoint
  bool limits_work = false;  // the budget is time or GPU-hours, not only a number of trials
  bool few_trials = false;   // at most kFewTrials trials
};

// Up to this number of trials, running all of them to their end costs no more than a search that
// saves steps needs to become as good.
inline constexpr std::int64_t kFewTrials = 25;

// Settles what `auto` does about steps: puts `bohb` or an early-stopping rule into the problem if
// that pays, and gives the reason in problem.fidelity. Keeps an algorithm or a rule that was set;
// the rule "none" is removed and nothing else changes.
void settle_fidelity(Problem& problem, const Fidelity& fidelity);

Choice choose_algorithm(const Problem& problem, const Space& space);

}  // namespace fettle::search
