// gpu: {memory: auto} from beginning to end: a Study of trainings of different sizes on 8 cards of
// 80 GB, against the same Study with a whole card for each trial.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "api/fields/quantity.h"
#include "tests/sim/simulation.h"

namespace fettle::sim {
namespace {

constexpr double kGb = 1e9;
constexpr std::int64_t kCards = 8;
constexpr double kCardBytes = 80 * kGb;

// Plan of the built-in trainer, whose size grows with the width: 3 to 48 GB, as an 8-point grid.
double planned(const Json& parameters) {
  return 3 * kGb * parameters.find("width")->as_double() / 64;
}
// Adds to the plan: the context, and workspaces that grow with the model.
double used(const Json& parameters) { return 1.04 * planned(parameters) + 0.6 * kGb; }

api::Study mixed_study(std::int64_t trials, std::int64_t parallelism) {
  api::Study study = digits_study();
  study.spec.parameters.resize(1);
  study.spec.parameters[0].sets = "training.learningRate";
  study.spec.parameters[0].min = 0.01;
  api::Parameter& width = study.spec.parameters.emplace_back();
  width.name = "width";
  width.type = api::ParameterType::kCategorical;
  width.sets = "model.layers[0].units";
  for (const int units : {64, 128, 192, 256, 384, 512, 768, 1024}) width.values.emplace_back(units);
  study.spec.budget.trials = trials;
  study.spec.budget.parallelism = parallelism;
  study.spec.budget.failures = 0;
  study.spec.trial.pod_template = {};
  api::TrainerConfig& trainer = study.spec.trial.trainer.emplace();
  trainer.data.train_images = "images";
  trainer.data.train_labels = "labels";
  trainer.model.layers.resize(2);
  for (api::LayerConfig& layer : trainer.model.layers) layer.units = 10;
  study.spec.trial.retries = 0;
  study.spec.trial.gpu.emplace();
  return study;
}

class GpuMemoryPacking : public testing::Test {
 protected:
  // Returns the most trials that trained at once.
  std::int64_t run(api::Study study, std::function<double(const Json&)> takes = used) {
    Simulation simulation(study, all_finish);
    simulation.runs().set_cards({kCards, kCardBytes, planned, std::move(takes)});
    simulation.run_to_end();
    study_ = simulation.study();
    trials_ = simulation.trials();
    return simulation.runs().most_training();
  }

  api::Study study_;
  std::vector<api::TrialPtr> trials_;
};

TEST_F(GpuMemoryPacking, TwoAndAHalfTimesTheTrialsTrainAtOnce) {
  api::Study study = mixed_study(96, 48);
  study.spec.trial.gpu->count = 1;
  const std::int64_t on_whole_cards = run(study);
  EXPECT_EQ(on_whole_cards, kCards);
  study.spec.trial.gpu = api::Gpu{};
  study.spec.trial.gpu->memory = api::kAutoAmount;
  const std::int64_t packed = run(study);
  RecordProperty("on whole cards", std::to_string(on_whole_cards));
  RecordProperty("packed", std::to_string(packed));
  std::printf("trials at once: %lld on whole cards, %lld packed\n",
              static_cast<long long>(on_whole_cards), static_cast<long long>(packed));
  EXPECT_GE(packed, kCards * 5 / 2);
  EXPECT_EQ(study_.status.trials.completed, 96);
  EXPECT_EQ(study_.status.trials.failed, 0) << "too little memory is no failure";
}

TEST_F(GpuMemoryPacking, OneTrialOfAShapeFindsOutAndTheOthersKnow) {
  api::Study study = mixed_study(60, 4);
  study.spec.trial.gpu->memory = api::kAutoAmount;
  run(study);
  std::int64_t asked_twice = 0;
  for (const api::TrialPtr& trial : trials_) {
    if (trial->status.runs.size() > 1) ++asked_twice;
    const double needs = used(trial->spec.parameters);
    ASSERT_TRUE(trial->spec.gpu_memory);
    EXPECT_GE(*trial->spec.gpu_memory, needs) << trial->metadata.name;
    EXPECT_LE(*trial->spec.gpu_memory, 1.3 * needs + 2 * kGb) << trial->metadata.name;
  }
  EXPECT_LE(asked_twice, 24) << "eight shapes, some of them by several trials at the same time";
  EXPECT_EQ(study_.status.trials.completed, 60);
}

TEST_F(GpuMemoryPacking, ATrialBeyondEveryCardIsInfeasible) {
  api::Study study = mixed_study(40, 8);
  study.spec.trial.gpu->memory = api::kAutoAmount;
  run(study, [](const Json& parameters) { return 2 * used(parameters); });
  EXPECT_EQ(study_.status.trials.failed, 0);
  EXPECT_GT(study_.status.trials.infeasible, 0) << "1024 units take 98 GB in the end";
  for (const api::TrialPtr& trial : trials_) {
    const bool fits = 2 * used(trial->spec.parameters) <= kCardBytes;
    EXPECT_EQ(trial->status.phase, api::TrialPhase::kCompleted);
    EXPECT_EQ(trial->spec.stop.has_value(), !fits) << trial->spec.parameters.dump();
    if (fits) continue;
    EXPECT_EQ(trial->spec.stop->reason, "NoSuchGpuMemory");
  }
}

}  // namespace
}  // namespace fettle::sim
