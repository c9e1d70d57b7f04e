// CmaEs: the search distribution of CMA-ES (Hansen 2016, "The CMA evolution strategy: a tutorial",
// with negative weights) over the unit interval of each numeric parameter, with the margin of
// Hamano et al. 2022 ("CMA-ES with margin") where its values are discrete.
//
// A position has one number an axis: a place on the unit interval (dimension.h), for discrete axes
// any number, whose nearest cell is meant. The margin stretches the distribution along a discrete
// axis, so that the cells beside the mean's keep a small probability however narrow it gets.
// Invariant: draws and updates are functions of the state and of what is handed over. A value type;
// not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "search/space/dimension.h"

namespace fettle::search {

// One position of a generation. Ties: a loss equal to the one before shares its weight with it.
struct RankedPosition {
  Eigen::VectorXd position;
  bool ties_with_previous = false;
};

class CmaEs {
 public:
  // The normal to begin with: mean, standard deviation, shape.
  struct Start {
    Eigen::VectorXd mean;
    double sigma = 0;
    Eigen::MatrixXd covariance;
  };

  // The fewest positions in a generation, and the usual number for this number of parameters.
  static constexpr std::int64_t kSmallestPopulation = 4;
  static std::int64_t usual_population(std::size_t parameters);

  // `axes`, at least one, each with two values or more, outlive this.
  CmaEs(std::vector<const Dimension*> axes, Start start);

  // A draw; with `stretch` above 1 from a wider distribution. Continuous axes within [0, 1]: drawn
  // again a few times, then moved to the bounds.
  Eigen::VectorXd draw(Random& random, double stretch = 1) const;

  // A position for values that some other distribution drew: on continuous axes `known`, on
  // discrete ones a draw from within the cell around it, and where nothing is known (NaN) a draw.
  // Not farther from the mean than what a draw may be (Hansen 2011, "Injecting external solutions
  // into CMA-ES"), so that one such point does not tear the distribution away.
  Eigen::VectorXd adopt(const Eigen::VectorXd& known, Random& random) const;

  // Learns from a generation of at least kSmallestPopulation positions, best first.
  void update(const std::vector<RankedPosition>& generation);

  // Nothing more to gain here: too narrow, too wide, or of a shape that numbers no longer resolve.
  bool converged() const;

  const Eigen::VectorXd& mean() const { return mean_; }
  double sigma() const { return sigma_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  // How far each axis is stretched by its margin; 1 on continuous ones.
  const Eigen::VectorXd& margins() const { return stretch_; }

 private:
  void decompose();
  Eigen::VectorXd into_bounds(Eigen::VectorXd position) const;
  void adapt_step_size(const Eigen::VectorXd& path_step, double selected);
  void correct_margin(Eigen::Index axis, double margin);
  double deviation(Eigen::Index axis) const;
  Eigen::VectorXd whiten(const Eigen::VectorXd& step) const;

  std::vector<const Dimension*> axes_;
  Eigen::VectorXd mean_;
  double sigma_;
  Eigen::MatrixXd covariance_;
  Eigen::MatrixXd basis_;    // eigenvectors of the covariance
  Eigen::VectorXd lengths_;  // square roots of its eigenvalues
  Eigen::VectorXd stretch_;
  Eigen::VectorXd sigma_path_;
  Eigen::VectorXd covariance_path_;
  std::int64_t generations_ = 0;
};

// The normal that covers the best of what is known (Nomura et al. 2021, "Warm starting CMA-ES"):
// `best` are positions, at least one.
CmaEs::Start warm_start(const std::vector<Eigen::VectorXd>& best);

}  // namespace fettle::search
