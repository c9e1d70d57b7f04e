// The training step on the GPU backend, emulated: whole networks against the reference, step by
// step, with batches brought to the device, graphs, and results that are read two steps later.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_config.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "base/philox.h"
#include "kernels/backends/cuda/backend.h"
#include "trainer/model/gpt.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/step/precision.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

constexpr std::int64_t kBatch = 12;
constexpr std::int64_t kSteps = 6;

// State after a few steps, each of two micro-batches and a remainder.
struct Outcome {
  std::vector<double> losses;
  std::vector<bool> skipped;
  std::vector<float> weights;
  std::vector<float> statistics;
  Score evaluation;
};

struct Problem {
  std::string name;
  std::vector<api::LayerConfig> layers;
  bool text = false;
  bool residual_in_fp32 = false;
};

ImageSet data_of(const Problem& problem) {
  return problem.text ? synthetic_text(/*samples=*/64, /*length=*/8, /*vocabulary=*/11)
                      : SyntheticImages(64).set();
}

void take(const Learner::Step& step, Outcome& outcome) {
  outcome.losses.push_back(step.score.mean_loss());
  outcome.skipped.push_back(step.skipped);
}

Outcome train(std::unique_ptr<kernels::Backend> backend, const Problem& problem,
              const api::TrainingConfig& config) {
  const ImageSet data = data_of(problem);
  api::TrainerConfig trainer;
  trainer.model.layers = problem.layers;
  trainer.training = config;
  const SampleFormat format{data.shape(), data.classes(), problem.text, ""};
  SingleProcess single;
  constexpr std::int64_t kHeld = 5;
  auto learner = *Learner::create_on(std::move(backend), config, *plan_network(trainer, format),
                                     shape_of_step(config, kHeld), 4, single);
  if (config.precision == api::Precision::kFp16) {
    // Large enough that the first steps overflow.
    learner->optimizer().restore(0, {.scale = 0x1p22});
  }
  const BatchWriter writer({0.3, 0.2}, {}, data_type(config.precision), 4);
  Batch batch = writer.make_batch(data, kHeld);
  Outcome outcome;
  Indices all(static_cast<std::size_t>(data.size()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  for (std::int64_t number = 0; number < kSteps; ++number) {
    const std::span<const std::int64_t> samples = std::span(all).subspan(
        static_cast<std::size_t>(number * 7), static_cast<std::size_t>(kBatch));
    for (std::size_t begin = 0; begin < samples.size(); begin += kHeld) {
      const std::size_t size = std::min<std::size_t>(kHeld, samples.size() - begin);
      writer.write(data, samples.subspan(begin, size), number, batch);
      learner->add(batch, number, begin + kHeld >= samples.size());
    }
    EXPECT_TRUE(learner->finish_step({0.05, 0.05, 0.05}).ok());
    while (const auto step = learner->settle(learner->results_behind())) take(*step, outcome);
  }
  while (const auto step = learner->settle()) take(*step, outcome);
  outcome.weights = learner->network().parameters().weights.download();
  outcome.statistics = learner->network().parameters().statistics.download();
  outcome.evaluation = *learner->evaluate(data, all, writer);
  return outcome;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance) << what << " " << i;
  }
}

void expect_like_the_reference(const Problem& problem, api::Precision precision, double tolerance) {
  SCOPED_TRACE(problem.name + " " + std::string(api::to_string(precision)));
  api::TrainingConfig config;
  config.global_batch = kBatch;
  config.precision = precision;
  config.momentum = 0.9;
  config.weight_decay = 0.01;
  config.label_smoothing = 0.1;
  config.clip_norm = 1;
  config.residual_in_fp32 = problem.residual_in_fp32;
  const Outcome expected = train(*kernels::make_backend("reference", 1), problem, config);
  const Outcome found = train(*kernels::cuda_backend(), problem, config);
  ASSERT_EQ(found.losses.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(found.skipped, expected.skipped);
  EXPECT_EQ(found.skipped[0], precision == api::Precision::kFp16);
  EXPECT_FALSE(found.skipped.back());
  for (std::size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance) << "step " << i;
  }
  expect_near(found.weights, expected.weights, tolerance, "weight");
  expect_near(found.statistics, expected.statistics, tolerance, "statistic");
  EXPECT_NEAR(found.evaluation.mean_loss(), expected.evaluation.mean_loss(), tolerance);
  EXPECT_EQ(found.evaluation.samples, expected.evaluation.samples);
}

std::vector<Problem> problems() {
  const auto relu = simple(LayerType::kRelu);
  const auto norm = simple(LayerType::kBatchNorm);
  Problem mlp{"mlp", {linear(16), relu, dropout(0.2), linear(16), relu, linear(4)}};
  Problem cnn{"cnn",
              {conv(4), norm, relu, simple(LayerType::kMaxPool), simple(LayerType::kResidual),
               conv(4), norm, relu, simple(LayerType::kAdd), simple(LayerType::kResidual), conv(4),
               norm, simple(LayerType::kAdd), relu, simple(LayerType::kGlobalPool), linear(4)}};
  const auto residual = simple(LayerType::kResidual);
  const auto add = simple(LayerType::kAdd);
  Problem blocks{"blocks",
                 {conv(4), residual, conv(4), norm, add, relu, residual, conv(4), norm, add, relu,
                  simple(LayerType::kGlobalPool), linear(4)}};
  Problem text{"gpt", gpt({.layers = 1, .heads = 2, .width = 8}), true};
  Problem wide{"gpt with an fp32 residual stream", gpt({.layers = 2, .heads = 2, .width = 8}), true,
               true};
  return {mlp, cnn, blocks, text, wide};
}

TEST(TrainingOnCuda, IsTheReferencesInFp32) {
  for (const Problem& problem : problems()) {
    expect_like_the_reference(problem, api::Precision::kFp32, 2e-5);
  }
}

TEST(TrainingOnCuda, IsTheReferencesInBf16UpToItsRounding) {
  for (const Problem& problem : problems()) {
    expect_like_the_reference(problem, api::Precision::kBf16, 3e-2);
  }
}

// Both skip the steps that overflow, though on the GPU backend the host learns of it later.
TEST(TrainingOnCuda, IsTheReferencesInFp16WithItsSkippedSteps) {
  for (const Problem& problem : problems()) {
    expect_like_the_reference(problem, api::Precision::kFp16, 1e-2);
  }
}

// The emulator computes all precisions alike; the test checks which one operations are made with.
TEST(TrainingOnCuda, AutoIsTf32AndFp32IsExact) {
  const auto tf32_of = [](std::unique_ptr<kernels::Backend> backend, api::Precision precision) {
    api::ModelConfig model;
    model.layers = {linear(4)};
    api::TrainingConfig config;
    config.precision = precision;
    SingleProcess single;
    const auto learner =
        *Learner::create_on(std::move(backend), config, *plan_network(model, {8, 8, 1}, 4),
                            shape_of_step(config, 5), 0, single);
    EXPECT_EQ(learner->network().options().type, kernels::DataType::kFloat32);
    return learner->network().options().tf32;
  };
  EXPECT_TRUE(tf32_of(*kernels::cuda_backend(), api::Precision::kAuto));
  EXPECT_TRUE(tf32_of(*kernels::cuda_backend(), api::Precision::kTf32));
  EXPECT_FALSE(tf32_of(*kernels::cuda_backend(), api::Precision::kFp32));
  EXPECT_FALSE(tf32_of(*kernels::make_backend("reference", 1), api::Precision::kAuto));
  EXPECT_FALSE(tf32_of(*kernels::make_backend("reference", 1), api::Precision::kTf32));
}

TEST(TrainingOnCuda, ATraceShowsWhatTheDeviceDid) {
  const Problem problem = problems().front();
  const ImageSet data = data_of(problem);
  api::ModelConfig model;
  model.layers = problem.layers;
  api::TrainingConfig config;
  config.global_batch = kBatch;
  SingleProcess single;
  Trace trace(0, 2);
  {
    auto learner = *Learner::create_on(*kernels::cuda_backend(), config,
                                       *plan_network(model, data.shape(), data.classes()),
                                       shape_of_step(config, kBatch), 4, single);
    learner->set_trace(&trace);
    const BatchWriter writer({0.3, 0.2}, {}, data_type(config.precision), 4);
    Batch batch = writer.make_batch(data, kBatch);
    const Indices samples = keyed_permutation(kBatch, 1);
    while (!trace.is_full()) {
      trace.begin_step();
      writer.write(data, samples, 0, batch);
      learner->add(batch, 0, true);
      ASSERT_TRUE(learner->finish_step({0.05, 0.05, 0.05}).ok());
      learner->settle();
    }
  }
  const Json::Array events = parse_json(trace.to_json())->find("traceEvents")->as_array();
  std::map<std::string, int> on_device;
  for (const Json& event : events) {
    if (*event.find("ph") != Json("X") || *event.find("tid") != Json(1)) continue;
    ++on_device[event.find("cat")->as_string()];
    EXPECT_GE(event.find("dur")->as_double(), 0);
  }
  EXPECT_EQ(on_device["micro-batch"], 2);
  EXPECT_EQ(on_device["update"], 2);
  EXPECT_EQ(on_device["forward"], on_device["backward"]);
  EXPECT_GE(on_device["forward"], 2 * 3);
}

}  // namespace
}  // namespace fettle::trainer
