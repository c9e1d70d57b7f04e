// Whole trainings with recomputation against the same trainings without: the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "kernels/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kEpochs = 2;
constexpr std::int64_t kHeldAtOnce = 8;

// Results of a training.
struct Outcome {
  std::vector<double> losses;  // of training and validation, by epoch
  std::vector<float> weights;
  std::vector<float> statistics;
  std::int64_t repeated = 0;
  std::string refusal{};  // why it did not train; "" = it did
  bool operator==(const Outcome&) const = default;
};

api::ModelConfig mlp() {
  api::ModelConfig model;
  for (int i = 0; i < 5; ++i) {
    model.layers.push_back(linear(64));
    model.layers.push_back(simple(LayerType::kGelu));
  }
  model.layers.push_back(linear(SyntheticImages::kClasses));
  return model;
}

api::ModelConfig cnn() {
  api::ModelConfig model;
  for (const std::int64_t channels : {8, 8, 16, 16}) {
    model.layers.insert(model.layers.end(), {conv(channels), simple(LayerType::kBatchNorm),
                                             simple(LayerType::kRelu), dropout(0.2)});
    if (channels == 8) continue;
    model.layers.push_back(simple(LayerType::kMaxPool));
  }
  model.layers.push_back(linear(SyntheticImages::kClasses));
  return model;
}

api::ModelConfig residual() {
  api::ModelConfig model;
  model.layers = {conv(8), simple(LayerType::kBatchNorm), simple(LayerType::kRelu)};
  for (int i = 0; i < 4; ++i) {
    model.layers.insert(model.layers.end(),
                        {simple(LayerType::kResidual), conv(8), simple(LayerType::kBatchNorm),
                         simple(LayerType::kRelu), conv(8), simple(LayerType::kBatchNorm),
                         simple(LayerType::kAdd), simple(LayerType::kRelu)});
  }
  model.layers.push_back(simple(LayerType::kGlobalPool));
  model.layers.push_back(linear(SyntheticImages::kClasses));
  return model;
}

api::ModelConfig small_gpt() {
  api::ModelConfig model;
  model.gpt = api::GptConfig{.layers = 3, .heads = 2, .width = 16};
  model.dropout = 0.1;
  return model;
}

struct Case {
  const char* name;
  api::ModelConfig (*model)();
  bool text = false;
  bool residual_in_fp32 = false;
};

class Recomputation : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  TrainingTask job_for(const Case& what) const {
    TrainingTask task;
    task.config.model = what.model();
    if (what.text) {
      std::string text;
      Random random(1);
      while (text.size() < 900) text += static_cast<char>('a' + random.below(5));
      EXPECT_TRUE(write_file(directory_.file("text"), text).ok());
      task.config.data.format = "text";
      task.config.data.train_text = directory_.file("text");
      task.config.data.context = 12;
    } else {
      task.config.data = write_synthetic(directory_, 120);
    }
    api::TrainingConfig& training = task.config.training;
    if (what.residual_in_fp32) {
      training.residual_in_fp32 = true;
      training.precision = api::Precision::kBf16;
    }
    training.optimizer = api::OptimizerKind::kAdam;
    training.learning_rate = 0.01;
    training.global_batch = 4 * kHeldAtOnce;
    training.epochs = task.until_epoch = kEpochs;
    training.backend = std::get<0>(GetParam()) == "onednn" ? api::BackendKind::kOnednn
                                                           : api::BackendKind::kReference;
    if (api::has_batch_norm(task.config.model)) {
      training.norm_group = kHeldAtOnce;
    } else {
      training.max_per_worker = kHeldAtOnce;
    }
    return task;
  }

  // Two workers with two micro-batches a step.
  static Outcome train(const TrainingTask& task) {
    DataCache off("");
    const auto data = load_training_data(task.config.data, off);
    Outcome outcome;
    Threads::run(2, [&](Collective& member) {
      TrainingHooks hooks;
      hooks.report = [&](const EpochReport& report) {
        for (const auto& [name, value] : report.metrics) {
          if (name.ends_with("loss")) outcome.losses.push_back(value);
        }
      };
      hooks.log = [](const std::string&) {};
      hooks.should_stop = [] { return false; };
      auto made = Training::create(task, *data, member, hooks);
      if (!made.ok()) {
        if (member.rank() == 0) outcome.refusal = made.error().message;
        return;
      }
      const auto training = *std::move(made);
      EXPECT_TRUE(training->run().ok());
      if (member.rank() != 0) return;
      Network& network = training->learner().network();
      outcome.weights = network.parameters().weights.download();
      outcome.statistics = network.parameters().statistics.download();
      outcome.repeated = network.activations().repeated;
    });
    return outcome;
  }

  TemporaryDirectory directory_;
};

TEST_P(Recomputation, ChangesNoBit) {
  const auto& [backend, what] = GetParam();
  if (!kernels::make_backend(backend, 1).ok()) GTEST_SKIP() << "not in this build";
  TrainingTask task = job_for(what);
  const Outcome kept = train(task);
  if (backend == std::string("onednn") &&
      kept.refusal.find("no bf16 arithmetic") != std::string::npos) {
    GTEST_SKIP() << kept.refusal;
  }
  ASSERT_EQ(kept.refusal, "");
  task.config.training.recompute = true;
  Outcome repeated = train(task);
  EXPECT_EQ(kept.losses.size(), 2 * kEpochs);
  EXPECT_EQ(kept.repeated, 0);
  EXPECT_GT(repeated.repeated, 0) << "the test is of no use";
  repeated.repeated = 0;
  EXPECT_EQ(repeated, kept);
}

INSTANTIATE_TEST_SUITE_P(
    , Recomputation,
    testing::Combine(testing::Values("reference", "onednn"),
                     testing::Values(Case{"Mlp", mlp}, Case{"Cnn", cnn}, Case{"Residual", residual},
                                     Case{"Gpt", small_gpt, true},
                                     Case{"GptWithFp32Residuals", small_gpt, true, true})),
    [](const auto& test) { return std::get<0>(test.param) + std::get<1>(test.param).name; });

}  // namespace
}  // namespace fettle::trainer
