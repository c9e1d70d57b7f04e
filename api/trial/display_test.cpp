// Display texts of numbers.
#include "api/trial/display.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fettle::api {
namespace {

TEST(Display, NumbersAreShort) {
  EXPECT_EQ(short_number(0.913249), "0.9132");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-12.5), "-12.5");
  EXPECT_EQ(short_number(41204.4), "41204");
  EXPECT_EQ(short_number(9999.4), "9999");
  EXPECT_EQ(short_number(9999.7), "10000");
  EXPECT_EQ(short_number(1.5e-7), "1.5e-07");
  EXPECT_EQ(short_number(-1e300), "-1e+300");
  EXPECT_EQ(short_number(NAN), "NaN");
  EXPECT_EQ(short_number(-INFINITY), "-Infinity");
}

TEST(Display, ObjectivesThatAreMissingLeaveADash) {
  Objective accuracy;
  accuracy.metric = "accuracy";
  Objective latency;
  latency.metric = "latency";
  EXPECT_EQ(objective_text({accuracy, latency}, {{"accuracy", 0.75}}), "0.75 -");
  EXPECT_EQ(objective_text({accuracy, latency}, {{"loss", 0.75}}), "");
}

TEST(Display, ThroughputIsSaidWhereItIsMeasured) {
  EXPECT_EQ(throughput_text({{"images_per_second", 4120.43}}), "4120 images/s");
  EXPECT_EQ(throughput_text({{"loss", 2}, {"tokens_per_second", 88204.6}}), "88205 tokens/s");
  EXPECT_EQ(throughput_text({{"loss", 1}}), "");
}

TEST(Display, CountsTheGpusOfAllWorkers) {
  TrialTemplate trial;
  EXPECT_EQ(gpu_text(trial, 2), "");
  trial.gpu = Gpu{.count = 2, .fraction = {}, .memory = {}};
  EXPECT_EQ(gpu_text(trial, 4), "8");
  trial.gpu = Gpu{.count = {}, .fraction = 0.25, .memory = {}};
  EXPECT_EQ(gpu_text(trial, 1), "0.25");
  EXPECT_EQ(gpu_text(trial, 2), "2x0.25");
  trial.gpu = Gpu{.count = {}, .fraction = {}, .memory = 20.0 * (1LL << 30)};
  EXPECT_EQ(gpu_text(trial, 1), "20Gi");
}

}  // namespace
}  // namespace fettle::api
