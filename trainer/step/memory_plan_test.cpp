// The plan against arithmetic by hand, and against allocations: every call of
// kernels::allocate_aligned() in this program is counted (CMakeLists.txt has the linker wrap it).
#include "trainer/step/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "kernels/aligned.h"
#include "trainer/model/layer_configs.h"
#include "trainer/step/learner.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace {

std::int64_t& allocated() {
  static std::int64_t bytes = 0;
  return bytes;
}

}  // namespace

extern "C" {
// The names are the linker's.
// NOLINTBEGIN
void* __real__ZN6fettle7kernels16allocate_alignedEl(std::int64_t bytes);
void* __wrap__ZN6fettle7kernels16allocate_alignedEl(std::int64_t bytes) {
  allocated() += bytes;
  return __real__ZN6fettle7kernels16allocate_alignedEl(bytes);
}
// NOLINTEND
}

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
const kernels::ImageShape kInput{8, 8, 1};

class MemoryPlanTest : public testing::Test {
 protected:
  MemoryPlanTest() {
    config_.model.layers = {linear(32), simple(LayerType::kRelu), linear(4)};
    config_.training.backend = api::BackendKind::kReference;
    config_.training.global_batch = 50;
  }
  NetworkPlan network() const { return *plan_network(config_.model, kInput, 4); }
  MemoryPlan plan(std::int64_t world_size = 1) const {
    return plan_memory(config_, network(), {world_size, 300});
  }
  std::int64_t part(const std::string& name) const {
    const MemoryPlan memory = plan();
    for (const MemoryPart& part : memory.parts) {
      if (part.name == name) return memory.bytes_of(part);
    }
    ADD_FAILURE() << "no part " << name;
    return 0;
  }
  // Bytes that a learner for the plan allocates.
  std::int64_t bytes_of_learner() const {
    SingleProcess single;
    const std::int64_t before = allocated();
    const auto learner =
        Learner::create(config_.training, network(), plan_step(config_, {1, 300}), 1, single);
    EXPECT_TRUE(learner.ok());
    return allocated() - before;
  }

  api::TrainerConfig config_;
};

TEST_F(MemoryPlanTest, PartByPart) {
  const std::int64_t parameters = 64 * 32 + 32 * 4 + 32 + 16;  // blocks begin on cache lines
  EXPECT_EQ(part("parameters"), parameters * 4);
  EXPECT_EQ(part("rounded_copies"), 0);
  EXPECT_EQ(part("gradients"), (parameters + kStepSums) * 4);
  EXPECT_EQ(part("optimizer_state"), 0);
  // The hidden layer's output and its gradient; the logits, later the gradient by them.
  EXPECT_EQ(part("activations"), 50 * 3 * 32 * 4) << "in lines of 32 elements a sample";
  EXPECT_EQ(part("batches"), 50 * (3 + 1) * (64 * 4 + 4 + 8));
  config_.training.precision = api::Precision::kBf16;
  config_.training.optimizer = api::OptimizerKind::kAdamW;
  EXPECT_EQ(part("rounded_copies"), parameters * 2);
  EXPECT_EQ(part("optimizer_state"), 2 * parameters * 4);
  EXPECT_EQ(part("activations"), 50 * 3 * 32 * 2);
}

// A learner also allocates the workspaces of its operations. For twice the samples it grows by the
// planned number if the workspaces do not grow, as in fp32.
TEST_F(MemoryPlanTest, IsWhatIsAllocated) {
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    for (const auto optimizer : {api::OptimizerKind::kSgd, api::OptimizerKind::kAdam}) {
      config_.training.precision = precision;
      config_.training.optimizer = optimizer;
      config_.training.max_per_worker = 10;
      const std::int64_t small = bytes_of_learner();
      std::int64_t planned = 0;
      for (const char* name :
           {"parameters", "rounded_copies", "gradients", "optimizer_state", "activations"}) {
        planned += part(name);
      }
      EXPECT_GE(small, planned);
      const std::int64_t small_plan = part("activations");
      config_.training.max_per_worker = 20;
      const std::int64_t growth = part("activations") - small_plan;
      EXPECT_GE(bytes_of_learner() - small, growth);
      if (precision != api::Precision::kFp32) continue;
      EXPECT_EQ(bytes_of_learner() - small, growth);
    }
  }
}

// Weights in 16 bits are shared out; operations read the biases in fp32, so these stay whole.
TEST_F(MemoryPlanTest, AShardedOptimiserSharesOutTheMasters) {
  config_.training.shard_optimizer = true;
  config_.training.optimizer = api::OptimizerKind::kAdamW;
  const std::int64_t weights = 64 * 32 + 32 * 4;
  const std::int64_t biases = 32 + 16;
  const auto parts_of = [this](std::int64_t world_size) {
    std::map<std::string_view, std::int64_t> parts;
    for (const MemoryPart& part : plan(world_size).parts) parts[part.name] = part.fixed;
    return parts;
  };
  EXPECT_EQ(parts_of(2)["parameters"], (weights + biases) * 4) << "in fp32";
  config_.training.precision = api::Precision::kBf16;
  EXPECT_EQ(parts_of(1)["parameters"], (weights + biases) * 4);
  const std::int64_t shard = 1120;  // half of all, in whole cache lines
  EXPECT_EQ(parts_of(2)["parameters"], (shard + biases) * 4);
  EXPECT_EQ(parts_of(2)["optimizer_state"], 2 * shard * 4);
  EXPECT_EQ(parts_of(2)["rounded_copies"], (weights + biases) * 2);
}

TEST_F(MemoryPlanTest, TheBatchesOfALoaderAreWhatIsAllocated) {
  const ImageSet images = SyntheticImages(300).set();
  const Indices all = keyed_permutation(300, 1);
  const BatchWriter writer({0.5, 0.2}, {}, kernels::DataType::kFloat32, 1);
  LoaderSettings settings;
  settings.global_batch = settings.max_samples = 50;
  const std::int64_t before = allocated();
  const Loader loader(images, all, writer, settings, {});
  const std::int64_t labels_and_indices = 50 * Loader::kSlots * (4 + 8);
  EXPECT_EQ(allocated() - before + labels_and_indices, part("batches") * Loader::kSlots / 4);
}

TEST_F(MemoryPlanTest, ACheckpointIsAsLargeAsItSays) {
  const TemporaryDirectory directory;
  TrainingTask task;
  task.config = config_;
  task.config.data = write_synthetic(directory, 400);
  task.config.training.optimizer = api::OptimizerKind::kLamb;
  task.checkpoints = directory.file("checkpoints");
  DataCache off("");
  const auto data = load_training_data(task.config.data, off);
  SingleProcess single;
  TrainingHooks hooks;
  std::string path;
  hooks.report = [&](const EpochReport& report) { path = report.checkpoint; };
  hooks.log = [](const std::string&) {};
  hooks.should_stop = [] { return false; };
  ASSERT_TRUE((*Training::create(task, *data, single, hooks))->run().ok());
  const auto found = static_cast<double>(std::filesystem::file_size(path));
  const MemoryPlan planned = plan_memory(task.config, network(), {1, 300});
  EXPECT_NEAR(static_cast<double>(planned.checkpoint_file), found, 512) << "but for the scores";
}

TEST_F(MemoryPlanTest, ADeviceHoldsItsPartsAndTheHostTheRest) {
  const TrainingWorld world{1, 300, 5000, /*keeps_checkpoints=*/true};
  const auto of = [&](DataPlace place) { return plan_memory(config_, network(), world, place); };
  constexpr std::int64_t kBatch = 50 * (64 * 4 + 4), kIndices = 50 * 8;
  const MemoryPlan shared = of(DataPlace::kShared);
  const std::int64_t copy = shared.checkpoint_file;
  const std::int64_t rest = shared.total() - copy - 4 * (kBatch + kIndices);
  EXPECT_EQ(shared.host_total(), 0);
  const MemoryPlan streamed = of(DataPlace::kStreamed);
  EXPECT_EQ(streamed.total(), rest + 2 * (kBatch + kIndices));
  EXPECT_EQ(streamed.host_total(), copy + (4 + 2) * (kBatch + kIndices));
  const MemoryPlan held = of(DataPlace::kHeld);
  EXPECT_EQ(held.total(), rest + kBatch + 2 * kIndices + 5000);
  EXPECT_EQ(held.host_total(), copy + (3 + 2) * kIndices);
}

// A lower bound: other workers write no checkpoints, nor does a worker without a directory.
TEST_F(MemoryPlanTest, OnlyOneThatKeepsCheckpointsHasACopyOfThem) {
  const MemoryPlan with = plan_memory(config_, network(), {1, 300, 0, true});
  EXPECT_EQ(with.total() - plan().total(), with.checkpoint_file);
}

TEST_F(MemoryPlanTest, ADeviceHoldsTheSamplesIfAnEighthOfItsFreeMemoryIsLeftOver) {
  const TrainingWorld world{1, 300, 5000};
  const std::int64_t needed = plan_memory(config_, network(), world, DataPlace::kHeld).total();
  const auto place = [&](const AvailableMemory& available) {
    return place_data(config_, network(), world, available);
  };
  const std::int64_t just_enough = needed + (needed + 6) / 7;
  EXPECT_EQ(place({kMiB, true, just_enough}), DataPlace::kHeld);
  EXPECT_EQ(place({kMiB, true, just_enough - 2}), DataPlace::kStreamed);
  EXPECT_EQ(place({kMiB, true, 0}), DataPlace::kStreamed);
  EXPECT_EQ(place({kMiB, false, {}}), DataPlace::kShared);
  EXPECT_EQ(place({kMiB, true, {}}), DataPlace::kHeld) << "for all that is known";
}

TEST_F(MemoryPlanTest, EachSideIsCheckedByItself) {
  const MemoryPlan plan = plan_memory(config_, network(), {1, 300}, DataPlace::kStreamed);
  const std::int64_t host = plan.host_total(), device = plan.total();
  const auto said = [&](const AvailableMemory& available) {
    const Status status = check_memory(config_, plan, available);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(said({host, true, device}), "");
  EXPECT_EQ(said({host, true, {}}), "") << "nothing is known of it";
  EXPECT_THAT(said({host, true, device - 1024}),
              testing::AllOf(HasSubstr("of the GPU's memory, with 50 samples held at once"),
                             HasSubstr("1.00 KiB too little; training.maxPerWorker up to 4")));
  EXPECT_THAT(said({host - 1024, true, device}),
              testing::AllOf(HasSubstr("beside the GPU the training needs at least"),
                             HasSubstr("1.00 KiB too little; a smaller training.maxPerWorker")));
  config_.model.layers.insert(config_.model.layers.begin(), simple(LayerType::kBatchNorm));
  EXPECT_THAT(said({host - 1024, true, device}), HasSubstr("a smaller training.normGroup"));
}

TEST_F(MemoryPlanTest, AWorkerHoldsItsShareOrWhatItMay) {
  EXPECT_EQ(plan().samples, 50);
  EXPECT_EQ(plan(4).samples, 13);
  config_.training.max_per_worker = 8;
  EXPECT_EQ(plan(4).samples, 7) << "13 are two micro-batches";
  EXPECT_EQ(plan_step(config_, {4, 300}).accumulation, 2);
  EXPECT_EQ(plan_step(config_, {1, 300}).samples(), 50);
  EXPECT_EQ(plan_step(config_, {1, 20}).global_batch, 20) << "there are no more";
  EXPECT_EQ(plan_step(config_, {1, 20}).configured_batch, 50);
  config_.training.global_batch.reset();
  config_.training.batch_per_worker = 16;
  EXPECT_EQ(plan_step(config_, {4, 300}).global_batch, 64);
}

TEST_F(MemoryPlanTest, TheLargestThatFits) {
  MemoryPlan memory;
  memory.samples = 100;
  memory.parts = {{"a", 1000, 0}, {"b", 0, 30}, {"c", 24, 20}};
  EXPECT_EQ(memory.total(), 6024);
  EXPECT_EQ(memory.samples_fitting(6024), 100);
  EXPECT_EQ(memory.samples_fitting(6023), 99);
  EXPECT_EQ(memory.samples_fitting(1074), 1);
  EXPECT_EQ(memory.samples_fitting(1073), std::nullopt);
}

TEST_F(MemoryPlanTest, TooLittleIsRefusedWithTheWayOut) {
  config_.training.global_batch = 1 << 20;
  const MemoryPlan memory = plan_memory(config_, network(), {1, 1 << 20});
  EXPECT_TRUE(check_memory(config_, memory, {.host = memory.total()}).ok());
  const auto said = [&](std::int64_t bytes) {
    const Status status = check_memory(config_, memory, {.host = bytes});
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(said(100 * kMiB), HasSubstr("needs at least 1.42 GiB of memory, with 1048576 samples "
                                          "held at once; 100 MiB are there, 1.32 GiB too little; "
                                          "training.maxPerWorker up to"));
  EXPECT_THAT(said(1), HasSubstr("too little even for one sample; use a smaller model"));
  config_.model.layers.insert(config_.model.layers.begin(), simple(LayerType::kBatchNorm));
  EXPECT_THAT(said(100 * kMiB), HasSubstr("training.normGroup up to"));
}

}  // namespace
}  // namespace fettle::trainer
