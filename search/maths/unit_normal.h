// The normal distribution truncated to the unit interval. Pure functions.
#pragma once

namespace fettle::search {

// A normal's mass far out is this, so that its logarithm exists.
constexpr double kSmallestMass = 1e-300;

// Mass of a normal (not truncated) between low and high, without cancellation in either tail.
double normal_mass(double low, double high, double centre, double sigma);

// Logarithm of what exp(-z^2 / 2) is multiplied by, so that it integrates to one over [0, 1].
double unit_normal_log_scale(double centre, double sigma);

}  // namespace fettle::search
