// A population trained by the built-in trainer, and its best schedule trained again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

constexpr int kImages = 160;
constexpr int kSide = 8;

// An IDX file of bytes with these dimensions, each below 256.
std::string idx(const std::vector<int>& dimensions, const std::string& values) {
  std::string file = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const int size : dimensions) file += {0, 0, 0, static_cast<char>(size)};
  return file + values;
}

// Images of four classes, one bright quadrant each, with something like noise.
void write_images(const Workshop& shop) {
  std::string pixels;
  std::string labels;
  unsigned noise = 1;
  for (int i = 0; i < kImages; ++i) {
    const int label = i % 4;
    labels += static_cast<char>(label);
    for (int at = 0; at < kSide * kSide; ++at) {
      noise = noise * 1664525U + 1013904223U;
      const bool bright = at / kSide / 4 * 2 + at % kSide / 4 == label;
      pixels += static_cast<char>((noise >> 24) / 2 + (bright ? 30 : 0));
    }
  }
  shop.write("images", idx({kImages, kSide, kSide}, pixels));
  shop.write("labels", idx({kImages}, labels));
}

const std::string kStudy = R"(apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: digits}
spec:
  objectives: [{metric: validation_loss, direction: Minimize}]
  parameters:
  - {name: learning_rate, type: Double, min: 1e-5, max: 1e-1, scale: Log, sets: training.learningRate}
  - {name: momentum, type: Double, min: 0.5, max: 0.99, sets: training.momentum}
  resource: {unit: epoch, min: 1, max: 8}
  algorithm: {name: ALGORITHM, interval: 2, seed: 3}
  budget: {trials: 4, parallelism: 1}
  trial:
    trainer:
      data: {trainImages: images, trainLabels: labels, validationSamples: 40}
      model: {layers: [{type: flatten}, {type: linear, units: 4}]}
      training: {optimizer: sgd, globalBatch: 20}
)";

class Population : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Run, Population, testing::Values("pbt", "pb2"),
                         [](const auto& test) { return test.param; });

TEST_P(Population, TheScheduleItFindsComesToTheSameAgain) {
  Workshop shop;
  write_images(shop);
  std::string study = kStudy;
  study.replace(study.find("ALGORITHM"), 9, GetParam());
  shop.write("study.yaml", study);
  const Finished done = shop.fettle({"run", "study.yaml", "--output", "json"});
  ASSERT_EQ(done.code, 0) << done.out << done.err;
  const Json result = result_of(done);
  const Json& found = *result.find("best");
  EXPECT_GT(shop.trials().as_array().size(), 4U) << "some took over from others";

  const Finished text = shop.fettle({"best", "digits", "--schedule"});
  EXPECT_THAT(text.out, HasSubstr("from epoch"));
  const Finished json = shop.fettle({"best", "digits", "--schedule", "--output", "json"});
  const Json schedule = parse_json(json.out).value();
  const Json::Array& legs = schedule.find("legs")->as_array();
  ASSERT_GT(legs.size(), 1U) << json.out;
  EXPECT_EQ(*legs.front().find("from"), Json(0));
  EXPECT_EQ(*legs.back().find("until"), Json(8));
  EXPECT_EQ(*legs.back().find("objective"), *found.find("objective"));
  EXPECT_EQ(*legs.back().find("parameters"), *found.find("parameters"));

  const Finished decided = shop.fettle({"replay", "digits"});
  EXPECT_EQ(decided.code, 0) << decided.err;
  EXPECT_THAT(decided.out, HasSubstr("digits: 4 suggestions, "));
  EXPECT_THAT(decided.out, HasSubstr("decided again: all as recorded"));
  const Finished otherwise = shop.fettle({"replay", "digits", "--algorithm", "tpe"});
  EXPECT_EQ(otherwise.code, 2);
  EXPECT_THAT(otherwise.err, HasSubstr("trials take over from each other"));

  const Finished yaml = shop.fettle({"best", "digits", "--schedule", "--output", "yaml"});
  shop.write("again.yaml", yaml.out);
  const Finished again = shop.fettle({"run", "again.yaml", "--output", "json"});
  ASSERT_EQ(again.code, 0) << yaml.out << again.err;
  // Equal to the last bit: from the same weights, with the same seeds.
  EXPECT_EQ(*result_of(again).find("best")->find("objective"), *found.find("objective"));
  EXPECT_EQ(shop.trials("digits-again").as_array().size(), legs.size());
  EXPECT_THAT(shop.fettle({"replay", "digits-again"}).out, HasSubstr("all as recorded"));
}

}  // namespace
}  // namespace fettle::e2e
