// Whole trainings of a small GPT on text; properties of all trainings are in training_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainer/testing/synthetic.h"
#include "trainer/training.h"

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

struct Outcome {
  std::vector<EpochReport> reports;
  std::vector<float> weights;
};

double metric(const EpochReport& report, const std::string& name) {
  for (const auto& [key, value] : report.metrics) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no metric " << name << " in " << to_line(report);
  return 0;
}

// Words in random order: the next character within a word can be learnt, the next word cannot.
std::string words(const std::string& alphabet) {
  std::string text;
  Random random(1);
  while (text.size() < 1600) {
    const auto word = static_cast<std::size_t>(random.below(3));
    text += alphabet.substr(2 * word, 2) + alphabet.substr(6, 1);
  }
  return text;
}

class TextTraining : public testing::Test {
 protected:
  TextTraining() {
    write_text("abcdef ");
    task_.config.data.format = "text";
    task_.config.data.train_text = directory_.file("text");
    task_.config.data.context = 12;
    task_.config.model.gpt = {.layers = 2, .heads = 2, .width = 16};
    task_.config.model.dropout = 0.1;
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdamW;
    task_.config.training.learning_rate = 0.01;
    task_.config.training.global_batch = 16;  // 111 samples: seven steps, the last one partial
    task_.config.training.epochs = 3;
    task_.seed = 5;
    task_.until_epoch = 3;
  }

  void write_text(const std::string& alphabet) {
    EXPECT_TRUE(write_file(directory_.file("text"), words(alphabet)).ok());
  }

  // Stops after `steps` optimiser steps, if given.
  Result<Outcome> run(const TrainingTask& task, int steps = -1) {
    DataCache off("");
    FETTLE_ASSIGN(const TrainingData data, load_training_data(task.config.data, off));
    SingleProcess single;
    Outcome result;
    TrainingHooks hooks;
    hooks.report = [&](const EpochReport& report) { result.reports.push_back(report); };
    hooks.log = [](const std::string&) {};
    hooks.should_stop = [&steps] { return steps >= 0 && --steps <= 0; };
    FETTLE_ASSIGN(const auto training, Training::create(task, data, single, hooks));
    FETTLE_TRY(training->run());
    result.weights = training->learner().network().parameters().weights.download();
    return result;
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
};

// Two of three characters follow from the previous ones, the third is one of three: at best a loss
// of log(3) / 3 and an accuracy of 7/9.
TEST_F(TextTraining, LearnsWhatFollowsFromWhat) {
  task_.config.training.epochs = task_.until_epoch = 12;
  for (const auto backend : {api::BackendKind::kReference, api::BackendKind::kAuto}) {
    task_.config.training.backend = backend;
    const auto done = run(task_);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_LT(metric(done->reports.back(), "validation_loss"), 1.25 * std::log(3) / 3);
    EXPECT_GT(metric(done->reports.back(), "validation_accuracy"), 0.7);
  }
}

TEST_F(TextTraining, ReportsPerplexityAndBitsPerCharacter) {
  const auto done = run(task_);
  ASSERT_TRUE(done.ok()) << done.error().message;
  const EpochReport& report = done->reports.back();
  const double loss = metric(report, "validation_loss");
  EXPECT_NEAR(metric(report, "validation_perplexity"), std::exp(loss), 1e-9);
  EXPECT_NEAR(metric(report, "validation_bits_per_character"), std::log2(std::exp(loss)), 1e-9);
  EXPECT_GT(metric(report, "tokens_per_second"), 0);
}

TEST_F(TextTraining, ResumesBitForBit) {
  const auto whole = run(task_);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  task_.checkpoints = directory_.file("checkpoints");
  ASSERT_TRUE(run(task_, 10).ok());  // within the second epoch
  const auto rest = run(task_);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_EQ(rest->weights, whole->weights);
  EXPECT_EQ(metric(rest->reports.back(), "loss"), metric(whole->reports.back(), "loss"));
}

TEST_F(TextTraining, MicroBatchesMakeTheSameSteps) {
  task_.config.training.optimizer = api::OptimizerKind::kSgd;  // Adam divides by tiny numbers
  task_.config.training.learning_rate = 0.1;
  const auto whole = run(task_);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  for (const std::int64_t held : {1, 5}) {
    task_.config.training.max_per_worker = held;
    const auto pieces = run(task_);
    ASSERT_TRUE(pieces.ok()) << pieces.error().message;
    ASSERT_EQ(pieces->weights.size(), whole->weights.size());
    for (std::size_t i = 0; i < whole->weights.size(); ++i) {
      ASSERT_NEAR(pieces->weights[i], whole->weights[i], 2e-6) << "held " << held;
    }
  }
}

TEST_F(TextTraining, TrainsIn16Bits) {
  for (const auto precision : {api::Precision::kBf16, api::Precision::kFp16}) {
    task_.config.training.precision = precision;
    const auto done = run(task_);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_LT(metric(done->reports.back(), "validation_loss"), 1.2);
  }
}

TEST_F(TextTraining, RefusesACheckpointOfOtherCharacters) {
  task_.checkpoints = directory_.file("checkpoints");
  ASSERT_TRUE(run(task_, 10).ok());
  write_text("uvwxyz ");  // as many characters
  const auto refused = run(task_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("belongs to another model: it has 7 characters 20616263646566"));
  EXPECT_THAT(refused.error().message, HasSubstr("this one has 7 characters 207576"));
}

TEST_F(TextTraining, RefusesMoreTokensThanAStepCanCount) {
  task_.config.training.global_batch = 2'000'000;
  const auto refused = run(task_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("a batch of 2000000 samples of 12 tokens has more than 16777216 tokens"));
}

}  // namespace
}  // namespace fettle::trainer
