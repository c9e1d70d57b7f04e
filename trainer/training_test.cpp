#include "trainer/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <vector>

#include "trainer/checkpoint/identity.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

constexpr std::int64_t kSamples = 400;

double metric(const EpochReport& report, const std::string& name) {
  for (const auto& [key, value] : report.metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name << " in " << to_line(report);
  return 0;
}

// Results of a run of the trainer.
struct Outcome {
  Ending ending = Ending::kReached;
  std::vector<EpochReport> reports;
  std::vector<std::string> log;
  std::vector<float> weights;
};

class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    task_.config.data = write_synthetic(directory_, kSamples);
    task_.config.model.layers = {linear(32), simple(LayerType::kRelu), dropout(0.1), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdam;
    task_.config.training.global_batch = 32;  // 300 samples: ten steps, the last one partial
    task_.config.training.epochs = 4;
    task_.config.training.schedule = {.name = api::ScheduleKind::kCosine, .warmup_epochs = 0.5};
    task_.config.data.augment.shift = 1;
    task_.seed = 5;
    task_.until_epoch = 4;
    task_.checkpoints = directory_.file("checkpoints");
    task_.between_checkpoints = {};
  }

  // Runs `task`; stops after `steps` optimiser steps, if given.
  Result<Outcome> run(const TrainingTask& task, int steps = -1) {
    DataCache off("");
    FETTLE_ASSIGN(const TrainingData data, load_training_data(task.config.data, off));
    SingleProcess single;
    Outcome result;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) {
      result.reports.push_back(report);
      if (on_report_) on_report_(report.step);
      reported_ = report.step;
    };
    hooks.log = [&](const std::string& line) {
      result.log.push_back(line);
      if (on_log_) on_log_(line);
    };
    hooks.trace = trace_;
    hooks.should_stop = [&steps] { return steps >= 0 && --steps <= 0; };
    FETTLE_ASSIGN(const auto training, Training::create(task, data, single, hooks));
    FETTLE_ASSIGN(result.ending, training->run());
    result.weights = training->learner().network().parameters().weights.download();
    return result;
  }

  // The same task with a separate checkpoint directory.
  TrainingTask apart(const std::string& name) {
    TrainingTask task = task_;
    task.checkpoints = directory_.file(name);
    return task;
  }

  TemporaryDirectory directory_;
  Trace* trace_ = nullptr;
  std::function<void(std::int64_t step)> on_report_;
  std::function<void(const std::string& line)> on_log_;
  std::int64_t reported_ = 0;  // the newest step
  TrainingTask task_;
};

TEST_F(TrainingTest, LearnsWhatCanBeLearnt) {
  task_.config.training.learning_rate = 0.01;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  ASSERT_EQ(done->reports.size(), 4U);
  const EpochReport& last = done->reports.back();
  EXPECT_EQ(last.step, 4);
  EXPECT_TRUE(last.final_result);
  EXPECT_FALSE(done->reports[2].final_result);
  EXPECT_GT(metric(last, "validation_accuracy"), 0.95);
  EXPECT_LT(metric(last, "validation_loss"), metric(done->reports[0], "validation_loss"));
}

TEST_F(TrainingTest, ReportsWhatWasDoneAndHowFast) {
  task_.config.training.max_per_worker = 10;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const EpochReport& first = done->reports.front();
  EXPECT_EQ(metric(first, "global_batch"), 32);
  EXPECT_EQ(metric(first, "world_size"), 1);
  EXPECT_EQ(metric(first, "accumulation"), 4);
  EXPECT_GT(metric(first, "images_per_second"), 0);
  EXPECT_LE(metric(first, "step_ms_median"), metric(first, "step_ms_p95"));
  EXPECT_LE(metric(first, "step_ms_p95"), metric(first, "step_ms_p99"));
  EXPECT_GE(metric(first, "data_wait"), 0);
  EXPECT_LE(metric(first, "data_wait"), 1);
  EXPECT_GT(metric(first, "flops_per_second"), 0);
  EXPECT_GT(metric(first, "memory_mib"), 1);
  EXPECT_GT(metric(first, "seconds"), 0);
  EXPECT_GT(metric(first, "learning_rate"), metric(done->reports[3], "learning_rate"));
  EXPECT_TRUE(std::filesystem::exists(first.checkpoint) ||
              std::filesystem::exists(done->reports.back().checkpoint));
  EXPECT_EQ(first.checkpoint_step, 1);
}

TEST_F(TrainingTest, ReportsTheBatchThatTheSamplesAllow) {
  task_.config.training.global_batch = 1000;
  task_.config.training.max_per_worker = 100;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(metric(done->reports.front(), "global_batch"), 300);
  EXPECT_EQ(metric(done->reports.front(), "accumulation"), 3);
}

TEST_F(TrainingTest, TheBitsAreTheSameHoweverOftenItIsInterrupted) {
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    for (const auto& layers : {task_.config.model.layers,
                               std::vector<api::LayerConfig>{
                                   conv(3), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                                   simple(LayerType::kMaxPool), dropout(0.2), linear(4)}}) {
      task_.config.training.precision = precision;
      task_.config.model.layers = layers;
      TrainingTask straight = apart("straight");
      const auto whole = run(straight);
      ASSERT_TRUE(whole.ok()) << whole.error().message;

      // Two epochs, then promoted to four.
      TrainingTask task = apart("promoted");
      task.until_epoch = 2;
      const auto half = run(task);
      EXPECT_TRUE(half->reports.back().final_result);
      task.until_epoch = 4;
      const auto promoted = run(task);
      EXPECT_EQ(promoted->reports.size(), 3U) << "what it resumes from is said again";
      EXPECT_EQ(promoted->weights, whole->weights);

      // Stopped in the middle of epochs, at their ends and right after the start.
      task = apart("stopped");
      for (const int steps : {1, 6, 3, 10, 12}) {
        const auto stopped = run(task, steps);
        EXPECT_EQ(stopped->ending, Ending::kStopped);
      }
      const auto last = run(task);
      EXPECT_EQ(last->ending, Ending::kReached);
      EXPECT_EQ(last->weights, whole->weights);
      EXPECT_EQ(metric(last->reports.back(), "loss"), metric(whole->reports.back(), "loss"));

      for (const auto* name : {"straight", "promoted", "stopped"}) {
        std::filesystem::remove_all(directory_.file(name));
      }
    }
  }
}

TEST_F(TrainingTest, TrainsInFp16) {
  task_.config.training.precision = api::Precision::kFp16;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_GT(metric(done->reports.back(), "validation_accuracy"), 0.9);
  EXPECT_EQ(metric(done->reports.back(), "skipped_steps"), 0);
  EXPECT_EQ(metric(done->reports.back(), "loss_scale"), 65536);
}

// A batch of one that is classified entirely wrongly has a gradient of 1 at its label: times 65536
// it is infinite in fp16.
TrainingTask overflowing(TrainingTask task) {
  task.config.data.train_samples = 20;
  task.config.data.normalize = {0, 0.002};
  api::TrainingConfig& training = task.config.training;
  training.precision = api::Precision::kFp16;
  training.optimizer = api::OptimizerKind::kSgd;
  training.global_batch = 1;
  training.learning_rate = 1e-6;
  training.schedule = {.name = api::ScheduleKind::kLinear};
  training.epochs = task.until_epoch = 2;
  return task;
}

TEST_F(TrainingTest, TheScheduleGoesByStepsThatWereNotSkipped) {
  const TrainingTask task = overflowing(task_);
  const auto done = run(task);
  ASSERT_TRUE(done.ok()) << done.error().message;
  ASSERT_EQ(done->ending, Ending::kReached);
  const EpochReport& report = done->reports.back();
  const double skipped = metric(report, "skipped_steps");
  EXPECT_GE(skipped, 1);
  EXPECT_EQ(metric(report, "loss_scale"), std::ldexp(65536.0, -static_cast<int>(skipped)));
  const double expected = schedule_factor(task.config.training.schedule, {20, 2},
                                          39 - static_cast<std::int64_t>(skipped));
  EXPECT_NEAR(metric(report, "learning_rate"), 1e-6 * expected, 1e-12);
}

TEST_F(TrainingTest, TheLossScaleIsResumedBitForBit) {
  const auto whole = run(overflowing(apart("whole")));
  const TrainingTask task = overflowing(apart("parts"));
  for (const int steps : {1, 2, 5, 20}) ASSERT_EQ(run(task, steps)->ending, Ending::kStopped);
  const auto last = run(task);
  EXPECT_EQ(last->weights, whole->weights);
  EXPECT_EQ(metric(last->reports.back(), "skipped_steps"),
            metric(whole->reports.back(), "skipped_steps"));
}

TEST_F(TrainingTest, FailsInFp16WhereNoScaleHelps) {
  task_.config.training.precision = api::Precision::kFp16;
  task_.config.data.normalize = {0, 1e-6};  // inputs up to a million: infinite in fp16
  task_.config.training.global_batch = 4;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->ending, Ending::kDiverged);
  EXPECT_THAT(done->log, testing::Contains(HasSubstr("even at the smallest loss scale")));
}

TEST_F(TrainingTest, AProcessThatDiedResumesFromTheNewestCheckpoint) {
  const auto whole = run(apart("straight"));
  TrainingTask task = apart("killed");
  task.keep.newest = 4;
  ASSERT_TRUE(run(task, 25).ok());
  // The checkpoint of the requested stop is removed; those of the epochs remain.
  std::filesystem::remove(task.checkpoints + "/update-25.checkpoint");
  const auto resumed = run(task);
  EXPECT_EQ(resumed->reports.back().step, 4);
  EXPECT_EQ(resumed->weights, whole->weights);
}

// Killed between the checkpoint of an epoch and its report: without a report the curve would lack
// that step.
TEST_F(TrainingTest, AnEpochWhoseReportWasLostIsReportedByTheNextRun) {
  const auto whole = run(apart("straight"));
  TrainingTask task = apart("killed");
  ASSERT_TRUE(run(task, 20).ok());  // both epochs are whole; assume the second report is lost
  const auto resumed = run(task);
  ASSERT_EQ(resumed->reports.size(), 3U);
  const EpochReport& again = resumed->reports.front();
  EXPECT_EQ(again.step, 2);
  EXPECT_EQ(metric(again, "validation_loss"), metric(whole->reports[1], "validation_loss"));
  EXPECT_EQ(metric(again, "loss"), metric(whole->reports[1], "loss"));
  EXPECT_THAT(again.checkpoint, HasSubstr("update-20.epoch-2.checkpoint"));
  EXPECT_EQ(again.checkpoint_step, 2);
  EXPECT_FALSE(again.final_result);
}

TEST_F(TrainingTest, AGentleStopReportsTheCheckpointAndNoMetrics) {
  const auto stopped = run(task_, 14);
  ASSERT_EQ(stopped->reports.size(), 2U);
  const EpochReport& report = stopped->reports.back();
  EXPECT_EQ(report.step, 1);
  EXPECT_TRUE(report.metrics.empty());
  EXPECT_FALSE(report.final_result);
  EXPECT_THAT(report.checkpoint, HasSubstr("update-14.checkpoint"));
}

TEST_F(TrainingTest, ATrialThatIsDoneReportsItsResultAgain) {
  const auto done = run(task_);
  const auto again = run(task_);
  ASSERT_EQ(again->reports.size(), 1U);
  EXPECT_TRUE(again->reports[0].final_result);
  EXPECT_EQ(metric(again->reports[0], "validation_accuracy"),
            metric(done->reports.back(), "validation_accuracy"));
}

TEST_F(TrainingTest, ADivergingConfigurationEndsWithNaN) {
  task_.config.training.optimizer = api::OptimizerKind::kSgd;
  task_.config.training.learning_rate = 1e30;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->ending, Ending::kDiverged);
  const EpochReport& report = done->reports.back();
  EXPECT_TRUE(report.final_result);
  EXPECT_EQ(report.step, 4);
  EXPECT_TRUE(std::isnan(metric(report, "validation_accuracy")));
  EXPECT_THAT(done->log.back(), HasSubstr("the loss is not finite in epoch 1"));
}

TEST_F(TrainingTest, TheTestSetIsScoredOnceAtTheEnd) {
  task_.config.data.test_images = task_.config.data.train_images;
  task_.config.data.test_labels = task_.config.data.train_labels;
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_GT(metric(done->reports.back(), "test_accuracy"), 0);
  for (const auto& [name, value] : done->reports[2].metrics) EXPECT_NE(name, "test_accuracy");
}

TEST_F(TrainingTest, RefusesACheckpointOfAnotherConfiguration) {
  ASSERT_TRUE(run(task_).ok());
  task_.config.training.learning_rate = 0.5;
  const auto refused = run(task_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("belongs to another training"));
  EXPECT_THAT(refused.error().message, HasSubstr("training.learningRate is 0.01 there and 0.5"));
}

// A file that grew between two runs would hold out samples that the first run trained on.
TEST_F(TrainingTest, RefusesToResumeOnAFileThatGrewOrShrank) {
  ASSERT_TRUE(run(task_, 12).ok());
  for (const std::int64_t samples : {kSamples + 60, kSamples - 20}) {
    const std::int64_t held_out = task_.config.data.validation_samples;
    write_synthetic(directory_, samples);  // at the same paths
    task_.config.data.validation_samples = held_out;
    const auto refused = run(task_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(refused.error().message,
                HasSubstr("was trained on other data: samples: 400 there, " +
                          std::to_string(samples) + " here"));
    EXPECT_THAT(refused.error().message, HasSubstr("put the files back"));
  }
  write_synthetic(directory_, kSamples);
  EXPECT_TRUE(run(task_).ok()) << "the files are back";
}

TEST_F(TrainingTest, RefusesToResumeOnOtherContentOfTheSameLength) {
  ASSERT_TRUE(run(task_, 12).ok());
  for (const auto& path : {task_.config.data.train_images, task_.config.data.train_labels}) {
    const std::string before = *read_file(path);
    std::string changed = before;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    ASSERT_TRUE(write_file(path, changed).ok());
    const auto refused = run(task_);
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_THAT(refused.error().message, HasSubstr("was trained on other data: "));
    ASSERT_TRUE(write_file(path, before).ok());
  }
}

TEST_F(TrainingTest, RefusesAParentThatWasTrainedOnOtherData) {
  TrainingTask parent = apart("parent");
  parent.until_epoch = 2;
  ASSERT_TRUE(run(parent).ok());
  write_synthetic(directory_, kSamples + 60);
  TrainingTask child = apart("child");
  child.parent = {parent.checkpoints, 2};
  EXPECT_THAT(run(child).error().message, HasSubstr("was trained on other data: samples: 400"));
}

// Writes in place, as `cp` and numpy.save do.
void overwrite(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out) << content;
}

TEST_F(TrainingTest, EndsWhereADataFileIsWrittenToWhileItTrains) {
  const std::string path = task_.config.data.train_images;
  const std::string before = *read_file(path);
  std::string changed = before;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  for (const auto& [content, words] :
       {std::pair(changed, path + " was written to while it was trained on"),
        std::pair(changed + "more", path + " has 25620 bytes instead of 25616 while")}) {
    // Set explicitly: the file system's clock may not have advanced.
    std::filesystem::last_write_time(path, std::filesystem::file_time_type{});
    on_report_ = [&, content = content](std::int64_t step) {
      if (step == 1) overwrite(path, content);
    };
    TrainingTask task = apart("apart" + std::to_string(content.size()));
    const auto ended = run(task);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, ErrorCode::kIo);
    EXPECT_THAT(ended.error().message, HasSubstr(words));
    EXPECT_EQ(reported_, 1) << "nothing of the epoch that may have seen both";
    ASSERT_TRUE(write_file(path, before).ok());
  }
}

// The samples in use are unchanged.
TEST_F(TrainingTest, ADataFileMayGrowOrBeTouchedOrReplacedWhileItTrains) {
  const auto whole = run(apart("straight"));
  const std::string path = task_.config.data.train_images;
  const std::string before = *read_file(path);
  on_report_ = [&](std::int64_t step) {
    if (step == 1) overwrite(path, before);  // the same once more
    if (step == 2) overwrite(path, before + "more");
    if (step != 3) return;
    EXPECT_TRUE(write_file(path, "another file").ok());  // replaces it by a rename
  };
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->weights, whole->weights);
}

TEST_F(TrainingTest, WaitsForAParentsCheckpointThatShowsLate) {
  TrainingTask parent = apart("parent");
  parent.until_epoch = 2;
  parent.keep.newest = 1;
  ASSERT_TRUE(run(parent).ok());
  TrainingTask child = apart("child");
  child.parent = {parent.checkpoints, 2};
  const std::string path = CheckpointStore(parent.checkpoints).newest()->path;
  std::filesystem::rename(path, path + ".hidden");
  child.parent_patience = std::chrono::milliseconds(0);
  EXPECT_THAT(run(child).error().message, HasSubstr("there is no checkpoint of step 2"));

  child.parent_patience = std::chrono::minutes(4);
  on_log_ = [&](const std::string& line) {
    if (line.ends_with("waits for it")) std::filesystem::rename(path + ".hidden", path);
  };
  const auto done = run(child);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->reports.front().step, 3);
}

TEST_F(TrainingTest, AChildMayTrainOnFewerOfTheSameSamples) {
  TrainingTask parent = apart("parent");
  parent.until_epoch = 2;
  ASSERT_TRUE(run(parent).ok());
  TrainingTask child = apart("child");
  child.parent = {parent.checkpoints, 2};
  child.config.data.train_samples = 200;  // another mean
  const auto done = run(child);
  ASSERT_TRUE(done.ok()) << done.error().message;
}

TEST_F(TrainingTest, ResumesFromACheckpointThatDoesNotSayOnWhichDataItWasTrained) {
  ASSERT_TRUE(run(task_, 12).ok());
  const CheckpointStore store(task_.checkpoints);
  Checkpoint older = *store.newest()->checkpoint;
  EXPECT_FALSE(older.data.is_null());
  older.data = Json();
  ASSERT_TRUE(store.save(older).ok());
  EXPECT_TRUE(run(task_).ok());
}

TEST_F(TrainingTest, TheFirstLineNamesTheShapeAndTheContentOfTheSamples) {
  const auto done = run(task_);
  ASSERT_TRUE(done.ok());
  EXPECT_THAT(
      done->log,
      testing::Contains(testing::ContainsRegex("images 8×8×1, 4 classes, content [0-9a-f]{8}")));
}

TEST(Identity, TestFilesAreNoPartOfIt) {
  api::TrainerConfig one;
  api::TrainerConfig other;
  other.data.test_images = other.data.test_labels = other.data.test_text = "/elsewhere";
  EXPECT_EQ(settings_of(one, 1), settings_of(other, 1));
}

TEST(Identity, LayoutsDifferWhereTheSameWeightsComputeSomethingElse) {
  const auto layout = [](std::int64_t stride, std::int64_t padding,
                         api::GeluApproximation approximation) {
    api::LayerConfig gelu = simple(LayerType::kGelu);
    gelu.approximate = approximation;
    api::LayerConfig first = conv(4);
    first.stride = stride;
    first.padding = padding;
    api::ModelConfig model;
    model.layers = {first, gelu, linear(4)};
    return layout_of(*plan_network(model, {2, 2, 1}, 4));
  };
  // With 2×2 pixels a kernel of 3 gives one pixel for each of these strides.
  const std::string usual = layout(2, 1, api::GeluApproximation::kNone);
  EXPECT_NE(usual, layout(3, 1, api::GeluApproximation::kNone)) << "stride";
  EXPECT_NE(usual, layout(2, 1, api::GeluApproximation::kTanh));
  EXPECT_NE(layout(5, 1, api::GeluApproximation::kNone),
            layout(5, 2, api::GeluApproximation::kNone));
}

TEST_F(TrainingTest, WhatChangesOnlySpeedMayChange) {
  ASSERT_TRUE(run(task_, 12).ok());
  task_.config.training.max_per_worker = 16;
  task_.config.training.threads = 2;
  EXPECT_TRUE(run(task_).ok());
}

TEST_F(TrainingTest, AChildStartsFromItsParent) {
  TrainingTask parent = apart("parent");
  parent.until_epoch = 2;
  ASSERT_TRUE(run(parent).ok());
  TrainingTask child = apart("child");
  child.parent = {parent.checkpoints, 2};
  child.seed = 77;
  child.config.training.learning_rate = 0.02;
  const auto done = run(child);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->reports.front().step, 3);
  EXPECT_THAT(done->log.front(), HasSubstr("starts from step 2 of its parent"));

  child = apart("other");
  child.parent = {parent.checkpoints, 2};
  child.config.model.layers[0] = linear(16);
  EXPECT_THAT(run(child).error().message, HasSubstr("belongs to another model"));
  child.parent = {parent.checkpoints, 3};
  EXPECT_THAT(run(child).error().message, HasSubstr("no checkpoint of step 3"));
}

TEST_F(TrainingTest, AChildWhoseOptimizerKeepsOtherStateStartsThatAfresh) {
  TrainingTask parent = apart("parent");
  parent.config.training.optimizer = api::OptimizerKind::kRmsprop;
  parent.until_epoch = 2;
  parent.config.training.momentum = 0.9;  // a mean square and a momentum buffer
  ASSERT_TRUE(run(parent).ok());
  TrainingTask child = apart("child");
  child.parent = {parent.checkpoints, 2};
  child.config.training.optimizer = api::OptimizerKind::kRmsprop;  // a mean square alone

  DataCache off("");
  const auto data = load_training_data(child.config.data, off);
  SingleProcess single;
  TrainingHooks hooks;
  hooks.log = [](const std::string&) {};
  const auto training = Training::create(child, *data, single, hooks);
  ASSERT_TRUE(training.ok()) << training.error().message;
  const Optimizer& optimizer = (*training)->learner().optimizer();
  EXPECT_EQ(optimizer.control().updates, 0);
  EXPECT_THAT(optimizer.state1.download(), testing::Each(0.0F));
}

TEST_F(TrainingTest, RefusesItsOwnCheckpointWithoutTheOptimizersState) {
  const auto half = run(task_, 14);
  const std::string path = half->reports.back().checkpoint;
  Checkpoint checkpoint = *decode_checkpoint(*read_file(path), path);
  checkpoint.state2.pop_back();
  ASSERT_TRUE(write_file(path, encode_checkpoint(checkpoint)).ok());
  const auto refused = run(task_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message,
              HasSubstr(path + " has another number of optimiser values than the model"));
}

TEST_F(TrainingTest, DamagedCheckpointsAreSkippedAndNamed) {
  task_.keep.newest = 4;
  const auto whole = run(task_);
  const std::string newest = whole->reports.back().checkpoint;
  ASSERT_TRUE(write_file(newest, read_file(newest)->substr(0, 100)).ok());
  const auto again = run(task_);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_THAT(again->log.front(), HasSubstr("skipped a checkpoint: " + newest + " is cut short"));
  EXPECT_EQ(again->weights, whole->weights);
}

TEST_F(TrainingTest, RefusesAModelThatDoesNotFitTheData) {
  task_.config.model.layers.back() = linear(10);
  EXPECT_THAT(run(task_).error().message,
              HasSubstr("ends with 10 outputs, but the data have 4 classes"));
  task_.until_epoch = 5;
  EXPECT_THAT(run(task_).error().message, HasSubstr("until epoch 5, but training.epochs is 4"));
}

// Downloading the weights and the optimiser's state takes longer than an epoch of a small network.
TEST_F(TrainingTest, WithoutAPlaceForCheckpointsNoneIsTaken) {
  task_.until_epoch = 2;
  for (const bool keeps : {true, false}) {
    if (!keeps) task_.checkpoints.clear();
    Trace trace(0, 1000);
    trace_ = &trace;
    const auto ran = run(task_);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(trace.to_json().find("checkpoint") != std::string::npos, keeps);
    EXPECT_EQ(ran->reports.back().checkpoint.empty(), !keeps);
  }
}

}  // namespace
}  // namespace fettle::trainer
