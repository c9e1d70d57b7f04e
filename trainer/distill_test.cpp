// Trainings that learn from a teacher (training.distill).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "trainer/files/exported_model.h"
#include "trainer/files/safetensors.h"
#include "trainer/model/layer_configs.h"
#include "trainer/testing/run_training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::HasSubstr;

class DistillTest : public testing::Test {
 protected:
  DistillTest() {
    task_.config.data = write_synthetic(directory_, 240);
    task_.config.data.augment.shift = 1;
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdam;
    task_.config.training.global_batch = 24;
    task_.config.training.epochs = task_.until_epoch = 2;
    task_.seed = 5;
    task_.between_checkpoints = {};
    teacher_ = task_;
    teacher_.config.model.layers = {conv(4),
                                    simple(LayerType::kBatchNorm),
                                    simple(LayerType::kRelu),
                                    simple(LayerType::kMaxPool),
                                    dropout(0.1),
                                    linear(4)};
    task_.config.model.layers = {linear(8), simple(LayerType::kRelu), linear(4)};
    task_.config.training.distill = api::DistillConfig{.teacher = directory_.file("teacher")};
  }

  void train_teacher() { write_model(run_training(teacher_).last, directory_.file("teacher")); }

  TrainingTask apart(const std::string& name) const {
    TrainingTask task = task_;
    task.checkpoints = directory_.file(name);
    return task;
  }

  std::string refusal(const TrainingTask& task) { return run_training(task).error; }

  TemporaryDirectory directory_;
  TrainingTask teacher_, task_;
};

TEST_F(DistillTest, TheTeacherChangesWhatIsLearntAndNotHowItIsJudged) {
  train_teacher();
  TrainingTask alone = task_;
  alone.config.training.distill.reset();
  const RanTraining taught = run_training(task_), plain = run_training(alone);
  ASSERT_EQ(taught.error, "");
  EXPECT_NE(taught.weights, plain.weights);
  EXPECT_GT(taught.metric("loss"), 0);
  // Without weight only the labels count: the same bits as alone.
  task_.config.training.distill->weight = 0;
  const RanTraining unheard = run_training(task_);
  EXPECT_EQ(unheard.weights, plain.weights);
  EXPECT_EQ(unheard.metric("validation_loss"), plain.metric("validation_loss"));
}

TEST_F(DistillTest, TheStudentComesToAgreeWithItsTeacher) {
  train_teacher();
  task_.config.training.distill->weight = 1;
  task_.config.training.distill->temperature = 2;
  task_.config.training.learning_rate = 0.01;
  task_.config.training.epochs = task_.until_epoch = 1;
  const double first = run_training(task_).metric("loss");
  task_.config.training.epochs = task_.until_epoch = 8;
  EXPECT_LT(run_training(task_).metric("loss"), first / 2);
}

TEST_F(DistillTest, TheBitsAreTheSameHoweverOftenItIsInterrupted) {
  train_teacher();
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    task_.config.training.precision = precision;
    const std::string name = precision == api::Precision::kFp32 ? "fp32" : "bf16";
    const RanTraining whole = run_training(apart(name));
    const TrainingTask stopped = apart(name + " stopped");
    for (const int steps : {1, 4, 6}) {
      EXPECT_EQ(run_training(stopped, {.stop_after = steps}).ending, Ending::kStopped);
    }
    EXPECT_EQ(run_training(stopped).weights, whole.weights);
  }
}

TEST_F(DistillTest, WorkersMicroBatchesAndRecomputationLearnTheSame) {
  train_teacher();
  const RanTraining one = run_training(task_);
  const auto expect_near = [&](const RanTraining& other) {
    ASSERT_EQ(other.error, "");
    ASSERT_EQ(other.weights[0].size(), one.weights[0].size());
    for (std::size_t i = 0; i < one.weights[0].size(); ++i) {
      ASSERT_NEAR(other.weights[0][i], one.weights[0][i], 1e-5);
    }
    EXPECT_NEAR(other.metric("loss"), one.metric("loss"), 1e-5);
  };
  const RanTraining two = run_training(task_, {.world_size = 2});
  expect_near(two);
  EXPECT_EQ(two.weights[0], two.weights[1]);
  TrainingTask pieces = task_;
  pieces.config.training.max_per_worker = 7;
  expect_near(run_training(pieces));
  TrainingTask again = task_;
  again.config.training.recompute = true;
  EXPECT_EQ(run_training(again).weights, one.weights);
}

// With its graphs, and samples that the device holds.
TEST_F(DistillTest, LearnsTheSameOnAGpu) {
  train_teacher();
  for (const auto precision : {api::Precision::kFp32, api::Precision::kFp16}) {
    task_.config.training.precision = precision;
    const RanTraining on_cpu = run_training(task_);
    const RanTraining on_gpu =
        run_training(task_, {.backend = [] { return *kernels::cuda_backend(); }});
    ASSERT_EQ(on_gpu.error, "");
    const double tolerance = precision == api::Precision::kFp32 ? 1e-4 : 2e-2;
    EXPECT_NEAR(on_gpu.metric("loss"), on_cpu.metric("loss"), tolerance);
    EXPECT_NEAR(on_gpu.metric("validation_loss"), on_cpu.metric("validation_loss"), tolerance);
  }
}

TEST_F(DistillTest, WorksForText) {
  const std::string text = directory_.file("text");
  ASSERT_TRUE(write_file(text,
                         "to be or not to be, that is the question: whether tis nobler in "
                         "the mind to suffer the slings and arrows of outrageous fortune")
                  .ok());
  for (TrainingTask* task : {&teacher_, &task_}) {
    task->config.data = {};
    task->config.data.format = "text";
    task->config.data.train_text = text;
    task->config.data.context = 4;
    task->config.model = {};
    task->config.training.global_batch = 5;
  }
  teacher_.config.model.gpt = api::GptConfig{.layers = 2, .heads = 2, .width = 16};
  task_.config.model.gpt = api::GptConfig{.layers = 1, .heads = 2, .width = 8};
  train_teacher();
  for (const bool wide : {false, true}) {
    task_.config.training.precision = wide ? api::Precision::kBf16 : api::Precision::kFp32;
    task_.config.training.residual_in_fp32 = wide;
    const RanTraining taught = run_training(task_);
    ASSERT_EQ(taught.error, "");
    EXPECT_GT(taught.metric("loss"), 0);
  }
  task_.config.data.context = 5;
  EXPECT_THAT(refusal(task_), HasSubstr("takes samples of 4 tokens; the data have 5 tokens"));
  task_.config.data.context = 4;
  ASSERT_TRUE(write_file(text, std::string(200, 'a') + std::string(200, 'b')).ok());
  EXPECT_THAT(refusal(task_), HasSubstr("was trained with another vocabulary"));
}

TEST_F(DistillTest, RefusesATeacherOfOtherSamples) {
  train_teacher();
  TrainingTask other = task_;
  other.config.data.normalize = api::NormalizeConfig{0.25, 2};
  EXPECT_THAT(refusal(other), HasSubstr("set data.normalize to {mean: "));

  const auto model = read_exported_model(*map_file(directory_.file("teacher")), "teacher");
  ASSERT_TRUE(model.ok());
  other.config.data.normalize = model->normalize;
  EXPECT_EQ(refusal(other), "") << "the message's remedy";

  const SyntheticImages images(240);
  std::vector<std::uint8_t> labels = images.labels;
  for (std::uint8_t& label : labels) label %= 3;
  other.config.data.train_labels = directory_.file("fewer");
  ASSERT_TRUE(write_file(other.config.data.train_labels, idx({240}, labels)).ok());
  other.config.model.layers.back() = linear(3);
  EXPECT_THAT(refusal(other), HasSubstr("has 4 classes; the data have 3"));

  other = task_;
  other.config.data.train_images = directory_.file("wider");
  const std::string wider = idx({240, 4, 16}, images.pixels);
  ASSERT_TRUE(write_file(other.config.data.train_images, wider).ok());
  EXPECT_THAT(refusal(other), HasSubstr("takes samples of 8×8×1; the data have 4×16×1"));
}

TEST_F(DistillTest, RefusesAFileThatIsNoTeacher) {
  EXPECT_THAT(refusal(task_), HasSubstr("training.distill.teacher: "));
  ASSERT_TRUE(write_file(directory_.file("teacher"), "no model").ok());
  EXPECT_THAT(refusal(task_), HasSubstr("is it a safetensors file?"));
  const std::vector<float> values = {1, 2};
  const NamedArray array{"layers.0.weight", {2}, values};
  ASSERT_TRUE(write_file(directory_.file("teacher"), encode_safetensors({array}, {})).ok());
  EXPECT_THAT(refusal(task_), HasSubstr("does not describe its network"));
  for (const char* words : {"[]", "{}", R"({"input": {"shape": [8, 8, 1]}, "classes": 4})",
                            R"({"input": {"shape": [8, 8]}, "classes": 4})"}) {
    ASSERT_TRUE(
        write_file(directory_.file("teacher"), encode_safetensors({array}, {{"fettle", words}}))
            .ok());
    EXPECT_THAT(refusal(task_), HasSubstr("does not describe its network")) << words;
  }
  train_teacher();
  const std::string whole = *read_file(directory_.file("teacher"));
  ASSERT_TRUE(write_file(directory_.file("teacher"), whole.substr(0, whole.size() - 4)).ok());
  EXPECT_THAT(refusal(task_), HasSubstr("is cut"));
}

TEST_F(DistillTest, ACheckpointBelongsToTheContentOfItsTeacher) {
  train_teacher();
  const TrainingTask task = apart("checkpoints");
  EXPECT_EQ(run_training(task, {.stop_after = 3}).ending, Ending::kStopped);
  TrainingTask moved = task;
  moved.config.training.distill->teacher = directory_.file("moved");
  const std::string content = *read_file(directory_.file("teacher"));
  ASSERT_TRUE(write_file(directory_.file("moved"), content).ok());
  EXPECT_EQ(run_training(moved, {.stop_after = 1}).error, "") << "the same content elsewhere";
  teacher_.seed = 6;
  train_teacher();
  EXPECT_THAT(refusal(task), HasSubstr("training.distill.teacher is \"content "));
}

TEST_F(DistillTest, AStudentMayTeachInItsTurnAndNamesNoFile) {
  train_teacher();
  write_model(run_training(task_).last, directory_.file("student"));
  EXPECT_EQ(read_file(directory_.file("student"))->find(directory_.path()), std::string::npos);
  task_.config.training.distill->teacher = directory_.file("student");
  EXPECT_EQ(run_training(task_).error, "");
}

}  // namespace
}  // namespace fettle::trainer
