// The families as Prometheus reads them, and their limit.
#include "operator/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace fettle::op {
namespace {

std::string text_of(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST(Metrics, TextOfEveryType) {
  prometheus::Registry registry;
  Counters calls(registry, "fettle_calls_total", "Calls.", {"verb", "code"});
  Gauges depth(registry, "fettle_depth", "Depth.");
  Histograms took(registry, "fettle_took_seconds", "Time.", {"kind"});
  calls.at({"get", "200"}).Increment();
  calls.at({"get", "200"}).Increment(2);
  depth.at({}).Set(7);
  depth.at({}).Set(2.5);
  took.at({"Study"}).Observe(0.01);  // a bound belongs to its bucket
  took.at({"Study"}).Observe(0.5);
  took.at({"Study"}).Observe(30);
  const std::string text = text_of(registry);
  for (const char* line :
       {"# HELP fettle_calls_total Calls.\n", "# TYPE fettle_calls_total counter\n",
        "fettle_calls_total{code=\"200\",verb=\"get\"} 3\n", "# TYPE fettle_depth gauge\n",
        "fettle_depth 2.5\n", "# TYPE fettle_took_seconds histogram\n",
        "fettle_took_seconds_bucket{kind=\"Study\",le=\"0.005\"} 0\n",
        "fettle_took_seconds_bucket{kind=\"Study\",le=\"0.01\"} 1\n",
        "fettle_took_seconds_bucket{kind=\"Study\",le=\"0.5\"} 2\n",
        "fettle_took_seconds_bucket{kind=\"Study\",le=\"10\"} 2\n",
        "fettle_took_seconds_bucket{kind=\"Study\",le=\"+Inf\"} 3\n",
        "fettle_took_seconds_sum{kind=\"Study\"} 30.51\n",
        "fettle_took_seconds_count{kind=\"Study\"} 3\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Metrics, LabelValuesAreEscaped) {
  prometheus::Registry registry;
  Gauges gauge(registry, "g", "G.", {"name"});
  gauge.at({"a\\b\"c\nd"}).Set(NAN);
  EXPECT_EQ(text_of(registry), "# HELP g G.\n# TYPE g gauge\ng{name=\"a\\\\b\\\"c\\nd\"} Nan\n");
}

TEST(Metrics, ClearedValuesAreGone) {
  prometheus::Registry registry;
  Gauges gauge(registry, "g", "G.", {"name"});
  gauge.at({"old"}).Set(1);
  gauge.clear();
  EXPECT_EQ(text_of(registry).find("old"), std::string::npos);
  gauge.at({"old"}).Set(2);
  EXPECT_NE(text_of(registry).find("g{name=\"old\"} 2\n"), std::string::npos);
}

TEST(Metrics, AFamilyHoldsABoundedNumberOfSeries) {
  prometheus::Registry registry;
  Gauges gauge(registry, "g", "G.", {"name"});
  for (std::size_t i = 0; i < kMaxSeries + 10; ++i) gauge.at({std::to_string(i)}).Set(1);
  const std::string text = text_of(registry);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2 + kMaxSeries);
  gauge.at({"0"}).Set(5);  // existing metrics still change
  EXPECT_NE(text_of(registry).find("g{name=\"0\"} 5\n"), std::string::npos);
}

}  // namespace
}  // namespace fettle::op
