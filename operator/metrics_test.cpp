// The text that Prometheus reads, to the letter.
#include "operator/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace fettle::op {
namespace {

TEST(Metrics, TextOfEveryType) {
  Metrics metrics;
  const auto calls = metrics.declare(
      {"fettle_calls_total", "Calls.", Metrics::Type::kCounter, {"verb", "code"}, {}});
  const auto depth = metrics.declare({"fettle_depth", "Depth.", Metrics::Type::kGauge, {}, {}});
  const auto took = metrics.declare(
      {"fettle_took_seconds", "Time.", Metrics::Type::kHistogram, {"kind"}, {0.01, 0.1, 1}});
  metrics.add(calls, {"get", "200"});
  metrics.add(calls, {"get", "200"}, 2);
  metrics.add(calls, {"apply", "409"});
  metrics.set(depth, {}, 7);
  metrics.set(depth, {}, 2.5);
  metrics.observe(took, {"Study"}, 0.01);  // a bound belongs to its bucket
  metrics.observe(took, {"Study"}, 0.5);
  metrics.observe(took, {"Study"}, 30);
  EXPECT_EQ(metrics.text(),
            "# HELP fettle_calls_total Calls.\n"
            "# TYPE fettle_calls_total counter\n"
            "fettle_calls_total{verb=\"apply\",code=\"409\"} 1\n"
            "fettle_calls_total{verb=\"get\",code=\"200\"} 3\n"
            "# HELP fettle_depth Depth.\n"
            "# TYPE fettle_depth gauge\n"
            "fettle_depth 2.5\n"
            "# HELP fettle_took_seconds Time.\n"
            "# TYPE fettle_took_seconds histogram\n"
            "fettle_took_seconds_bucket{kind=\"Study\",le=\"0.01\"} 1\n"
            "fettle_took_seconds_bucket{kind=\"Study\",le=\"0.1\"} 1\n"
            "fettle_took_seconds_bucket{kind=\"Study\",le=\"1\"} 2\n"
            "fettle_took_seconds_bucket{kind=\"Study\",le=\"+Inf\"} 3\n"
            "fettle_took_seconds_sum{kind=\"Study\"} 30.51\n"
            "fettle_took_seconds_count{kind=\"Study\"} 3\n");
}

TEST(Metrics, LabelValuesAreEscaped) {
  Metrics metrics;
  const auto gauge = metrics.declare({"g", "a\\b\nc", Metrics::Type::kGauge, {"name"}, {}});
  metrics.set(gauge, {"a\\b\"c\nd"}, NAN);
  EXPECT_EQ(metrics.text(),
            "# HELP g a\\\\b\\nc\n# TYPE g gauge\ng{name=\"a\\\\b\\\"c\\nd\"} NaN\n");
}

TEST(Metrics, ClearedValuesAreGone) {
  Metrics metrics;
  const auto gauge = metrics.declare({"g", "G.", Metrics::Type::kGauge, {"name"}, {}});
  metrics.set(gauge, {"old"}, 1);
  metrics.clear(gauge);
  EXPECT_EQ(metrics.text(), "# HELP g G.\n# TYPE g gauge\n");
}

TEST(Metrics, AFamilyHoldsABoundedNumberOfSeries) {
  Metrics metrics;
  const auto gauge = metrics.declare({"g", "G.", Metrics::Type::kGauge, {"name"}, {}});
  for (std::size_t i = 0; i < kMaxSeries + 10; ++i) metrics.set(gauge, {std::to_string(i)}, 1);
  const std::string text = metrics.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + kMaxSeries);
  metrics.set(gauge, {"0"}, 5);  // those that are there still change
  EXPECT_NE(metrics.text().find("g{name=\"0\"} 5\n"), std::string::npos);
}

}  // namespace
}  // namespace fettle::op
