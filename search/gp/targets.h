// Targets: the state of the gp sampler, from which the targets of its processes come: ended trials,
// pending trials, and the prefixes of the history to which hyperparameters are fitted
// (fit_schedule.h).
//
// Two or three objectives have one column of targets each. With more objectives, the only target is
// the front of a trial. Invariant: a function of the trials and events it was given, in their
// order. Trials without a point are ignored. Not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "search/maths/pareto.h"
#include "search/maths/ranking.h"
#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search::gp {

// Maximum number of trials in a model. If there are more, half are the best and half an even spread
// of the others.
inline constexpr std::size_t kMostModelled = 384;
// At most this many trials are used to fit hyperparameters.
inline constexpr std::size_t kMostFitted = 192;

class Targets {
 public:
  explicit Targets(const std::vector<api::Objective>& objectives);

  void add_trial(const Point* point);
  void remove_trial();  // removes the newest trial, which is pending
  void add_event(const Event& event);

  // The trials at the time when `count` of them had ended.
  struct Prefix {
    std::int64_t count = 0;            // number of ended trials
    std::vector<std::int64_t> trials;  // trials that the model uses, in the order of ending
    std::vector<std::int64_t> fitted;  // trials for the fit
    std::vector<std::int64_t> valued;  // trials of `fitted` with targets
    Eigen::MatrixXd targets;           // one row for each of `valued`
    Eigen::VectorXd infeasibility;     // one for each of `fitted`; empty if none was infeasible
  };
  const Prefix& last_fit() const { return last_fit_; }
  const Prefix& anchor() const { return anchor_; }

  const Point& point(std::int64_t trial) const { return points_[static_cast<std::size_t>(trial)]; }
  // Ended trials, in the order in which they first ended.
  const std::vector<std::int64_t>& ended() const { return ended_; }
  const std::set<std::int64_t>& pending() const { return pending_; }
  // Changes with every fact about a trial's end.
  std::int64_t version() const { return version_; }

  // The number of trials that ended since the best one did.
  std::int64_t stagnation() const { return stagnation_; }

  // Returns the trials that have targets: the feasible trials, or all if none is feasible.
  std::vector<std::int64_t> valued(const std::vector<std::int64_t>& trials) const;
  // 1 for an infeasible trial, -1 for a feasible one; empty if no trial was infeasible.
  Eigen::VectorXd infeasibility(const std::vector<std::int64_t>& trials) const;

  // The number of columns of values().
  std::size_t columns() const { return rankings_.empty() ? 1 : rankings_.size(); }
  // Returns the targets of some valued trials, computed from all that have ended by now; lower is
  // better.
  Eigen::MatrixXd values(const std::vector<std::int64_t>& trials);
  // Converts a target of the first objective to the user's units and direction; nullopt if no trial
  // has a result or only fronts are modelled.
  std::optional<double> value_of(double target);
  // The gap between the best result and the third quartile; nullopt with several objectives, or if
  // either has no result.
  std::optional<double> spread();

 private:
  struct Column {
    std::vector<std::int64_t> order;  // best first
    std::vector<double> targets;
    std::vector<double> losses;  // losses of the first trials in `order`; the others have none
  };
  Ranking& ranking_of(std::size_t column) {
    return rankings_.empty() ? ranking_ : rankings_[column];
  }
  void add_end(std::int64_t trial);
  void keep_prefix();
  Column column(std::size_t index);
  const Column& first_column();
  bool improves(std::int64_t trial);
  Prefix prefix();
  std::vector<std::int64_t> select(const std::vector<std::int64_t>& trials, std::size_t most);

  double sign_ = 1;  // -1 if the first objective is maximised
  std::size_t objectives_ = 1;
  Ranking ranking_;                // by all objectives
  std::vector<Ranking> rankings_;  // by each of two or three objectives; else empty
  std::vector<Point> points_;      // by trial; empty if outside the space
  std::vector<bool> has_ended_;
  std::set<std::int64_t> infeasible_;
  std::vector<std::int64_t> ended_;
  std::set<std::int64_t> pending_;
  std::int64_t version_ = 0;
  Column first_column_;
  std::int64_t first_version_ = -1;  // version of the outcomes in first_column_
  std::vector<Losses> best_;         // non-dominated losses
  std::int64_t stagnation_ = 0;
  std::int64_t next_fit_ = 1;
  Prefix last_fit_;
  Prefix anchor_;
};

}  // namespace fettle::search::gp
