#include "search/gp/improvement.h"

#include <algorithm>
#include <cmath>

#include "search/gp/acquisition.h"

namespace fettle::search::gp {
namespace {

// A smaller volume would be lost to rounding: it is reached some 37 standard deviations behind the
// front.
constexpr double kLeastVolume = 1e-290;

constexpr double kMargin = 0.1;      // behind the front, as a share of its width
constexpr double kLeastWidth = 0.2;  // of a front, in standard deviations of all outcomes

}  // namespace

double Improvement::gain(const std::vector<NormalMarginal>& losses,
                         std::vector<NormalMarginal>* slopes) const {
  if (!front_) {
    const LogExpectedImprovement gain =
        log_augmented_improvement(best_, losses[0].mean, losses[0].sigma, noise_);
    if (slopes != nullptr) slopes->assign(1, {gain.by_mean, gain.by_sd});
    return gain.value;
  }
  const double volume = std::max(front_->improvement(losses, slopes), kLeastVolume);
  if (slopes != nullptr) {
    // From slopes of the volume to slopes of its logarithm.
    for (NormalMarginal& slope : *slopes) slope = {slope.mean / volume, slope.sigma / volume};
  }
  return std::log(volume);
}

double Improvement::log_value(const std::vector<NormalMarginal>& losses,
                              std::vector<NormalMarginal>* slopes) const {
  if (losses.size() == objectives_) return gain(losses, slopes);  // feasibility is not modelled
  const NormalMarginal& wall = losses.back();  // the point is feasible where this is below 0
  const double u = -wall.mean / wall.sigma;
  const LogProbability feasible = log_probability(u);
  const double gained = gain({losses.begin(), losses.end() - 1}, slopes);
  if (slopes != nullptr) {
    // After the objectives, where gain() has left their slopes: by the mean and sigma of `wall`.
    slopes->push_back({-feasible.slope / wall.sigma, -feasible.slope * u / wall.sigma});
  }
  return gained + feasible.value;
}

Losses reference_of(const std::vector<Losses>& front) {
  Losses out;
  for (std::size_t i = 0; i < front.front().size(); ++i) {
    double least = front.front()[i];
    double most = least;
    for (const Losses& losses : front) {
      least = std::min(least, losses[i]);
      most = std::max(most, losses[i]);
    }
    out.push_back(most + kMargin * std::max(most - least, kLeastWidth));
  }
  return out;
}

}  // namespace fettle::search::gp
