// The place of a training's samples changes only its speed: held by the device, streamed to it, or
// read by the reference. On the emulator, with streams that run late or ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/emulator/every_streams.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using kernels::emulator::Streams;
using testing::HasSubstr;

constexpr std::int64_t kEpochs = 2;
// The unused samples make the set large beside the training, so that it may not fit.
constexpr std::int64_t kUsed = 44;
constexpr std::size_t kRoomForAll = std::size_t{64} << 20;

struct Problem {
  std::string name;
  TrainingData data;
  TrainingTask task;
};

Problem problem_of(const std::string& name, ImageSet images) {
  Problem problem{name, {}, {}};
  problem.data.images = std::move(images);
  for (std::int64_t i = 0; i < kUsed; ++i) {
    Split& split = problem.data.split;
    (i < 32 ? split.train : split.validation).push_back(i * 11);
  }
  problem.data.normalize = {0.3, 0.2};
  problem.task.config.training.momentum = 0.9;
  problem.task.config.training.global_batch = 14;  // in micro-batches of 5, 5 and 4; the last of 4
  problem.task.config.training.max_per_worker = 5;
  problem.task.config.training.epochs = problem.task.until_epoch = kEpochs;
  problem.task.seed = 4;
  return problem;
}

Problem augmented_images() {
  Problem problem = problem_of("images", SyntheticImages(20'000).set());
  problem.data.test = SyntheticImages(9, 7).set();
  problem.task.config.data.augment = {.flip = true, .shift = 2};
  problem.task.config.model.layers = {conv(4), simple(LayerType::kRelu), dropout(0.2), linear(4)};
  return problem;
}

Problem text() {
  Problem problem =
      problem_of("text", synthetic_text(/*samples=*/80'000, /*length=*/8, /*vocabulary=*/11));
  problem.task.config.data.format = "tokens";
  problem.task.config.model.gpt = {.layers = 1, .heads = 2, .width = 8};
  return problem;
}

// State and output of a run.
struct Outcome {
  std::vector<std::map<std::string, double>> reports;
  std::string log;
  std::vector<float> weights;
};

Result<Outcome> train(std::unique_ptr<kernels::Backend> backend, const Problem& problem) {
  SingleProcess single;
  Outcome outcome;
  TrainingHooks hooks;
  hooks.report = [&](const EpochReport& report) {
    outcome.reports.emplace_back(report.metrics.begin(), report.metrics.end());
  };
  hooks.log = [&](const std::string& line) { outcome.log += line + "\n"; };
  hooks.should_stop = [] { return false; };
  FETTLE_ASSIGN(const auto training,
                Training::create_on(std::move(backend), problem.task, problem.data, single, hooks));
  FETTLE_TRY(training->run());
  outcome.weights = training->learner().network().parameters().weights.download();
  return outcome;
}

Result<Outcome> train_on_gpu(std::size_t memory, const Problem& problem) {
  const kernels::emulator::Machine before = kernels::emulator::machine();
  kernels::emulator::Machine machine = before;
  machine.memory = memory;
  kernels::emulator::set_machine(machine);
  auto outcome = train(*kernels::cuda_backend(), problem);
  kernels::emulator::set_machine(before);
  return outcome;
}

// Memory with which the samples are not held, because too little would be left.
std::size_t room_for_less_than_all(const Problem& problem) {
  const api::TrainerConfig& config = problem.task.config;
  const TrainingWorld world = world_of(problem.data, 1);
  const auto plan = plan_network(config.model, problem.data.format());
  return static_cast<std::size_t>(plan_memory(config, *plan, world, DataPlace::kHeld).total());
}

void expect_near(const Outcome& found, const Outcome& expected, double tolerance) {
  ASSERT_EQ(found.reports.size(), static_cast<std::size_t>(kEpochs));
  for (std::size_t i = 0; i < found.reports.size(); ++i) {
    for (const auto& [name, value] : expected.reports[i]) {
      if (name.find("loss") == std::string::npos && name.find("accuracy") == std::string::npos) {
        continue;
      }
      ASSERT_TRUE(found.reports[i].contains(name));
      EXPECT_NEAR(found.reports[i].at(name), value, tolerance) << name << " of epoch " << i;
    }
  }
  ASSERT_EQ(found.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < found.weights.size(); ++i) {
    ASSERT_NEAR(found.weights[i], expected.weights[i], tolerance) << "weight " << i;
  }
}

class DataPlaceTest : public testing::TestWithParam<Streams> {
 protected:
  DataPlaceTest() { kernels::emulator::set_streams(GetParam()); }
  ~DataPlaceTest() override { kernels::emulator::set_streams(Streams::kAtOnce); }

  void expect_the_same_everywhere(const Problem& problem) {
    const auto expected = train(*kernels::make_backend("reference", 1), problem);
    const auto held = train_on_gpu(kRoomForAll, problem);
    const auto streamed = train_on_gpu(room_for_less_than_all(problem), problem);
    for (const auto* outcome : {&expected, &held, &streamed}) {
      ASSERT_TRUE(outcome->ok()) << outcome->error().message;
    }
    EXPECT_THAT(expected->log, HasSubstr("data on the host,"));
    EXPECT_THAT(held->log, HasSubstr("data on the device,"));
    EXPECT_THAT(streamed->log, HasSubstr("data on the host, streamed to the device,"));
    expect_near(*held, *expected, 2e-5);
    expect_near(*streamed, *held, 0);
    for (const auto* outcome : {&held, &streamed}) {
      for (const auto& report : (*outcome)->reports) EXPECT_GE(report.at("data_wait"), 0);
    }
  }
};

TEST_P(DataPlaceTest, ChangesNothingOfATrainingOnAugmentedImages) {
  expect_the_same_everywhere(augmented_images());
}

TEST_P(DataPlaceTest, ChangesNothingOfATrainingOnText) { expect_the_same_everywhere(text()); }

INSTANTIATE_TEST_SUITE_P(, DataPlaceTest, testing::ValuesIn(kernels::emulator::kEveryStreams),
                         [](const auto& instance) {
                           return kernels::emulator::name_of(instance.param);
                         });

// Except for the operations' own workspaces, which are the same for both.
TEST(DataPlace, TheDeviceAllocatesWhatIsPlanned) {
  const Problem problem = augmented_images();
  const api::TrainerConfig& config = problem.task.config;
  const auto network = plan_network(config.model, problem.data.format());
  const BatchWriter writer(problem.data.normalize, {}, kernels::DataType::kFloat32, 0);
  std::map<DataPlace, std::int64_t> unplanned;
  for (const DataPlace place : {DataPlace::kStreamed, DataPlace::kHeld}) {
    const MemoryPlan plan = plan_memory(config, *network, world_of(problem.data, 1), place);
    std::optional<HeldSamples> held;
    if (place == DataPlace::kHeld) held = HeldSamples{&problem.data.images, &writer, &writer};
    SingleProcess single;
    auto backend = *kernels::cuda_backend();
    const std::int64_t before = *backend->free_memory();
    const auto learner =
        *Learner::create_on(std::move(backend), config.training, *network,
                            shape_of_step(config.training, plan.samples), 0, single, held);
    unplanned[place] = before - *learner->backend().free_memory() - plan.total();
  }
  constexpr std::int64_t kTablesAndPadding = 8 << 10;
  EXPECT_GE(unplanned[DataPlace::kStreamed], 0);
  EXPECT_NEAR(static_cast<double>(unplanned[DataPlace::kHeld]),
              static_cast<double>(unplanned[DataPlace::kStreamed]), kTablesAndPadding);
}

TEST(DataPlace, WhatTheDeviceHasNoRoomForIsRefusedBeforeItStarts) {
  const auto refused = train_on_gpu(16 << 10, augmented_images());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("of the GPU's memory, with 5 samples held"));
  EXPECT_THAT(refused.error().message, HasSubstr("KiB too little"));
}

}  // namespace
}  // namespace fettle::trainer
