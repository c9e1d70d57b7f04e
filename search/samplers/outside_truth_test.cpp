// Comparison with other implementations: SciPy's Sobol points and Optuna's densities
// (tests/search/outside_truth.json, written by the script beside it), and asha against the rule of
// its paper in a few plain lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/test_paths.h"
#include "search/maths/sobol_sequence.h"
#include "search/samplers/parzen.h"
#include "search/space/columns.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

const Json& truth() {
  static const Json kTruth = [] {
    const auto text = read_file(source_path("tests/search/outside_truth.json"));
    return parse_json(text.value()).value();
  }();
  return kTruth;
}

TEST(OutsideTruth, SobolPointsMatchSciPy) {
  const SobolSequence sequence(SobolSequence::kMaxDimensions, std::nullopt);
  const Json& expected = *truth().find("sobol");
  const Json::Array& dimensions = expected.find("dimensions")->as_array();
  for (const Json& row : expected.find("points")->as_array()) {
    const std::int64_t index = row.find("index")->as_integer();
    const std::vector<double> point = sequence.at(static_cast<std::uint64_t>(index));
    const Json::Array& coordinates = row.find("point")->as_array();
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const std::int64_t dimension = dimensions[i].as_integer();
      EXPECT_EQ(point[static_cast<std::size_t>(dimension)], coordinates[i].as_double())
          << "point " << index << ", dimension " << dimension;
    }
  }
}

constexpr KernelWidths kOptuna{1.0, 0.01, true};

// A point of the fixture: two continua, an integer from 1, a choice by its index.
Point point_of(const Json& row) {
  const Json::Array& values = row.as_array();
  return {values[0].as_double(), values[1].as_double(), values[2].as_double() - 1,
          values[3].as_double()};
}

TEST(OutsideTruth, TpeDensitiesMatchOptuna) {
  const Space space = Space::make({real("x", -1, 3), real("rate", 1e-5, 1, api::Scale::kLog),
                                   integer("layers", 1, 9), choice("kind", {"a", "b", "c"})})
                          .value();
  for (const Json& study : truth().find("tpe")->as_array()) {
    Columns columns(space);
    for (const Json& trial : study.find("trials")->as_array()) {
      const Point point = point_of(trial);
      columns.push(&point);
    }
    std::vector<std::int64_t> good;
    for (const Json& trial : study.find("good")->as_array()) good.push_back(trial.as_integer());
    std::vector<std::int64_t> bad;
    for (std::int64_t trial = 0; trial < columns.size(); ++trial) {
      if (std::find(good.begin(), good.end(), trial) == good.end()) bad.push_back(trial);
    }
    std::vector<std::size_t> parameters;
    for (const Json& parameter : study.find("parameters")->as_array()) {
      parameters.push_back(static_cast<std::size_t>(parameter.as_integer()));
    }
    const Parzen density_of_good(space, parameters, columns, good, {}, kOptuna);
    const Parzen density_of_bad(space, parameters, columns, bad, {}, kOptuna);
    const Json::Array& points = study.find("points")->as_array();
    const Json::Array& expected = study.find("log_ratios")->as_array();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Point point = point_of(points[i]);
      EXPECT_NEAR(density_of_good.log_density(point) - density_of_bad.log_density(point),
                  expected[i].as_double(), 1e-9)
          << columns.size() << " trials, point " << i;
    }
  }
}

// The best 1/eta of all values at a rung so far continue, and at least one.
class PlainAsha {
 public:
  bool goes_on(std::int64_t step, double loss, std::size_t eta) {
    std::vector<double>& rung = rungs_[step];
    rung.push_back(loss);
    const auto better = static_cast<std::size_t>(
        std::count_if(rung.begin(), rung.end(), [&](double other) { return other < loss; }));
    return better < std::max<std::size_t>(1, rung.size() / eta);
  }

 private:
  std::map<std::int64_t, std::vector<double>> rungs_;
};

// Eight workers that report in random order; the values are few, so that ties occur.
TEST(OutsideTruth, AshaJudgesAsThePaperSays) {
  Random random(31);
  for (const std::size_t eta : {2, 3, 4}) {
    Problem problem = problem_of({real("x", 0, 1)}, "random");
    problem.resource = {"epoch", 1, 81};
    problem.objectives[0].direction = api::Direction::kMaximize;
    api::EarlyStopping rules;
    rules.name = api::StoppingKind::kAsha;
    rules.reduction_factor = static_cast<double>(eta);
    const std::vector<std::int64_t> steps = rung_steps(problem.algorithm, rules, problem.resource);
    PlainAsha plain;
    History history;
    std::vector<std::pair<std::int64_t, std::size_t>> workers;  // (trial, next rung)
    for (int report = 0; report < 600; ++report) {
      if (workers.size() < 8) {
        workers.emplace_back(static_cast<std::int64_t>(history.trials.size()), 0);
        history.trials.push_back(Json::object());
      }
      const std::size_t worker = random.below(workers.size());
      auto& [trial, rung] = workers[worker];
      const auto value = static_cast<double>(random.below(20));
      history.events.push_back(fact(trial, api::FactKind::kRung, steps[rung], value));
      const Judgement judgement = judge(problem, rules, history, trial);
      const bool goes_on = plain.goes_on(steps[rung], -value, eta);
      ASSERT_EQ(judgement.verdict == Verdict::kContinue, goes_on) << judgement.reason;
      if (goes_on && ++rung < steps.size()) continue;
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(worker));
    }
  }
}

}  // namespace
}  // namespace fettle::search
