// Forecast: the predicted end of a learning curve, with uncertainty (after Domhan et al. 2015,
// "Speeding up automatic hyperparameter optimization of deep neural networks by extrapolation of
// learning curves", with shapes that can be integrated in closed form instead of sampled).
//
// A curve is modelled as loss = a + b * shape(step) + noise, for a set of power laws and
// exponentials with fixed rates. Given the shape it is a linear regression with conjugate priors.
// The shapes are averaged by their marginal likelihood. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "search/rungs/stopping.h"

namespace fettle::search {

class Forecast {
 public:
  // Predicts the value at `last_step` from finite points below it, ascending, at least one.
  // `spread`: the distance between values of different trials, > 0, which sets the scale of the
  // priors.
  Forecast(const std::vector<CurvePoint>& curve, std::int64_t last_step, double spread);

  double mean() const;
  // P(the loss at last_step is below `loss`).
  double probability_below(double loss) const;

 private:
  struct Component {
    double weight = 0;
    double mean = 0;
    double deviation = 0;
  };
  std::vector<Component> components_;
};

}  // namespace fettle::search
