// Bayesian linear regression with a normal-inverse-gamma prior, in units of `spread` and from the
// newest value: Murphy 2007, "Conjugate Bayesian analysis of the Gaussian distribution", written
// out for two coefficients. The predictive Student t is replaced by a normal of the same variance.
#include "search/rungs/forecast.h"

#include <algorithm>
#include <cmath>

#include "search/maths/normal.h"

namespace fettle::search {
namespace {

constexpr double kPowers[] = {0.25, 0.5, 1.0, 2.0};
constexpr double kRates[] = {3.0, 10.0, 30.0};  // decays within the whole curve

// Priors. Coefficients: a normal with these deviations, in units of the noise's own deviation times
// kLooseness. Noise: inverse gamma, a few hundredths of the spread.
constexpr double kLooseness = 100;
constexpr double kNoiseShape = 1.5;
constexpr double kNoise = 0.05;
// No shape is exact: a forecast is off by this share of the spread for every factor e of steps
// ahead.
constexpr double kDiscrepancy = 0.1;

struct Shape {
  bool power = true;
  double rate = 0;
  double at(double step, double last) const {
    return power ? std::pow(step, -rate) : std::exp(-rate * step / last);
  }
};

std::vector<Shape> shapes() {
  std::vector<Shape> out;
  for (const double power : kPowers) out.push_back({true, power});
  for (const double rate : kRates) out.push_back({false, rate});
  return out;
}

// Posterior of a + b * x and its log marginal likelihood, up to a term that all shapes share.
struct Regression {
  double a = 0;
  double b = 0;
  double variance_a = 0;  // in units of the noise's variance
  double variance_b = 0;
  double covariance = 0;
  double noise = 0;  // expected variance
  double log_evidence = 0;
};

Regression regress(const std::vector<double>& x, const std::vector<double>& y) {
  // The normal equations. The precision of the prior, of mean 0, adds to both diagonal entries.
  constexpr double kPrecision = 1 / (kLooseness * kLooseness);
  double n = kPrecision;
  double sx = 0;
  double sxx = kPrecision;
  double sy = 0;
  double sxy = 0;
  double syy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    n += 1;
    sx += x[i];
    sxx += x[i] * x[i];
    sy += y[i];
    sxy += x[i] * y[i];
    syy += y[i] * y[i];
  }
  const double determinant = n * sxx - sx * sx;
  Regression out;
  out.a = (sxx * sy - sx * sxy) / determinant;
  out.b = (n * sxy - sx * sy) / determinant;
  out.variance_a = sxx / determinant;
  out.variance_b = n / determinant;
  out.covariance = -sx / determinant;
  // Shape and scale of the noise variance's inverse gamma posterior, and below its mean.
  const double shape = kNoiseShape + 0.5 * static_cast<double>(x.size());
  const double residual = std::max(0.0, syy - out.a * sy - out.b * sxy);
  const double scale = kNoiseShape * kNoise * kNoise + 0.5 * residual;
  out.noise = scale / (shape - 1);
  out.log_evidence = -0.5 * std::log(determinant) - shape * std::log(scale);
  return out;
}

}  // namespace

Forecast::Forecast(const std::vector<CurvePoint>& curve, std::int64_t last_step, double spread) {
  const auto last = static_cast<double>(last_step);
  const double origin = curve.back().loss;
  std::vector<double> y;
  for (const CurvePoint& point : curve) y.push_back((point.loss - origin) / spread);
  const double ahead = std::log(last / static_cast<double>(curve.back().step));
  const double discrepancy = kDiscrepancy * kDiscrepancy * ahead;  // variance, of any shape
  std::vector<double> evidence;
  for (const Shape& shape : shapes()) {
    // All shapes have the same scale: 1 where the curve begins, 0 where it ends.
    // All points are below last_step and shapes fall strictly, so first > end.
    const double first = shape.at(static_cast<double>(curve.front().step), last);
    const double end = shape.at(last, last);
    std::vector<double> x;
    for (const CurvePoint& point : curve) {
      x.push_back((shape.at(static_cast<double>(point.step), last) - end) / (first - end));
    }
    const Regression fit = regress(x, y);
    const double variance = fit.noise * (1 + fit.variance_a) + discrepancy;  // at the end x is 0
    components_.push_back({0, origin + spread * fit.a, spread * std::sqrt(variance)});
    evidence.push_back(fit.log_evidence);
  }
  const double most = *std::max_element(evidence.begin(), evidence.end());
  double total = 0;
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    components_[i].weight = std::exp(evidence[i] - most);
    total += components_[i].weight;
  }
  for (Component& component : components_) component.weight /= total;
}

double Forecast::mean() const {
  double out = 0;
  for (const Component& component : components_) out += component.weight * component.mean;
  return out;
}

double Forecast::probability_below(double loss) const {
  double out = 0;
  for (const Component& component : components_) {
    out += component.weight * normal_cdf((loss - component.mean) / component.deviation);
  }
  return out;
}

}  // namespace fettle::search
