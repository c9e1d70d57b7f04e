// The planned memory of a GPU against a training's use, workspaces of operations included. On the
// emulated GPU, which counts every block.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "trainer/files/export.h"
#include "trainer/files/teacher.h"
#include "trainer/int8_metrics.h"
#include "trainer/model/layer_configs.h"
#include "trainer/program/dry_run.h"
#include "trainer/step/precision.h"
#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;
using testing::Not;

struct Problem {
  std::string name;
  TrainingData data;
  TrainingTask task;
};

Problem problem_of(const std::string& name, ImageSet images) {
  Problem problem{name, {}, {}};
  problem.data.images = std::move(images);
  for (std::int64_t i = 0; i < 60; ++i) {
    Split& split = problem.data.split;
    (i < 40 ? split.train : split.validation).push_back(i);
  }
  problem.data.normalize = {0.3, 0.2};
  problem.task.config.training.global_batch = 24;  // in micro-batches of 16 and 8
  problem.task.config.training.max_per_worker = 16;
  problem.task.config.training.epochs = problem.task.until_epoch = 1;
  return problem;
}

Problem images() {
  Problem problem = problem_of("images", SyntheticImages(200).set());
  problem.task.config.training.norm_group = 8;
  problem.task.config.training.optimizer = api::OptimizerKind::kLamb;
  problem.task.config.model.layers = {conv(16),
                                      simple(LayerType::kBatchNorm),
                                      simple(LayerType::kRelu),
                                      simple(LayerType::kMaxPool),
                                      linear(96),
                                      linear(4)};
  return problem;
}

Problem blocks() {
  Problem problem = problem_of("blocks", SyntheticImages(200).set());
  problem.task.config.training.norm_group = 8;
  problem.task.config.model.layers = {conv(16), simple(LayerType::kMaxPool)};
  for (int block = 0; block < 2; ++block) {
    for (const api::LayerConfig& layer :
         {simple(LayerType::kResidual), conv(16), simple(LayerType::kBatchNorm),
          simple(LayerType::kAdd), simple(LayerType::kRelu)}) {
      problem.task.config.model.layers.push_back(layer);
    }
  }
  problem.task.config.model.layers.push_back(linear(96));
  problem.task.config.model.layers.push_back(linear(4));
  return problem;
}

Problem text() {
  Problem problem =
      problem_of("text", synthetic_text(/*samples=*/100, /*length=*/32, /*vocabulary=*/300));
  problem.task.config.data.format = "tokens";
  problem.task.config.training.optimizer = api::OptimizerKind::kAdamW;
  problem.task.config.model.gpt = {.layers = 1, .heads = 2, .width = 32};
  return problem;
}

// Adds a teacher with the layers of this network, and a mask. `path`: its file.
void distil_and_prune(Problem& problem, const Problem& of, const std::string& path) {
  SavedModel teacher;
  teacher.config = of.task.config;
  teacher.format = problem.data.format();
  teacher.normalize = problem.data.normalize;
  teacher.plan = *plan_network(teacher.config.model, teacher.format);
  InitialValues values = initial_values(teacher.plan, 1);
  teacher.weights = std::move(values.weights);
  teacher.statistics = std::move(values.statistics);
  ASSERT_TRUE(
      write_file(path, export_files(teacher, {}, "safetensors", path)->front().content).ok());
  problem.task.config.training.distill = api::DistillConfig{.teacher = path};
  problem.task.config.training.prune = api::PruneConfig{.sparsity = 0.5};
}

struct Found {
  MemoryPlan planned;
  double reported = 0;     // the plan, as the training reports it
  std::int64_t taken = 0;  // by the whole training, after its last epoch
};

Found plan_and_train(const Problem& problem) {
  TrainingDevice device(*kernels::cuda_backend());
  const api::TrainerConfig& config = problem.task.config;
  const NetworkPlan network = *plan_network(config, problem.data.format());
  TrainingWorld world = world_of(problem.data, 1);
  const auto teacher = *read_teacher(config, problem.data);
  if (teacher) world.teacher = memory_of_teacher(teacher->plan, config.training.precision);
  world.int8_network = *int8_network_bytes(config, problem.data.format(), world);
  const std::int64_t samples = plan_step(config, world).dealing.limit;
  const std::int64_t free = *device.backend().free_memory();
  const auto workspaces = workspaces_of(device, network, teacher ? &teacher->plan : nullptr,
                                        plan_options(device.backend(), config.training, samples));
  EXPECT_TRUE(workspaces.ok());
  EXPECT_EQ(*device.backend().free_memory(), free) << "a plan takes no memory";
  Found found;
  found.planned = plan_memory(config, network, world, DataPlace::kHeld, *workspaces);
  SingleProcess single;
  TrainingHooks hooks;
  hooks.report = [&](const EpochReport& report) {
    for (const auto& [name, value] : report.metrics) {
      if (name == "gpu_memory_planned_bytes") found.reported = value;
    }
  };
  hooks.log = [](const std::string&) {};
  hooks.should_stop = [] { return false; };
  auto training = Training::create_on(device, problem.task, problem.data, single, hooks);
  EXPECT_TRUE(training.ok()) << training.error().message;
  EXPECT_TRUE((*training)->run().ok());
  found.taken = free - *device.backend().free_memory();
  return found;
}

std::int64_t part(const MemoryPlan& memory, std::string_view name) {
  const auto found = std::ranges::find(memory.parts, name, &MemoryPart::name);
  EXPECT_NE(found, memory.parts.end()) << name;
  return found == memory.parts.end() ? 0 : memory.bytes_of(*found);
}

// Tables of the optimiser, a step's control and sums, and alignment of blocks to 256 bytes.
constexpr std::int64_t kSmallThings = 24 * 1024;

TEST(PlannedMemory, IsWhatATrainingTakes) {
  for (Problem problem : {images(), blocks(), text()}) {
    for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
      SCOPED_TRACE(problem.name + (precision == api::Precision::kBf16 ? " bf16" : " fp32"));
      problem.task.config.training.precision = precision;
      const Found found = plan_and_train(problem);
      const std::int64_t planned = found.planned.total();
      EXPECT_GE(found.taken, planned) << "at least";
      EXPECT_LE(found.taken, planned + kSmallThings);
      EXPECT_EQ(found.reported, static_cast<double>(planned));
      EXPECT_GT(part(found.planned, "shared_workspace"), kSmallThings) << "or nothing is shown";
      EXPECT_GT(part(found.planned, "layer_workspaces"), 0);
    }
  }
}

TEST(PlannedMemory, HasTheTeacherAndTheMask) {
  const TemporaryDirectory directory;
  const struct {
    Problem student, teacher;
  } cases[] = {{images(), blocks()}, {blocks(), images()}, {text(), text()}};
  for (const auto& [student, teacher] : cases) {
    for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
      SCOPED_TRACE(student.name + (precision == api::Precision::kBf16 ? " bf16" : " fp32"));
      Problem problem = student;
      problem.task.config.training.precision = precision;
      const std::int64_t alone = plan_and_train(problem).planned.total();
      distil_and_prune(problem, teacher, directory.file("teacher"));
      const Found found = plan_and_train(problem);
      const std::int64_t planned = found.planned.total();
      EXPECT_GE(found.taken, planned) << "at least";
      EXPECT_LE(found.taken, planned + kSmallThings);
      EXPECT_EQ(found.reported, static_cast<double>(planned));
      EXPECT_GE(planned,
                alone + part(found.planned, "teacher") + part(found.planned, "prune_mask"));
      EXPECT_GT(part(found.planned, "teacher"), 0);
      EXPECT_GT(part(found.planned, "prune_mask"), 0);
    }
  }
}

// The 8-bit network is gone when the training ends.
TEST(PlannedMemory, HasTheGridsOfATrainingInEightBits) {
  for (Problem problem : {images(), text()}) {
    for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
      SCOPED_TRACE(problem.name + (precision == api::Precision::kBf16 ? " bf16" : " fp32"));
      problem.task.config.training.precision = precision;
      problem.task.config.training.norm_group = 8;
      problem.task.config.training.quantize =
          api::QuantizeConfig{.samples = 8, .method = api::QuantizeMethod::kQat, .from_epoch = 0};
      const Found found = plan_and_train(problem);
      const std::int64_t planned = found.planned.total();
      const std::int64_t of_network = part(found.planned, "int8_network");
      EXPECT_GE(found.taken, planned - of_network) << "at least";
      EXPECT_LE(found.taken, planned + kSmallThings);
      EXPECT_EQ(found.reported, static_cast<double>(planned));
      EXPECT_GT(part(found.planned, "weight_grids"), kSmallThings) << "or nothing is shown";
      EXPECT_GT(of_network, kSmallThings);
    }
  }
}

TEST(PlannedMemory, TheDryRunNamesTheWorkspaces) {
  const Problem problem = images();
  const api::TrainerConfig& config = problem.task.config;
  const NetworkPlan network = *plan_network(config, problem.data.format());
  const TrainingWorld world = world_of(problem.data, 1);
  const AvailableMemory available{std::int64_t{1} << 30, true, std::int64_t{1} << 30};
  const kernels::Workspace workspaces{3 << 20, 5 << 10, 2 << 20};
  const DryRun known = plan_run(config, network, world, available, workspaces);
  EXPECT_THAT(to_text(known), HasSubstr("  shared workspace      3.00 MiB\n"));
  EXPECT_THAT(to_text(known), HasSubstr("  branch workspace      2.00 MiB\n"));
  EXPECT_THAT(to_text(known), HasSubstr("  layer workspaces      5.00 KiB\n"));
  EXPECT_EQ(to_json(known).find("memory")->find("shared_workspace")->as_integer(), 3 << 20);
  const DryRun unknown = plan_run(config, network, world, available);
  EXPECT_THAT(to_text(unknown), HasSubstr("workspaces            not known"));
  EXPECT_EQ(known.memory.total() - unknown.memory.total(), workspaces.total());
  const DryRun of_cpu = plan_run(config, network, world, {.host = 1 << 30});
  EXPECT_THAT(to_text(of_cpu), Not(HasSubstr("workspace")));
}

// With fewer samples workspaces count in full, with more they grow in proportion.
TEST(PlannedMemory, SamplesThatFitLeaveRoomForWorkspaces) {
  MemoryPlan memory;
  memory.samples = 10;
  memory.parts = {{"a", 1000, 100}, {"b", 500, 0, false, /*is_workspace=*/true}};
  EXPECT_EQ(memory.total(), 2500);
  const struct {
    std::int64_t bytes;
    std::optional<std::int64_t> samples;
  } cases[] = {{1599, std::nullopt}, {1600, 1},  {2400, 9},  {2499, 9},
               {2500, 10},           {2649, 10}, {2650, 11}, {4000, 20}};
  for (const auto& [bytes, samples] : cases) EXPECT_EQ(memory.samples_fitting(bytes), samples);
}

}  // namespace
}  // namespace fettle::trainer
