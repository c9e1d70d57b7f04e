// Outcomes: the fold over the history that the gp sampler keeps: which trials ended, which are
// pending, and the prefixes of the history that hyperparameters are fitted to (fit_schedule.h).
//
// Two or three objectives are targets of their own, one column each; of more, the front a trial is
// on is the only target.
// Invariant: a function of the trials and events it was given, in their order. Trials without a
// point are passed over. Not synchronised.
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

// Trials that a model rests on at most; of more, the better half and a spread of the others.
inline constexpr std::size_t kMostModelled = 384;
// And that hyperparameters are fitted to at most.
inline constexpr std::size_t kMostFitted = 192;

class Outcomes {
 public:
  explicit Outcomes(const std::vector<api::Objective>& objectives);

  void add_trial(const Point* point);
  void remove_trial();  // the newest, which is pending
  void add_event(const Event& event);

  // Trials as they were when some number of them had ended.
  struct Prefix {
    std::int64_t count = 0;            // how many had
    std::vector<std::int64_t> trials;  // those a model rests on, in the order of ending
    std::vector<std::int64_t> fitted;  // those to fit to
    std::vector<std::int64_t> valued;  // of `fitted`, those with targets
    Eigen::MatrixXd targets;           // of `valued`
    Eigen::VectorXd walls;             // of `fitted`; empty where none was infeasible
  };
  const Prefix& last_fit() const { return last_fit_; }
  const Prefix& anchor() const { return anchor_; }

  const Point& point(std::int64_t trial) const { return points_[static_cast<std::size_t>(trial)]; }
  // In the order in which they ended first.
  const std::vector<std::int64_t>& ended() const { return ended_; }
  const std::set<std::int64_t>& pending() const { return pending_; }
  // Changes with everything that is learnt about a trial's end.
  std::int64_t version() const { return version_; }

  // How many trials ended since the best one did.
  std::int64_t stagnation() const { return stagnation_; }

  // Of some ended trials those that have targets: the feasible ones; while there are none, all.
  std::vector<std::int64_t> valued(const std::vector<std::int64_t>& trials) const;
  // 1 for an infeasible trial, -1 for another; nothing where no trial was infeasible.
  Eigen::VectorXd walls(const std::vector<std::int64_t>& trials) const;

  // How many columns targets() have.
  std::size_t columns() const { return rankings_.empty() ? 1 : rankings_.size(); }
  // Targets of some valued trials, from all that have ended by now; lower is better.
  Eigen::MatrixXd targets(const std::vector<std::int64_t>& trials);
  // What a target of the first objective means in its own units, and turned as the user sees it;
  // nothing where no trial has a result or only fronts are modelled.
  std::optional<double> value_of(double target);
  // What lies between the best result and the third quartile; nothing with several objectives, or
  // where either has no result.
  std::optional<double> spread();

 private:
  struct Column {
    std::vector<std::int64_t> order;  // best first
    std::vector<double> targets;
    std::vector<double> losses;  // of those that have one, the first ones
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

  double sign_ = 1;  // -1 where the first objective is maximised
  std::size_t objectives_ = 1;
  Ranking ranking_;                // by all objectives
  std::vector<Ranking> rankings_;  // by each of two or three objectives; else empty
  std::vector<Point> points_;      // by trial; empty where it is not of the space
  std::vector<bool> has_ended_;
  std::set<std::int64_t> infeasible_;
  std::vector<std::int64_t> ended_;
  std::set<std::int64_t> pending_;
  std::int64_t version_ = 0;
  Column first_column_;
  std::int64_t first_version_ = -1;  // of the outcomes it is of
  std::vector<Losses> best_;         // not dominated
  std::int64_t stagnation_ = 0;
  std::int64_t next_fit_ = 1;
  Prefix last_fit_;
  Prefix anchor_;
};

}  // namespace fettle::search::gp
