// Model: what the outcomes so far and the pending trials say: a Gaussian process for each target,
// and one for where trials are infeasible, if some were; candidates with the predictions there, and
// the improvement to look for.
//
// Invariant: a function of the outcomes, whatever it was asked before: hyperparameters are those of
// a prefix of the history (fit_schedule.h), pending trials are rows that come and go. Not
// synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "search/gp/candidates.h"
#include "search/gp/fit_memo.h"
#include "search/gp/improvement.h"
#include "search/gp/likelihood.h"
#include "search/gp/outcomes.h"
#include "search/gp/posterior.h"
#include "search/space/space.h"

namespace fettle::search::gp {

// Hyperparameters for each process, fitted when the schedule says so, and remembered. `memo`: where
// fits of other samplers over the same space are found as well; may be null.
class Fits {
 public:
  Fits(const Space& space, const Axes& axes, std::shared_ptr<FitMemo> memo = nullptr)
      : space_(space), axes_(axes), memo_(std::move(memo)) {}
  const std::vector<Hyperparameters>& current(const Outcomes& outcomes);
  void reset();

 private:
  struct Fit {
    std::int64_t count = 0;  // outcomes that it rests on
    std::vector<Hyperparameters> of_process;
  };
  // `warm`: an earlier prefix's fit to start from as well; nullptr = from the priors alone.
  Fit fit(const Outcomes& outcomes, const Outcomes::Prefix& prefix, const Fit* warm) const;
  Fit remembered(const Outcomes& outcomes, const Outcomes::Prefix& prefix, const Fit* warm) const;

  const Space& space_;
  const Axes& axes_;
  std::shared_ptr<FitMemo> memo_;
  std::optional<Fit> anchor_;
  std::optional<Fit> last_;
};

class Model {
 public:
  // Of all that `outcomes` holds now, without pending trials. Keeps references to `space`.
  Model(const Space& space, const Axes& axes, Outcomes& outcomes,
        const std::vector<Hyperparameters>& hyperparameters);

  std::int64_t version() const { return version_; }  // of the outcomes
  // One a target, then the one of walls.
  const std::vector<Posterior>& posteriors() const { return posteriors_; }

  // Up to `most` trials that candidates should be near to, best first: those with the lowest means,
  // or those on the front of the means.
  std::vector<std::int64_t> best_trials(std::size_t most) const;

  // The points that pools() predict at. Once, before pending trials are set.
  void set_candidates(std::vector<Candidate> candidates);
  const std::vector<Candidate>& candidates() const { return candidates_; }
  const std::vector<Pool>& pools() const { return pools_; }

  // Makes the pending trials those of `outcomes`; keeps what they share with the last ones.
  void set_pending(const Outcomes& outcomes);
  // The lowest mean of the first target at a trial that none dominates.
  double best() const { return means_[front_.front()][0]; }
  // The mean of the first target at a trial that has one.
  double mean_of(std::int64_t trial) const;
  // Whether results speak for more noise than any fit finds.
  bool is_noisy() const;
  std::size_t pending() const { return pending_.size(); }

  // On what is known, pending trials taken to end where they are expected to, so that no worker is
  // sent after what another one fetches. `margin`: what the best is lowered by for each of them, in
  // standard deviations. It and the noise that results speak for count where there is one target.
  Improvement improvement(double margin) const;
  // Of one target, on `best` and the pending trials whose points are admitted.
  Improvement improvement_on(double best, double margin, const Outcomes& outcomes,
                             const std::function<bool(const Point&)>& admits) const;

 private:
  Improvement improvement_on(double best, double margin) const;
  void add(const Axes& axes, const Outcomes& outcomes, const Hyperparameters& hyperparameters,
           std::size_t first, const std::vector<std::int64_t>& trials,
           const Eigen::VectorXd& targets);
  Losses means_at(const Inputs& inputs, Index row) const;

  const Space& space_;
  std::int64_t version_ = 0;
  std::vector<std::int64_t> trials_;  // that have targets
  std::vector<Posterior> posteriors_;
  std::vector<Index> observed_;     // rows of each that are no pending trials
  std::size_t targets_ = 0;         // processes that are of targets
  std::vector<Losses> means_;       // of trials_
  std::vector<std::size_t> front_;  // places in means_ of those that none dominates
  std::vector<Candidate> candidates_;
  std::vector<Pool> pools_;
  std::vector<std::int64_t> pending_;
  std::vector<Losses> pending_means_;
};

}  // namespace fettle::search::gp
