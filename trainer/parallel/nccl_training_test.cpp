// Steps of several workers with an emulated GPU each: their sums leave during the backward pass,
// the host waits for none of them, and the results are those of one worker, whatever is late, and
// whichever worker is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/every_streams.h"
#include "kernels/emulator/nccl.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/step/precision.h"
#include "trainer/testing/gpus.h"
#include "trainer/testing/step.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/threads.h"
#include "trainer/testing/weights.h"

namespace fettle::trainer {
namespace {

using kernels::emulator::Streams;

constexpr std::int64_t kBatch = 7;
constexpr std::int64_t kHeld = 1;
constexpr std::int64_t kSteps = 3;
constexpr std::int64_t kLeastMessage = 200;  // floats: several messages a step

// State and results of a run at one worker.
struct Outcome {
  std::vector<double> losses;  // of the steps with results
  std::vector<bool> skipped;
  bool lost = false;        // the next step's result was its loss
  double communicated = 0;  // seconds
  std::vector<float> weights;
  std::vector<float> statistics;
};

struct Steps {
  api::TrainingConfig config;
  std::int64_t batch = kBatch;
  std::int64_t steps = kSteps;
  std::optional<std::int64_t> leaves_after;  // steps, after which the last rank leaves
};

Steps steps_of(api::Precision precision = api::Precision::kFp32) {
  Steps run;
  run.config.global_batch = run.batch;
  run.config.momentum = 0.9;
  run.config.precision = precision;
  run.config.clip_norm = 1;
  return run;
}

NetworkPlan plan_of(const ImageSet& images) {
  api::ModelConfig model;
  const auto relu = simple(api::LayerType::kRelu);
  model.layers = {conv(4),    simple(api::LayerType::kBatchNorm),
                  relu,       simple(api::LayerType::kMaxPool),
                  linear(16), relu,
                  linear(20), relu,
                  linear(12), relu,
                  linear(4)};
  return *plan_network(model, images.shape(), images.classes());
}

void take(const Learner::Step& step, Outcome& outcome) {
  outcome.lost = outcome.lost || step.lost;
  if (outcome.lost) return;
  outcome.losses.push_back(step.score.mean_loss());
  outcome.skipped.push_back(step.skipped);
}

// Enqueues the worker's part of one step, in micro-batches of one sample: the statistics of
// batchNorm must not depend on the world size.
void enqueue_step(Learner& learner, const ImageSet& images, const BatchWriter& writer, Batch& held,
                  const Steps& run, std::int64_t number, const Collective& world) {
  const Range share = share_of({0, run.batch}, world.world_size(), world.rank());
  for (std::int64_t i = share.begin; i < share.end; ++i) {
    const std::vector<std::int64_t> one = {number * 7 + i};
    writer.write(images, one, number, held);
    learner.add(held, number, i + 1 == share.end);
  }
}

Outcome train(std::unique_ptr<kernels::Backend> backend, const Steps& run, Collective& world) {
  const ImageSet images = SyntheticImages(64).set();
  auto learner =
      *Learner::create_on(std::move(backend), run.config, plan_of(images),
                          shape_of_step(run.config, kHeld, world.world_size()), 4, world);
  if (run.config.precision == api::Precision::kFp16) {
    learner->optimizer().restore(0, {.scale = 0x1p22});  // the first steps overflow
  }
  const BatchWriter writer({0.3, 0.2}, {}, data_type(run.config.precision), 4);
  Batch held = writer.make_batch(images, kHeld);
  Outcome outcome;
  const bool leaves = run.leaves_after && world.rank() == world.world_size() - 1;
  const std::int64_t steps = leaves ? *run.leaves_after : run.steps;
  for (std::int64_t number = 0; number < steps && !outcome.lost; ++number) {
    enqueue_step(*learner, images, writer, held, run, number, world);
    if (!learner->finish_step({0.05, 0.05, 0.05}).ok()) break;
    while (const auto step = learner->settle(learner->results_behind())) take(*step, outcome);
  }
  while (const auto step = learner->settle()) take(*step, outcome);
  outcome.communicated = learner->communicated();
  outcome.weights = outcome.lost ? learner->network().parameters().weights.download()
                                 : weights_of(*learner, world);
  outcome.statistics = learner->network().parameters().statistics.download();
  return outcome;
}

Outcome train_alone(const Steps& run) {
  SingleProcess alone;
  return train(*kernels::cuda_backend(), run, alone);
}

std::vector<Outcome> train_on_gpus(std::int64_t world_size, const Steps& run) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(world_size));
  Gpus gpus{.world_size = world_size};
  gpus.settings.least_message = kLeastMessage;
  gpus.run([&](Membership& membership, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto rank = static_cast<std::size_t>(membership.rank());
    outcomes[rank] = train(*kernels::cuda_backend(), run, **made);
    // No worker leaves while others are at work, except one that is to be lost.
    const bool all_stay = !run.leaves_after;
    EXPECT_TRUE(!all_stay || (*made)->barrier().ok());
  });
  return outcomes;
}

// The same on CPUs.
Outcome train_on_cpus(std::int64_t world_size, const Steps& run) {
  Outcome outcome;
  Threads::run(world_size, [&](Collective& world) {
    Outcome mine = train(*kernels::make_backend("reference", 1), run, world);
    if (world.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance, const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance) << what << " " << i;
  }
}

void expect_like(const Outcome& found, const Outcome& expected, double tolerance) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  EXPECT_EQ(found.skipped, expected.skipped);
  for (std::size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance) << "step " << i;
  }
  expect_near(found.weights, expected.weights, tolerance, "weight");
  expect_near(found.statistics, expected.statistics, tolerance, "statistic");
}

void expect_same_bits(const std::vector<Outcome>& outcomes, const Outcome& expected) {
  for (const Outcome& one : outcomes) {
    EXPECT_EQ(one.losses, expected.losses);
    EXPECT_EQ(one.weights, expected.weights);
    EXPECT_EQ(one.statistics, expected.statistics);
  }
}

// A communicator that lets the backend work exactly to the point where a sum may begin, and checks
// which gradients are complete there.
class Witness final : public Collective, public DeviceCollective {
 public:
  struct Seen {
    bool complete;     // at least some of its gradients are complete
    bool first_layer;  // the first layer's gradient is complete, too
  };

  std::int64_t world_size() const override { return 2; }
  std::int64_t rank() const override { return 0; }
  Status sum(std::span<float>) override { return success(); }
  Status sum(std::span<double>) override { return success(); }
  Status broadcast(std::span<std::byte>) override { return success(); }
  DeviceCollective* on_device() override { return this; }

  std::int64_t least_message() const override { return kLeastMessage; }
  Status enqueue_all_reduce(std::span<float> values, kernels::Event& after) override {
    cudaEventSynchronize(static_cast<cudaEvent_t>(after.handle()));
    sums.push_back({is_there(values), is_there(first_layer)});
    return success();
  }
  Status enqueue_all_gather(std::span<float>, std::span<const std::int64_t>,
                            kernels::Event&) override {
    return success();
  }
  void record(kernels::Event& event) override { event.record(); }
  const std::int32_t* given_up() const override { return nullptr; }
  Status health() override { return success(); }

  std::span<const float> first_layer;
  std::vector<Seen> sums;

 private:
  static bool is_there(std::span<const float> gradients) {
    return std::ranges::any_of(gradients, [](float value) { return value != 0; });
  }
};

TEST(SumsOnGpus, BeginWhileTheBackwardPassOfTheLastMicroBatchIsUnderWay) {
  kernels::emulator::set_streams(Streams::kLate);
  const ImageSet images = SyntheticImages(64).set();
  Witness world;
  const Steps run = steps_of();
  auto learner =
      *Learner::create_on(*kernels::cuda_backend(), run.config, plan_of(images),
                          shape_of_step(run.config, kHeld, world.world_size()), 4, world);
  const NetworkPlan& plan = learner->network().plan();
  const BatchWriter writer({0.3, 0.2}, {}, kernels::DataType::kFloat32, 4);
  Batch held = writer.make_batch(images, kHeld);
  for (int step = 0; step < 3; ++step) {
    learner->network().parameters().gradients.set_zero();
    learner->backend().wait();
    world.first_layer = learner->network().parameters().all_gradients().first(
        static_cast<std::size_t>(plan.layers[0].weights.count));
    world.sums.clear();
    writer.write(images, std::vector<std::int64_t>{step}, 0, held);
    learner->add(held, 0, true);
    ASSERT_EQ(world.sums.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(world.sums[i].complete) << i;
      EXPECT_EQ(world.sums[i].first_layer, i == 3) << i;
    }
    ASSERT_TRUE(learner->finish_step({0.05, 0.05, 0.05}).ok());
    EXPECT_EQ(world.sums.size(), 5U) << "and the rest with the end of the step";
    (void)learner->settle();
  }
  learner.reset();
  kernels::emulator::set_streams(Streams::kAtOnce);
}

class TrainingOnGpus : public testing::TestWithParam<Streams> {
 protected:
  TrainingOnGpus() {
    kernels::emulator::set_streams(GetParam());
    kernels::emulator::set_nccl_polls(GetParam() == Streams::kAtOnce ? 0 : 2);
  }
  ~TrainingOnGpus() override {
    kernels::emulator::set_streams(Streams::kAtOnce);
    kernels::emulator::set_nccl_polls(0);
  }
};

TEST_P(TrainingOnGpus, IsThatOfOneWorkerAndOfCpusForEveryWorldSize) {
  const Steps run = steps_of();
  ASSERT_EQ(plan_messages(plan_of(SyntheticImages(64).set()), 5000, kLeastMessage).early.size(),
            4U);
  const Outcome alone = train_alone(run);
  ASSERT_EQ(alone.losses.size(), static_cast<std::size_t>(kSteps));
  for (const std::int64_t world_size : {2, 3, 4}) {
    SCOPED_TRACE(testing::Message() << "W=" << world_size);
    const std::vector<Outcome> several = train_on_gpus(world_size, run);
    expect_same_bits(several, several[0]);
    expect_like(several[0], alone, 2e-5);
    for (const Outcome& one : several) EXPECT_GT(one.communicated, 0);
  }
  EXPECT_EQ(alone.communicated, 0);
  expect_like(train_on_cpus(3, run), alone, 2e-5);
}

// Some workers have no sample, and enqueue the same messages.
TEST_P(TrainingOnGpus, OfABatchSmallerThanTheWorldIsThatOfOneWorker) {
  Steps run = steps_of();
  run.config.global_batch = run.batch = 2;
  const std::vector<Outcome> several = train_on_gpus(4, run);
  expect_same_bits(several, several[0]);
  expect_like(several[0], train_alone(run), 2e-5);
}

// All workers skip the same steps; their hosts learn of it later.
TEST_P(TrainingOnGpus, InFp16SkipsTheStepsThatOneWorkerSkips) {
  Steps run = steps_of(api::Precision::kFp16);
  run.steps = 6;
  const Outcome alone = train_alone(run);
  ASSERT_TRUE(alone.skipped[0]);
  ASSERT_FALSE(alone.skipped.back());
  expect_like(train_on_gpus(3, run)[1], alone, 2e-2);
}

TEST_P(TrainingOnGpus, AShardedOptimiserChangesNoBit) {
  Steps run = steps_of(api::Precision::kBf16);
  run.config.optimizer = api::OptimizerKind::kAdam;
  const std::vector<Outcome> whole = train_on_gpus(3, run);
  run.config.shard_optimizer = true;
  expect_same_bits(train_on_gpus(3, run), whole[0]);
}

// The hosts have enqueued further steps, which must leave no trace.
TEST_P(TrainingOnGpus, ALostWorkerLeavesTheOthersAtTheLastStepThatAllMade) {
  constexpr std::int64_t kMade = 2;
  Steps run = steps_of();
  run.steps = kMade;
  const std::vector<Outcome> undisturbed = train_on_gpus(3, run);
  run.steps = 100;
  run.leaves_after = kMade;
  const std::vector<Outcome> disturbed = train_on_gpus(3, run);
  for (const std::size_t rank : {0, 1}) {
    EXPECT_EQ(disturbed[rank].losses, undisturbed[0].losses);
    EXPECT_EQ(disturbed[rank].weights, undisturbed[0].weights);
    EXPECT_EQ(disturbed[rank].statistics, undisturbed[0].statistics);
  }
}

INSTANTIATE_TEST_SUITE_P(, TrainingOnGpus, testing::ValuesIn(kernels::emulator::kEveryStreams),
                         [](const auto& instance) { return name_of(instance.param); });

}  // namespace
}  // namespace fettle::trainer
