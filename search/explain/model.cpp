#include "search/explain/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "search/explain/pieces.h"

namespace fettle::explain {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kSeed = 0x6578706C61696EULL;  // "explain"; the same for every Study
constexpr std::size_t kCurvePoints = 33;              // along a parameter with many values
constexpr std::size_t kSurfacePoints = 21;            // the same for two parameters
constexpr std::size_t kMaxContexts = 16;      // over which one parameter's answer is averaged
constexpr std::uint64_t kRandomPoints = 500;  // with which a point is compared
// A value is an outlier if it lies this many ranges of the middle nine tenths away from them.
constexpr double kOutlier = 5;
constexpr double kTail = 0.05;
// Differences of smaller values are finite.
constexpr double kMaxValue = 1e300;

// The newest value at each step, in the order of steps.
using Curve = std::map<std::int64_t, double>;

std::map<std::int64_t, Curve> curves_of(const search::History& history, std::size_t objective) {
  std::map<std::int64_t, Curve> curves;
  for (const search::Event& event : history.events) {
    if (objective >= event.fact.values.size()) continue;
    const std::optional<double>& value = event.fact.values[objective];
    if (!value || !std::isfinite(*value)) continue;
    curves[event.trial][event.fact.step] = std::clamp(*value, -kMaxValue, kMaxValue);
  }
  return curves;
}

// Steps count by their logarithm: the tenth epoch adds about as much as the last hundred.
double place_of_step(std::int64_t step, std::int64_t last) {
  if (last <= 1 || step >= last) return 1;
  return std::log(static_cast<double>(std::max<std::int64_t>(step, 1))) /
         std::log(static_cast<double>(last));
}

void thin(std::vector<Sample>& samples, std::size_t most) {
  if (samples.size() <= most) return;
  std::vector<Sample> kept;
  kept.reserve(most);
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(samples[i * samples.size() / most]));
  }
  samples = std::move(kept);
}

// Returns every value of a parameter with few values, else values evenly spaced on its scale.
std::vector<double> coordinates_along(const search::Dimension& dimension, std::size_t most) {
  std::vector<double> out;
  const auto cells = static_cast<std::size_t>(dimension.cells());  // 0 on a continuum
  if (cells > 0 && (dimension.categorical() || cells <= most)) {
    for (std::size_t i = 0; i < cells; ++i) out.push_back(static_cast<double>(i));
    return out;
  }
  const auto last = static_cast<double>(most - 1);
  for (std::size_t i = 0; i < most; ++i) {
    const double coordinate = dimension.from_unit(static_cast<double>(i) / last);
    // Neighbouring places may fall into the same cell of a lattice.
    if (out.empty() || coordinate > out.back()) out.push_back(coordinate);
  }
  return out;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

Result<Model> Model::fit(const search::Problem& problem, const search::History& history,
                         std::size_t objective, std::size_t most_samples) {
  FETTLE_ASSIGN(search::Space space, search::Space::make(problem.parameters));
  Model model(std::move(space));
  std::vector<Sample> samples;
  for (const auto& [trial, curve] : curves_of(history, objective)) {
    const auto point = model.space_.read(history.trials[static_cast<std::size_t>(trial)]);
    if (!point) continue;
    ++model.trials_;
    for (const auto& [step, value] : curve) {
      Sample sample{model.place_of(*point), value, trial};  // values of one trial form a group
      sample.at.back() = place_of_step(step, problem.resource.max);
      samples.push_back(std::move(sample));
    }
  }
  if (model.trials_ < kLeastTrials) {
    return invalid("what matters cannot be told yet: " + std::to_string(model.trials_) +
                   " trials have a value, and it takes " + std::to_string(kLeastTrials));
  }
  // trials_ counts all trials with a value, whether thin() leaves one of theirs or not.
  thin(samples, most_samples);
  model.set_columns();
  model.set_contexts(problem);
  model.set_scaling(samples);
  const Scaling& scaling = model.scaling_;
  for (Sample& sample : samples) {
    if (sample.value < scaling.low || sample.value > scaling.high) ++model.clipped_;
    sample.value =
        (std::clamp(sample.value, scaling.low, scaling.high) - scaling.centre) / scaling.size;
  }
  model.forest_ = Forest::fit(model.columns_, samples, kSeed);
  model.set_random_means();
  return model;
}

void Model::set_columns() {
  for (std::size_t i = 0; i < space_.dimensions(); ++i) {
    const search::Dimension& dimension = space_.dimension(i);
    // A lattice of many values is a continuum to the forest.
    const bool many = !dimension.categorical() && dimension.cells() > kCurvePoints;
    const std::uint64_t cells = many ? 0 : dimension.cells();
    columns_.push_back({static_cast<std::size_t>(cells), dimension.categorical()});
  }
  columns_.push_back({});  // the step
}

// A parent is declared before its children, so its contexts exist when theirs are made. A child has
// one context for each context of its parent and each value of the parent under which it exists.
void Model::set_contexts(const search::Problem& problem) {
  std::map<std::string, std::size_t> index_of;
  for (const api::Parameter& parameter : problem.parameters) {
    std::vector<Place> contexts;
    if (!parameter.when) {
      contexts.push_back(last_step());
    } else {
      const std::size_t parent = index_of.at(parameter.when->parameter);
      for (const Place& outer : contexts_[parent]) {
        for (const Json& value : parameter.when->in) {
          const auto coordinate = space_.dimension(parent).coordinate(value);
          // No coordinate: the parent never has this value, so it makes no context.
          if (!coordinate || contexts.size() >= kMaxContexts) continue;
          contexts.push_back(outer);
          contexts.back()[parent] = space_.dimension(parent).to_unit(*coordinate).centre();
        }
      }
    }
    index_of.emplace(parameter.name, contexts_.size());
    contexts_.push_back(std::move(contexts));
  }
}

void Model::set_scaling(const std::vector<Sample>& samples) {
  std::vector<double> sorted;
  for (const Sample& sample : samples) sorted.push_back(sample.value);
  std::ranges::sort(sorted);
  const double low = quantile(sorted, kTail);
  const double high = quantile(sorted, 1 - kTail);
  const double range = high - low;
  scaling_ = {
      .centre = quantile(sorted, 0.5), .size = 1, .low = sorted.front(), .high = sorted.back()};
  // Clips nothing if nearly all values are equal, or if the limits would overflow.
  if (range > 0 && range < kMaxValue / kOutlier) {
    scaling_.low = std::max(scaling_.low, low - kOutlier * range);
    scaling_.high = std::min(scaling_.high, high + kOutlier * range);
  }
  const double size = std::max(scaling_.high - scaling_.centre, scaling_.centre - scaling_.low);
  if (size > 0) scaling_.size = size;
}

// Leaves the last coordinate, the step, to the caller.
Place Model::place_of(const search::Point& point) const {
  Place at(point.size() + 1, kAbsent);
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (search::is_active(point[i])) at[i] = space_.dimension(i).to_unit(point[i]).centre();
  }
  return at;
}

Place Model::last_step() const {
  Place at(space_.dimensions() + 1, kAbsent);
  at.back() = 1;
  return at;
}

std::optional<Prediction> Model::predict(const Json& parameters) const {
  const auto point = space_.read(parameters);
  if (!point) return std::nullopt;
  Place at = place_of(*point);
  at.back() = 1;
  const Forest::Prediction found = forest_.predict(at);
  return Prediction{scaling_.centre + scaling_.size * found.mean, scaling_.size * found.deviation};
}

// Every question uses the same points, so their expected values are computed once.
void Model::set_random_means() {
  random_means_.reserve(kRandomPoints);
  for (std::uint64_t i = 0; i < kRandomPoints; ++i) {
    Random random(kSeed, i);
    Place at = place_of(space_.draw(random));
    at.back() = 1;
    random_means_.push_back(scaling_.centre + scaling_.size * forest_.predict(at).mean);
  }
  std::ranges::sort(random_means_);
}

double Model::share_below(double mean) const {
  const auto [low, high] = std::equal_range(random_means_.begin(), random_means_.end(), mean);
  const auto below = static_cast<double>(low - random_means_.begin());
  const auto equal = static_cast<double>(high - low);
  return (below + equal / 2) / static_cast<double>(kRandomPoints);
}

std::vector<DependencePoint> Model::dependence(std::size_t parameter) const {
  const search::Dimension& dimension = space_.dimension(parameter);
  const std::vector<double> coordinates = coordinates_along(dimension, kCurvePoints);
  std::vector<double> sums(coordinates.size());
  std::vector<double> squares(coordinates.size());
  for (const Tree& tree : forest_.trees()) {
    const std::vector<double> means = dependence_of(tree, parameter, coordinates);
    for (std::size_t i = 0; i < means.size(); ++i) {
      sums[i] += means[i];
      squares[i] += means[i] * means[i];
    }
  }
  std::vector<DependencePoint> out;
  const auto trees = static_cast<double>(forest_.trees().size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double mean = sums[i] / trees;
    const double deviation = std::sqrt(std::max(squares[i] / trees - mean * mean, 0.0));
    out.push_back({dimension.value(coordinates[i]), scaling_.centre + scaling_.size * mean,
                   scaling_.size * deviation});
  }
  return out;
}

// Averages over the contexts in which the parameter exists.
std::vector<double> Model::dependence_of(const Tree& tree, std::size_t parameter,
                                         const std::vector<double>& coordinates) const {
  std::vector<double> means(coordinates.size());
  const std::vector<Place>& contexts = contexts_[parameter];
  for (const Place& context : contexts) {
    const std::vector<Piece> pieces = pieces_along(tree.leaves(context), parameter);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const double unit = space_.dimension(parameter).to_unit(coordinates[i]).centre();
      means[i] +=
          value_at(pieces, tree.place(parameter, unit)) / static_cast<double>(contexts.size());
    }
  }
  return means;
}

// Returns settings of other parameters under which both exist and are free.
std::vector<Place> Model::contexts_of(std::size_t first, std::size_t second) const {
  std::vector<Place> out;
  for (const Place& one : contexts_[first]) {
    for (const Place& other : contexts_[second]) {
      Place both = one;
      // Both are free in each other's contexts, and no parameter has two values at once.
      bool agree = std::isnan(one[second]) && std::isnan(other[first]);
      for (std::size_t i = 0; i < both.size(); ++i) {
        if (std::isnan(both[i])) both[i] = other[i];
        agree = agree && (std::isnan(other[i]) || both[i] == other[i]);
      }
      if (agree && out.size() < kMaxContexts) out.push_back(std::move(both));
    }
  }
  return out;
}

std::optional<DependenceSurface> Model::dependence(std::size_t first, std::size_t second) const {
  const std::vector<Place> contexts = contexts_of(first, second);
  if (contexts.empty()) return std::nullopt;
  DependenceSurface out;
  std::vector<double> units[2];
  for (const bool is_second : {false, true}) {
    const search::Dimension& dimension = space_.dimension(is_second ? second : first);
    for (const double coordinate : coordinates_along(dimension, kSurfacePoints)) {
      (is_second ? out.second : out.first).push_back(dimension.value(coordinate));
      units[is_second ? 1 : 0].push_back(dimension.to_unit(coordinate).centre());
    }
  }
  out.means.resize(out.first.size() * out.second.size());
  out.deviations.resize(out.means.size());
  for (const Tree& tree : forest_.trees()) {
    Axis axes[2] = {{first, units[0]}, {second, units[1]}};
    // Leaves have their corners in the tree's own coordinates.
    for (Axis& axis : axes) {
      for (double& place : axis.places) place = tree.place(axis.column, place);
    }
    std::vector<double> means(out.means.size());
    for (const Place& context : contexts) {
      const std::vector<double> surface = surface_of(tree.leaves(context), axes[0], axes[1]);
      for (std::size_t i = 0; i < means.size(); ++i) {
        means[i] += surface[i] / static_cast<double>(contexts.size());
      }
    }
    for (std::size_t i = 0; i < means.size(); ++i) {
      out.means[i] += means[i];
      out.deviations[i] += means[i] * means[i];  // squares, until all trees are known
    }
  }
  const auto trees = static_cast<double>(forest_.trees().size());
  for (std::size_t i = 0; i < out.means.size(); ++i) {
    const double mean = out.means[i] / trees;
    const double variance = std::max(out.deviations[i] / trees - mean * mean, 0.0);
    out.means[i] = scaling_.centre + scaling_.size * mean;
    out.deviations[i] = scaling_.size * std::sqrt(variance);
  }
  return out;
}

}  // namespace fettle::explain
