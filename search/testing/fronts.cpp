#include "search/testing/fronts.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "search/testing/problems.h"

namespace fettle::search::testing {
namespace {

constexpr int kDimensions = 6;
constexpr int kSearches = 5;

double covered(const History& history, const Losses& reference) {
  std::vector<Losses> points;
  for (const Event& event : history.events) {
    if (event.fact.infeasible) continue;
    Losses losses;
    for (const auto& value : event.fact.values) losses.push_back(*value);
    points.push_back(losses);
  }
  return hypervolume(points, reference).value();
}

// The part that the ZDT functions share: the distance of a point from the front.
double zdt_distance(const Json& point) {
  double g = 1;
  for (int i = 1; i < kDimensions; ++i) g += 9 * x_of(point, i) / (kDimensions - 1);
  return g;
}

}  // namespace

Problem problem_with(std::vector<api::Parameter> parameters, const std::string& algorithm,
                     std::size_t objectives, std::int64_t seed) {
  Problem out = problem_of(std::move(parameters), algorithm, seed);
  out.objectives.resize(1);
  while (out.objectives.size() < objectives) {
    out.objectives.push_back({"f" + std::to_string(out.objectives.size()),
                              api::Direction::kMinimize,
                              {},
                              api::Take::kLast,
                              {}});
  }
  return out;
}

std::vector<api::Parameter> unit_cube() {
  std::vector<api::Parameter> out;
  for (int i = 0; i < kDimensions; ++i) out.push_back(real("x" + std::to_string(i), 0, 1));
  return out;
}

double x_of(const Json& point, int i) { return point.find("x" + std::to_string(i))->as_double(); }

FrontProblem zdt1() {
  const auto objectives = [](const Json& point) -> std::vector<std::optional<double>> {
    const double g = zdt_distance(point);
    const double f = x_of(point, 0);
    return {f, g * (1 - std::sqrt(f / g))};
  };
  return {objectives, {1.1, 1.1}, 1.21 - 1.0 / 3};
}

FrontProblem zdt2() {
  const auto objectives = [](const Json& point) -> std::vector<std::optional<double>> {
    const double g = zdt_distance(point);
    const double f = x_of(point, 0);
    return {f, g * (1 - f / g * (f / g))};
  };
  return {objectives, {1.1, 1.1}, 1.21 - 2.0 / 3};
}

FrontProblem dtlz2() {
  const auto objectives = [](const Json& point) -> std::vector<std::optional<double>> {
    double g = 1;
    for (int i = 2; i < kDimensions; ++i) g += std::pow(x_of(point, i) - 0.5, 2);
    const double a = x_of(point, 0) * std::numbers::pi / 2;
    const double b = x_of(point, 1) * std::numbers::pi / 2;
    return {g * std::cos(a) * std::cos(b), g * std::cos(a) * std::sin(b), g * std::sin(a)};
  };
  return {objectives, {1.1, 1.1, 1.1}, 1.331 - std::numbers::pi / 6};
}

History run(const Problem& problem, const Objectives& objectives, int trials, int parallel) {
  const auto sampler = std::move(make_sampler(problem)).value();
  History history;
  for (std::int64_t i = 0; i < trials; ++i) {
    history.trials.push_back(sampler->suggest(history, 1).points.at(0));
    const std::int64_t ended = i - parallel + 1;
    if (ended < 0) continue;
    Event event = result(ended, 0.0);
    event.fact.values = objectives(history.trials[static_cast<std::size_t>(ended)]);
    event.fact.infeasible = std::any_of(event.fact.values.begin(), event.fact.values.end(),
                                        [](const auto& value) { return !value.has_value(); });
    history.events.push_back(event);
  }
  return history;
}

double median_share(const std::string& algorithm, const FrontProblem& problem, int trials,
                    int parallel) {
  std::vector<double> shares;
  for (std::int64_t seed = 0; seed < kSearches; ++seed) {
    const Problem searched = problem_with(unit_cube(), algorithm, problem.reference.size(), seed);
    const History history = run(searched, problem.objectives, trials, parallel);
    shares.push_back(covered(history, problem.reference) / problem.best);
  }
  std::sort(shares.begin(), shares.end());
  return shares[kSearches / 2];
}

}  // namespace fettle::search::testing
