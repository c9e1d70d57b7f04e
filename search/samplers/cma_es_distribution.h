// CmaEs: the search distribution of CMA-ES (Hansen 2016, "The CMA evolution strategy: a tutorial",
// with negative weights) over the unit interval of each numeric parameter, with the margin of
// Hamano et al. 2022 ("CMA-ES with margin") for discrete values.
//
// A position has one number per axis: a position on the unit interval (dimension.h); on discrete
// axes any number, which stands for the nearest cell. The margin stretches the distribution along a
// discrete axis, so that the cells beside the mean's keep a small probability however narrow it
// gets. Invariant: draws and updates are functions of the state and the arguments. A value type;
// not synchronised.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "search/space/dimension.h"

namespace fettle::search {

// One position of a generation. Ties: a loss equal to the previous one shares its weight.
struct RankedPosition {
  Eigen::VectorXd position;
  bool ties_with_previous = false;
};

class CmaEs {
 public:
  // The initial normal distribution: mean, standard deviation, shape.
  struct Start {
    Eigen::VectorXd mean;
    double sigma = 0;
    Eigen::MatrixXd covariance;
  };

  // The smallest generation, and the usual one for this number of parameters.
  static constexpr std::int64_t kSmallestPopulation = 4;
  static std::int64_t usual_population(std::size_t parameters);

  // `axes`: at least one, each with two or more values; must outlive this.
  CmaEs(std::vector<const Dimension*> axes, Start start);

  // Draws a position; `stretch` above 1 widens the distribution. Continuous axes stay within [0,
  // 1]: the position is drawn again a few times, then moved to the bounds.
  Eigen::VectorXd draw(Random& random, double stretch = 1) const;

  // Returns a position for values from another distribution: on continuous axes `known`, on
  // discrete axes a draw within the cell around it, and for unknown values (NaN) a draw. The
  // distance from the mean is limited to that of a likely draw (Hansen 2011, "Injecting external
  // solutions into CMA-ES"), so that one such point does not distort the distribution.
  Eigen::VectorXd adopt(const Eigen::VectorXd& known, Random& random) const;

  // Learns from a generation of at least kSmallestPopulation positions, best first.
  void update(const std::vector<RankedPosition>& generation);

  // Whether to stop: the distribution is too narrow, too wide, or too elongated for its precision.
  bool converged() const;

  const Eigen::VectorXd& mean() const { return mean_; }
  double sigma() const { return sigma_; }
  const Eigen::MatrixXd& covariance() const { return covariance_; }
  // The factor by which the margin stretches each axis; 1 on continuous axes.
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

// Returns the normal that covers the best known positions, at least one (Nomura et al. 2021, "Warm
// starting CMA-ES").
CmaEs::Start warm_start(const std::vector<Eigen::VectorXd>& best);

}  // namespace fettle::search
