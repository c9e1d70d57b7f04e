// fettle scale: a running trial gets more workers, and fewer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

void write_study(const Workshop& shop, const std::string& workers, const std::string& epochs) {
  shop.write("images", idx_file({400, 8, 8}));
  shop.write("labels", idx_file({400}));
  shop.write("study.yaml", R"(apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: small}
spec:
  objectives: [{metric: validation_accuracy, direction: Maximize}]
  parameters:
  - {name: rate, type: Double, min: 0.001, max: 0.01, sets: training.learningRate}
  budget: {trials: 1, parallelism: 1}
  resource: {max: )" + epochs + R"(, unit: epoch}
  trial:
    workers: )" + workers + R"(
    trainer:
      data: {trainImages: images, trainLabels: labels}
      model: {layers: [{type: linear, units: 3}]}
      training: {globalBatch: 32, backend: reference}
)");
}

// Waits until the newest log of the trial has this text.
bool await_log(Workshop& shop, const std::string& text) {
  return shop.wait_until([&] {
    return shop.fettle({"logs", "small-0"}).out.find(text) != std::string::npos;
  });
}

TEST(Scale, GivesARunningTrialMoreWorkersAndFewer) {
  Workshop shop;
  write_study(shop, "{min: 1, max: 3}", "100000");
  const pid_t runner = shop.start({"run", "study.yaml"});
  ASSERT_TRUE(await_log(shop, "\"step\": 1,"));
  Finished done = shop.fettle({"scale", "small-0", "3"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "small-0: 3 workers wanted\n");
  EXPECT_TRUE(await_log(shop, "rank 0 of 3 workers"));
  EXPECT_EQ(shop.fettle({"scale", "small-0", "2"}).code, 0);
  EXPECT_TRUE(await_log(shop, "rank 0 of 2 workers"));

  done = shop.fettle({"scale", "small-0", "4"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("found 4 workers, expected 1 to 3 (trial.workers)"));
  EXPECT_EQ(shop.fettle({"scale", "small-7", "2"}).code, 2);

  EXPECT_EQ(shop.interrupt(runner, SIGINT).code, 130);
  done = shop.fettle({"scale", "small-0", "2"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("study small is not running here"));
}

TEST(Scale, NeedsAStudyThatAllowsIt) {
  Workshop shop;
  write_study(shop, "{min: 2, max: 2}", "2");
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const Finished done = shop.fettle({"scale", "small-0", "3"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("have 2 workers each, and need them all"));
}

}  // namespace
}  // namespace fettle::e2e
