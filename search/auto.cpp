#include "search/auto.h"

#include <algorithm>
#include <cstdint>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "search/maths/ehvi.h"
#include "search/maths/sobol_sequence.h"

namespace fettle::search {
namespace {

using api::AlgorithmKind;

// Limits of a Gaussian process. Its cost grows with each parameter, but its advantage shrinks:
// beyond them TPE suggests in a fraction of the time, and a model of the whole space has little to
// gain.
constexpr std::size_t kMostGpParameters = 50;
constexpr std::size_t kMostGpBranches = 24;
constexpr std::int64_t kMostGpTrials = 2000;

std::string count(std::uint64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace

void settle_fidelity(Problem& problem, const Fidelity& fidelity) {
  // The rule "none" is a setting, too: is_set stays true after the rule is removed.
  const bool is_set = problem.early_stopping.has_value();
  if (is_set && problem.early_stopping->name == api::StoppingKind::kNone) {
    problem.early_stopping.reset();
  }
  const bool has_steps = problem.resource.max > problem.resource.min;
  if (problem.algorithm.name != AlgorithmKind::kAuto || is_set || !has_steps) return;
  if (problem.objectives.size() > 1) {
    problem.fidelity =
        "every trial runs to its end, since one objective on the way tells little "
        "of several at the end";
  } else if (problem.algorithm.cost_aware) {
    problem.fidelity = "every trial runs to its end, since what whole trials cost is counted";
  } else if (!fidelity.limits_work) {
    problem.fidelity = "every trial runs to its end, since the budget counts trials, not time";
  } else if (fidelity.few_trials) {
    problem.fidelity = "every trial runs to its end, since " + std::to_string(problem.max_trials) +
                       " are few enough for that";
  } else if (fidelity.resumes) {
    problem.algorithm.name = AlgorithmKind::kBohb;
    problem.fidelity =
        "the budget limits the work, and trials can pause and resume from their "
        "checkpoints";
  } else {
    problem.early_stopping.emplace();
    problem.early_stopping->name = api::StoppingKind::kAsha;
    problem.fidelity =
        "asha stops poor trials, since the budget limits the work and nothing says "
        "that a trial could pause and resume";
  }
}

bool is_worth_gp(const Problem& problem, const Space& space) {
  return space.dimensions() <= kMostGpParameters && space.groups().size() - 1 <= kMostGpBranches &&
         problem.max_trials <= kMostGpTrials;
}

Choice choose_algorithm(const Problem& problem, const Space& space) {
  // 0: no limit is known, and no condition on the budget below holds.
  const std::int64_t budget = std::max<std::int64_t>(problem.max_trials, 0);
  const auto trials = static_cast<std::uint64_t>(budget);
  const std::size_t parameters = space.dimensions();
  const std::size_t branches = space.groups().size() - 1;  // the first one has no condition
  if (budget > 0 && space.size() <= trials) {
    return {AlgorithmKind::kGrid,
            "the budget of " + std::to_string(budget) + " trials covers all of them"};
  }
  if (budget > 1 && problem.parallelism > budget / 2) {
    const bool sobol = parameters <= SobolSequence::kMaxDimensions;
    return {sobol ? AlgorithmKind::kSobol : AlgorithmKind::kRandom,
            std::to_string(problem.parallelism) + " of " + std::to_string(budget) +
                " trials run at once, so that there is little to learn from"};
  }
  const std::size_t objectives = problem.objectives.size();
  if (objectives > kMostEhviObjectives) {
    return {AlgorithmKind::kTpe, count(objectives, "objective") + " are more than the " +
                                     std::to_string(kMostEhviObjectives) + " that ehvi takes"};
  }
  const auto beyond_gp = [](const std::string& what, std::uint64_t most) {
    return Choice{AlgorithmKind::kTpe, what + " are more than the " + std::to_string(most) +
                                           " up to which gp is worth its cost"};
  };
  if (parameters > kMostGpParameters) {
    return beyond_gp(count(parameters, "parameter"), kMostGpParameters);
  }
  if (branches > kMostGpBranches) return beyond_gp(count(branches, "condition"), kMostGpBranches);
  if (budget > kMostGpTrials) return beyond_gp(count(trials, "trial"), kMostGpTrials);
  std::string reason = "it needs the fewest trials for " + count(parameters, "parameter");
  if (objectives > 1) reason += ", " + count(objectives, "objective");
  if (budget > 0) reason += " and a budget of " + count(trials, "trial");
  if (objectives > 1) return {AlgorithmKind::kEhvi, reason};
  // The portfolio does not take costs into account.
  return {problem.algorithm.cost_aware ? AlgorithmKind::kGp : AlgorithmKind::kPortfolio, reason};
}

}  // namespace fettle::search
