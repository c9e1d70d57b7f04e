#include "cli/report/insight.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "search/explain/model.h"

namespace fettle::cli {
namespace {

// The most important parameters, whose dependence the page shows.
constexpr std::size_t kMostDependences = 12;
// Interactions below this share are noise to a reader.
constexpr double kLeastPair = 0.005;

Json importance_data(const std::vector<api::Parameter>& parameters, const explain::Shares& shares) {
  Json out = Json::array();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const explain::ColumnShare& share = shares.columns[i];
    out.push_back(Json::object({{"parameter", parameters[i].name},
                                {"main", share.main},
                                {"total", share.total},
                                {"deviation", share.deviation}}));
  }
  return out;
}

// Columns are parameters, by index. The step is one more column of the model, but fixed, so it is
// in no pair.
Json pairs_data(const std::vector<api::Parameter>& parameters, const explain::Shares& shares) {
  Json out = Json::array();
  for (const explain::PairShare& pair : shares.pairs) {
    if (pair.share < kLeastPair) continue;
    out.push_back(Json::object({{"first", parameters[pair.first].name},
                                {"second", parameters[pair.second].name},
                                {"share", pair.share}}));
  }
  return out;
}

std::vector<std::size_t> by_importance(const std::vector<api::Parameter>& parameters,
                                       const explain::Shares& shares) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < parameters.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, [&shares](std::size_t a, std::size_t b) {
    return shares.columns[a].total > shares.columns[b].total;
  });
  if (order.size() > kMostDependences) order.resize(kMostDependences);
  return order;
}

Json dependence_data(const std::vector<explain::DependencePoint>& points) {
  using explain::DependencePoint;
  return Json::object({{"values", Json::array_of(points, &DependencePoint::value)},
                       {"means", Json::array_of(points, &DependencePoint::mean)},
                       {"deviations", Json::array_of(points, &DependencePoint::deviation)}});
}

// Returns the surface of the two parameters with the largest interaction, if any interact. Pairs
// are in order of share, largest first; a pair has no surface if one exists only for some values of
// the other.
Json surface_data(const std::vector<api::Parameter>& parameters, const explain::Model& model,
                  const explain::Shares& shares) {
  for (const explain::PairShare& pair : shares.pairs) {
    if (pair.share < kLeastPair) break;
    const auto surface = model.dependence(pair.first, pair.second);
    if (!surface) continue;
    return Json::object({{"first", parameters[pair.first].name},
                         {"second", parameters[pair.second].name},
                         {"share", pair.share},
                         {"firstValues", Json(surface->first)},
                         {"secondValues", Json(surface->second)},
                         {"means", Json::array_of(surface->means)},
                         {"deviations", Json::array_of(surface->deviations)}});
  }
  return {};
}

}  // namespace

Json insight_data(const RunView& view, std::size_t objective) {
  const std::vector<api::Parameter>& parameters = view.study.spec.parameters;
  const auto model = explain::Model::fit(core::problem_of(view.study),
                                         core::history_of(view.study, view.trials), objective);
  if (!model.ok()) return Json::object({{"why", model.error().message}});
  const explain::Shares shares = model->importance();
  Json dependence = Json::object();
  for (const std::size_t i : by_importance(parameters, shares)) {
    dependence.set(parameters[i].name, dependence_data(model->dependence(i)));
  }
  return Json::object({{"trials", static_cast<std::int64_t>(model->trials())},
                       {"quality", model->quality()},
                       {"clipped", static_cast<std::int64_t>(model->clipped())},
                       {"importance", importance_data(parameters, shares)},
                       {"pairs", pairs_data(parameters, shares)},
                       {"dependence", std::move(dependence)},
                       {"surface", surface_data(parameters, *model, shares)}});
}

}  // namespace fettle::cli
