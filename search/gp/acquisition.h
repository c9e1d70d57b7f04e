// Acquisition: the logarithm of expected improvement (Ament et al. 2023, "LogEI"): the same optimum
// as expected improvement, but neither it nor its gradient vanishes where improvement is unlikely.
// Pure functions.
#pragma once

namespace fettle::search::gp {

// log h(u), where h(u) = phi(u) + u Phi(u) = E[max(0, u + Z)] for a standard normal Z. Exact to
// about 1e-13 for any finite u.
struct LogImprovement {
  double value = 0;
  double slope = 0;  // d value / d u = Phi(u) / h(u)
};
LogImprovement log_improvement(double u);

// log Phi(u): the log-probability that a standard normal is below u. Equally exact.
struct LogProbability {
  double value = 0;
  double slope = 0;  // d value / d u = phi(u) / Phi(u)
};
LogProbability log_probability(double u);

// log E[max(0, best - f)] for a normal f with this mean and sd > 0.
struct LogExpectedImprovement {
  double value = 0;
  double by_mean = 0;
  double by_sd = 0;
};
LogExpectedImprovement log_expected_improvement(double best, double mean, double sd);

// The same, reduced by the part that noise would hide: times 1 - sqrt(noise / (sd^2 + noise)),
// where `noise` is a variance (Huang et al. 2006, "augmented expected improvement").
LogExpectedImprovement log_augmented_improvement(double best, double mean, double sd, double noise);

}  // namespace fettle::search::gp
