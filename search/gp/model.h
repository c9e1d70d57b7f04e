// Model: a Gaussian process for each target, given the outcomes so far and the pending trials, and
// one for feasibility, if some trials were infeasible; candidates with their predictions, and the
// improvement to maximise.
//
// Invariant: a function of the outcomes, independent of earlier calls: hyperparameters belong to a
// prefix of the history (fit_schedule.h), pending trials are rows that come and go. Not
// synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "search/gp/candidates.h"
#include "search/gp/improvement.h"
#include "search/gp/process/fit_memo.h"
#include "search/gp/process/likelihood.h"
#include "search/gp/process/posterior.h"
#include "search/gp/targets.h"
#include "search/space/space.h"

namespace fettle::search::gp {

// Hyperparameters for each process, fitted when the schedule says so, and remembered. `memo`: fits
// shared with other samplers over the same space; may be null.
class Fits {
 public:
  Fits(const Space& space, const Axes& axes, std::shared_ptr<FitMemo> memo = nullptr)
      : space_(space), axes_(axes), memo_(std::move(memo)) {}
  const std::vector<Hyperparameters>& current(const Targets& targets);
  void reset();

 private:
  struct Fit {
    std::int64_t count = 0;  // outcomes in the fit
    std::vector<Hyperparameters> of_process;
  };
  // `warm`: the fit of an earlier prefix, as a second start; nullptr = the priors alone.
  Fit fit(const Targets& targets, const Targets::Prefix& prefix, const Fit* warm) const;
  Fit remembered(const Targets& targets, const Targets::Prefix& prefix, const Fit* warm) const;

  const Space& space_;
  const Axes& axes_;
  std::shared_ptr<FitMemo> memo_;
  std::optional<Fit> anchor_;
  std::optional<Fit> last_;
};

class Model {
 public:
  // Models all present `targets`, without pending trials. Keeps references to `space`.
  Model(const Space& space, const Axes& axes, Targets& targets,
        const std::vector<Hyperparameters>& hyperparameters);

  std::int64_t version() const { return version_; }  // of the outcomes
  // One for each target, then the process of infeasibility.
  const std::vector<Posterior>& posteriors() const { return posteriors_; }

  // Returns up to `most` trials for candidates to be near to: with one target the lowest means,
  // best first; otherwise a spread over the front of the means.
  std::vector<std::int64_t> best_trials(std::size_t most) const;

  // Sets the points at which pools() predict. Call once, before pending trials are set.
  void set_candidates(std::vector<Candidate> candidates);
  const std::vector<Candidate>& candidates() const { return candidates_; }
  const std::vector<Pool>& pools() const { return pools_; }

  // Takes the pending trials from `targets`; keeps the rows of their common beginning with the
  // last call.
  void set_pending(const Targets& targets);
  // The lowest mean of the first target on the Pareto front.
  double best() const { return means_[front_.front()][0]; }
  // The mean of the first target at a trial that has one.
  double mean_of(std::int64_t trial) const;
  // Whether the results have more noise than any fit finds.
  bool is_noisy() const;
  std::size_t pending() const { return pending_.size(); }

  // Improvement on the known trials, with pending trials at their expected results, so that no two
  // workers are sent after the same gain. `margin`: lowers the best for each pending trial, in
  // standard deviations. It and the noise of the results count only with one target.
  Improvement improvement(double margin) const;
  // The same for one target, on `best` and the pending trials whose points are admitted.
  Improvement improvement_on(double best, double margin, const Targets& targets,
                             const std::function<bool(const Point&)>& admits) const;

 private:
  Improvement improvement_on(double best, double margin) const;
  void add(const Axes& axes, const Targets& targets, const Hyperparameters& hyperparameters,
           std::size_t first, const std::vector<std::int64_t>& trials,
           const Eigen::VectorXd& values);
  Losses means_at(const Inputs& inputs, Index row) const;

  const Space& space_;
  std::int64_t version_ = 0;
  std::vector<std::int64_t> trials_;  // trials with targets
  std::vector<Posterior> posteriors_;
  std::vector<Index> observed_;     // rows of each process without pending trials
  std::size_t target_count_ = 0;    // processes of targets
  std::vector<Losses> means_;       // of trials_
  std::vector<std::size_t> front_;  // indices into means_ of the Pareto front
  std::vector<Candidate> candidates_;
  std::vector<Pool> pools_;
  std::vector<std::int64_t> pending_;
  std::vector<Losses> pending_means_;
};

}  // namespace fettle::search::gp
