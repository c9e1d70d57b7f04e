#include "tests/search/families/cost_law.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/philox.h"

namespace fettle::search::families {
namespace {

constexpr double kRange = 100;             // ratio of the most expensive to the cheapest place
constexpr std::size_t kMostExpensive = 2;  // parameters on which the cost depends

// Returns a place along one parameter, from 0 to 1; a choice has an arbitrary but constant place.
double along(const api::Parameter& parameter, std::uint64_t key, double at) {
  if (std::isnan(at)) return 0;
  if (parameter.type != api::ParameterType::kCategorical) return at;
  return Random(key, static_cast<std::uint64_t>(at)).uniform();
}

}  // namespace

CostLaw make_cost_law(const std::string& kind, std::uint64_t number, const Task& task,
                      const Place& best) {
  if (kind == "even") return [](const Place&) { return 1.0; };
  CHECK(kind == "free" || kind == "rising", "a kind of cost law");
  Random random(0x636f737473, number);
  const std::uint64_t key = random.bits64();
  std::vector<double> slopes(task.parameters.size());
  const std::size_t expensive = 1 + random.below(kMostExpensive);
  for (std::size_t k = 0; k < expensive; ++k) {
    const std::size_t i = random.below(slopes.size());
    const double there = along(task.parameters[i], key + i, best[i]);
    const bool down = kind == "free" ? random.below(2) == 0 : there < 0.5;
    slopes[i] = (down ? -1 : 1) * std::log(kRange) / static_cast<double>(expensive);
  }
  return [=, parameters = task.parameters](const Place& place) {
    double log_cost = 0;
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      log_cost += slopes[i] * along(parameters[i], key + i, place[i]);
    }
    return std::exp(log_cost);
  };
}

}  // namespace fettle::search::families
