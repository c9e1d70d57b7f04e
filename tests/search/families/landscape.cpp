#include "tests/search/families/landscape.h"

#include <cmath>
#include <numbers>

namespace fettle::search::families {
namespace {

constexpr std::size_t kFeatures = 200;  // of a draw from a process
using Matrix = std::vector<std::vector<double>>;

double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

std::vector<double> uniforms(Random& random, std::size_t count, double low, double high) {
  std::vector<double> out(count);
  for (double& x : out) x = between(random, low, high);
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

std::vector<double> minus(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// Returns orthonormal rows, by Gram-Schmidt over normal draws; half of the time the axes
// themselves.
Matrix directions(Random& random, std::size_t n) {
  const bool along_axes = random.below(2) == 0;
  Matrix rows(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      rows[i][j] = along_axes ? static_cast<double>(i == j) : random.normal();
    for (std::size_t k = 0; k < i; ++k) {
      const double along = dot(rows[i], rows[k]);
      for (std::size_t j = 0; j < n; ++j) rows[i][j] -= along * rows[k][j];
    }
    const double norm = std::sqrt(dot(rows[i], rows[i]));
    for (double& x : rows[i]) x /= norm;
  }
  return rows;
}

std::vector<double> scales(Random& random, std::size_t n, double least) {
  std::vector<double> out(n);
  for (double& x : out) x = std::pow(least, random.uniform());
  return out;
}

}  // namespace

Landscape bowl(Random& random, std::size_t n) {
  return [centre = uniforms(random, n, 0.1, 0.9), axes = directions(random, n),
          scale = scales(random, n, 0.03)](const std::vector<double>& x) {
    const std::vector<double> from = minus(x, centre);
    double out = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double along = dot(from, axes[i]);
      out += scale[i] * along * along;
    }
    return out;
  };
}

Landscape ripples(Random& random, std::size_t n) {
  const double height = between(random, 0.02, 0.15) / static_cast<double>(n);
  const double waves = between(random, 2, 6) * 2 * std::numbers::pi;
  return [base = bowl(random, n), height, waves,
          phase = uniforms(random, n, 0, 6.28)](const std::vector<double>& x) {
    double out = base(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      out += height * (1 - std::cos(waves * x[i] + phase[i]));
    return out;
  };
}

Landscape valley(Random& random, std::size_t n) {
  const double steepness = between(random, 3, 30);
  return [base = bowl(random, n), steepness, bend = uniforms(random, n, -1.5, 1.5),
          centre = uniforms(random, n, 0.2, 0.8)](const std::vector<double>& x) {
    double out = 0.3 * base(x);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      const double along = x[i] - centre[i];
      const double off = x[i + 1] - centre[i + 1] - bend[i] * along * along;
      out += (0.1 * along * along + steepness * off * off / 10) / static_cast<double>(x.size());
    }
    return out;
  };
}

Landscape bumps(Random& random, std::size_t n) {
  struct Pit {
    std::vector<double> centre;
    std::vector<double> sharpness;
    double depth;
  };
  std::vector<Pit> pits(4 + random.below(12));
  for (Pit& pit : pits) {
    pit = {uniforms(random, n, 0, 1), uniforms(random, n, 0.5, 12), between(random, 0.2, 1)};
  }
  return [pits](const std::vector<double>& x) {
    double out = 0;
    for (const Pit& pit : pits) {
      double distance = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        distance += pit.sharpness[i] * (x[i] - pit.centre[i]) * (x[i] - pit.centre[i]);
      }
      out -= pit.depth * std::exp(-distance);
    }
    return out;
  };
}

Landscape draw(Random& random, std::size_t n) {
  // Frequencies of Matern-5/2: a normal over the root of a chi-square of five degrees, halved.
  const double usual = between(random, 0.2, 0.7) * std::sqrt(static_cast<double>(n) / 2);
  const std::vector<double> lengths = uniforms(random, n, 0.5 * usual, 2.5 * usual);
  Matrix frequencies(kFeatures, std::vector<double>(n));
  std::vector<double> heights(kFeatures);
  for (std::size_t f = 0; f < kFeatures; ++f) {
    double chi_square = 0;
    for (int i = 0; i < 5; ++i) {
      const double z = random.normal();
      chi_square += z * z;
    }
    const double widen = std::sqrt(5 / chi_square);
    for (std::size_t i = 0; i < n; ++i) frequencies[f][i] = random.normal() * widen / lengths[i];
    heights[f] = random.normal() * std::sqrt(2.0 / kFeatures);
  }
  return [frequencies, heights, phases = uniforms(random, kFeatures, 0, 2 * std::numbers::pi)](
             const std::vector<double>& x) {
    double out = 0;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      out += heights[f] * std::cos(dot(frequencies[f], x) + phases[f]);
    }
    return out;
  };
}

Landscape any(Random& random, std::size_t n) {
  switch (random.below(5)) {
    case 0:
      return bowl(random, n);
    case 1:
      return ripples(random, n);
    case 2:
      return valley(random, n);
    case 3:
      return bumps(random, n);
    default:
      return draw(random, n);
  }
}

}  // namespace fettle::search::families
