// Outcomes: the fold over the history that the gp sampler keeps: which trials ended, which are
// pending, and the prefixes of the history that hyperparameters are fitted to (fit_schedule.h).
//
// Invariant: a function of the trials and events it was given, in their order. Trials without a
// point are passed over. Not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "search/ranking.h"
#include "search/search.h"
#include "search/space.h"

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
    Eigen::VectorXd targets;           // of `fitted`
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

  // Targets of some ended trials, from all that have ended by now; lower is better.
  Eigen::VectorXd targets(const std::vector<std::int64_t>& trials);

 private:
  std::vector<double> target_of_each();
  Prefix prefix();
  std::vector<std::int64_t> select(const std::vector<std::int64_t>& trials, std::size_t most);

  Ranking ranking_;
  std::vector<Point> points_;  // by trial; empty where it is not of the space
  std::vector<bool> has_ended_;
  std::vector<std::int64_t> ended_;
  std::set<std::int64_t> pending_;
  std::int64_t version_ = 0;
  std::optional<double> best_;
  std::int64_t stagnation_ = 0;
  std::int64_t next_fit_ = 1;
  Prefix last_fit_;
  Prefix anchor_;
};

}  // namespace fettle::search::gp
