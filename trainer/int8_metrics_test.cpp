// The 8-bit network of a training: its metrics, its ranges in the checkpoint, and the model that is
// made of them. Emulated on a GPU, too.
#include "trainer/int8_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/files/int8_model.h"
#include "trainer/model/layer_configs.h"
#include "trainer/predict.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

std::optional<double> metric(const EpochReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.metrics, name, &Metrics::value_type::first);
  return found == report.metrics.end() ? std::nullopt : std::optional(found->second);
}

class Int8MetricsTest : public testing::Test {
 protected:
  Int8MetricsTest() {
    task_.config.data = write_synthetic(directory_, 400);
    task_.config.model.layers = {conv(8), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                                 simple(LayerType::kMaxPool), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdam;
    task_.config.training.global_batch = 20;
    task_.config.training.norm_group = 10;
    task_.config.training.epochs = task_.until_epoch = 4;
    task_.config.training.quantize.emplace().samples = 100;
    task_.checkpoints = directory_.file("checkpoints");
    task_.keep.rungs = {2};
    DataCache off("");
    data_ = *load_training_data(task_.config.data, off);
  }

  Result<std::vector<EpochReport>> train(Collective& collective,
                                         std::unique_ptr<kernels::Backend> backend) {
    std::vector<EpochReport> reports;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) { reports.push_back(report); };
    hooks.log = [](const std::string&) {};
    hooks.should_stop = [] { return false; };
    FETTLE_ASSIGN(const auto training,
                  Training::create_on(std::move(backend), task_, data_, collective, hooks));
    FETTLE_TRY(training->run());
    return reports;
  }
  Result<std::vector<EpochReport>> train() {
    SingleProcess single;
    FETTLE_ASSIGN(auto backend, kernels::make_backend("reference", 1));
    return train(single, std::move(backend));
  }

  SavedModel saved(const std::string& directory) {
    CheckpointStore::Found found = *CheckpointStore(directory).newest();
    return *read_saved_model(std::move(*found.checkpoint), found.path);
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
  TrainingData data_;
};

TEST_F(Int8MetricsTest, AreReportedAtRungsAndAtTheEnd) {
  const auto reports = train();
  ASSERT_TRUE(reports.ok()) << reports.error().message;
  ASSERT_EQ(reports->size(), 4U);
  for (const EpochReport& report : *reports) {
    const bool expected = report.step == 2 || report.step == 4;
    EXPECT_EQ(metric(report, "int8_validation_accuracy").has_value(), expected) << report.step;
    EXPECT_EQ(metric(report, "int8_model_mib").has_value(), expected) << report.step;
  }
  const EpochReport& last = reports->back();
  EXPECT_GT(*metric(last, "validation_accuracy"), 0.9) << "or nothing is shown";
  EXPECT_NEAR(*metric(last, "int8_validation_accuracy"), *metric(last, "validation_accuracy"),
              0.021);
  constexpr double kBytes = 8 * 9 + 4 * (8 + 8) + 4 * 4 * 8 * 4 + 4 * (4 + 4);
  EXPECT_DOUBLE_EQ(*metric(last, "int8_model_mib"), kBytes / (1 << 20));
}

TEST_F(Int8MetricsTest, ChangeNothingThatIsLearnt) {
  const auto with = train();
  ASSERT_TRUE(with.ok()) << with.error().message;
  const SavedModel quantized = saved(task_.checkpoints);
  task_.config.training.quantize.reset();
  task_.checkpoints = directory_.file("others");
  const auto without = train();
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_EQ(saved(task_.checkpoints).weights, quantized.weights);
  EXPECT_FALSE(metric(without->back(), "int8_validation_accuracy"));
}

// The checkpoint carries the network that was validated: it predicts as well without the data.
TEST_F(Int8MetricsTest, AreThoseOfTheSavedModel) {
  for (const auto calibration : {api::Calibration::kMinMax, api::Calibration::kPercentile}) {
    for (const std::int64_t bits : {7, 8}) {
      api::QuantizeConfig& quantize = task_.config.training.quantize.emplace();
      quantize.calibration = calibration;
      quantize.samples = 100;
      quantize.weight_bits = bits;
      task_.checkpoints = directory_.file("c" + std::to_string(bits) +
                                          std::to_string(static_cast<int>(calibration)));
      const auto reports = train();
      ASSERT_TRUE(reports.ok()) << reports.error().message;
      const SavedModel trained = saved(task_.checkpoints);
      EXPECT_EQ(trained.int8_ranges.size(), 4U);
      const auto model = int8_model(trained);
      ASSERT_TRUE(model.ok()) << model.error().message;
      EXPECT_TRUE(is_int8(*model));
      EXPECT_FALSE(is_int8(trained));
      const auto predicted =
          predict(*model, task_.config.training, data_.images, data_.split.validation);
      ASSERT_TRUE(predicted.ok()) << predicted.error().message;
      const double accuracy = static_cast<double>(predicted->sums.correct) /
                              static_cast<double>(predicted->sums.samples);
      EXPECT_EQ(accuracy, *metric(reports->back(), "int8_validation_accuracy"));
    }
  }
}

TEST_F(Int8MetricsTest, AreReportedAgainByANewProcess) {
  const auto first = train();
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto again = train();
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->size(), 1U);
  EXPECT_EQ(metric(again->back(), "int8_validation_accuracy"),
            metric(first->back(), "int8_validation_accuracy"));
}

TEST_F(Int8MetricsTest, DoNotDependOnTheNumberOfWorkers) {
  const auto alone = train();
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  const SavedModel of_one = saved(task_.checkpoints);
  for (const bool shards : {false, true}) {
    task_.config.training.shard_optimizer = shards;
    task_.checkpoints = directory_.file(shards ? "sharded" : "whole");
    std::vector<EpochReport> reports;
    Threads::run(2, [&](Collective& collective) {
      auto done = train(collective, *kernels::make_backend("reference", 1));
      ASSERT_TRUE(done.ok()) << done.error().message;
      if (collective.rank() == 0) reports = *done;
    });
    ASSERT_EQ(reports.size(), 4U);
    const SavedModel of_two = saved(task_.checkpoints);
    ASSERT_EQ(of_two.int8_ranges.size(), of_one.int8_ranges.size());
    for (std::size_t i = 0; i < of_one.int8_ranges.size(); ++i) {
      EXPECT_NEAR(of_two.int8_ranges[i], of_one.int8_ranges[i], 1e-4);
    }
    EXPECT_NEAR(*metric(reports.back(), "int8_validation_accuracy"),
                *metric(alone->back(), "int8_validation_accuracy"), 0.011);
  }
}

// The emulator is slow, so these train for one epoch.
TEST_F(Int8MetricsTest, OnAGpuAreTheReferences) {
  task_.config.training.epochs = task_.until_epoch = 1;
  task_.keep.rungs.clear();
  const auto expected = train();
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    const bool same = precision == api::Precision::kFp32;
    task_.config.training.precision = precision;
    task_.checkpoints = directory_.file(same ? "gpu32" : "gpu16");
    SingleProcess single;
    const auto found = train(single, *kernels::cuda_backend());
    ASSERT_TRUE(found.ok()) << found.error().message;
    const double accuracy = *metric(found->back(), "int8_validation_accuracy");
    EXPECT_NEAR(accuracy, *metric(found->back(), "validation_accuracy"), 0.031);
    if (!same) continue;
    EXPECT_NEAR(accuracy, *metric(expected->back(), "int8_validation_accuracy"), 0.011);
  }
}

TEST_F(Int8MetricsTest, AModelWithNothingToQuantizeIsRefused) {
  TrainingData text;
  text.images = synthetic_text(/*samples=*/40, /*length=*/8, /*vocabulary=*/11);
  for (std::int64_t i = 0; i < 30; ++i) {
    (i < 20 ? text.split.train : text.split.validation).push_back(i);
  }
  task_.config.data.format = "tokens";
  task_.config.model.layers = {embedding(4), simple(LayerType::kHead)};
  task_.config.training.norm_group.reset();
  data_ = std::move(text);
  const auto refused = train();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("training.quantize has nothing to do"));
}

TEST_F(Int8MetricsTest, AModelWithoutRangesIsNoInt8Model) {
  task_.config.training.quantize.reset();
  ASSERT_TRUE(train().ok());
  EXPECT_THAT(int8_model(saved(task_.checkpoints)).error().message,
              HasSubstr("the trial has no 8-bit network; train with training.quantize"));
  SavedModel between = saved(task_.checkpoints);
  between.config.training.quantize = api::QuantizeConfig{};
  EXPECT_THAT(int8_model(between).error().message,
              HasSubstr("the checkpoint of epoch 4 has no 8-bit network: one is made at rungs"));
}

}  // namespace
}  // namespace fettle::trainer
