#include "trainer/model_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

constexpr int kPixels = SyntheticImages::kSide * SyntheticImages::kSide;
constexpr int kTrained = 3 * 9 + 2 * 3 + kPixels * 3 * 4 + 4;  // no bias before the norm

std::optional<double> metric(const EpochReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.metrics, name, &Metrics::value_type::first);
  return found == report.metrics.end() ? std::nullopt : std::optional(found->second);
}

class ModelMetricsTest : public testing::Test {
 protected:
  ModelMetricsTest() {
    task_.config.data = write_synthetic(directory_, 200);
    task_.config.model.layers = {conv(3), simple(api::LayerType::kBatchNorm), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.epochs = task_.until_epoch = 4;
    task_.checkpoints = directory_.file("checkpoints");
  }

  struct Trained {
    std::vector<EpochReport> reports;
    std::vector<float> weights;
  };
  Result<Trained> train() {
    DataCache off("");
    FETTLE_ASSIGN(const TrainingData data, load_training_data(task_.config.data, off));
    SingleProcess single;
    Trained trained;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) { trained.reports.push_back(report); };
    hooks.log = [](const std::string&) {};
    hooks.should_stop = [] { return false; };
    FETTLE_ASSIGN(const auto training, Training::create(task_, data, single, hooks));
    FETTLE_TRY(training->run());
    trained.weights = training->learner().network().parameters().weights.download();
    return trained;
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
};

TEST_F(ModelMetricsTest, AreReportedWithTheScores) {
  task_.keep.rungs = {2};
  const auto trained = train();
  ASSERT_TRUE(trained.ok()) << trained.error().message;
  ASSERT_EQ(trained->reports.size(), 4U);
  for (const EpochReport& report : trained->reports) {
    EXPECT_EQ(metric(report, "parameters"), kTrained);
    EXPECT_EQ(metric(report, "model_mib"), 4.0 * (kTrained + 2 * 3) / (1 << 20));
    EXPECT_EQ(metric(report, "flops_per_sample"), 2.0 * kPixels * (3 * 9 + 3 * 4));
    const bool at_rung_or_end = report.step == 2 || report.step == 4;
    EXPECT_EQ(metric(report, "inference_ms").value_or(0) > 0, at_rung_or_end) << report.step;
  }
}

TEST_F(ModelMetricsTest, AreReportedAgainWithTheEnd) {
  ASSERT_TRUE(train().ok());
  const auto again = train();
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->reports.size(), 1U);
  EXPECT_EQ(metric(again->reports[0], "parameters"), kTrained);
  EXPECT_GT(metric(again->reports[0], "inference_ms").value_or(0), 0);
}

TEST_F(ModelMetricsTest, AreKnownWhereTheLossDiverges) {
  task_.config.training.learning_rate = 1e30;
  const auto trained = train();
  ASSERT_TRUE(trained.ok()) << trained.error().message;
  EXPECT_EQ(metric(trained->reports.back(), "parameters"), kTrained);
  EXPECT_TRUE(std::isnan(metric(trained->reports.back(), "inference_ms").value_or(0)));
}

TEST_F(ModelMetricsTest, ChangeNothingThatIsLearnt) {
  task_.checkpoints.clear();
  const auto at_end = train();
  ASSERT_TRUE(at_end.ok()) << at_end.error().message;
  task_.keep.rungs = {1, 2, 3};
  const auto at_rungs = train();
  ASSERT_TRUE(at_rungs.ok()) << at_rungs.error().message;
  EXPECT_EQ(at_rungs->weights, at_end->weights);
}

}  // namespace
}  // namespace fettle::trainer
