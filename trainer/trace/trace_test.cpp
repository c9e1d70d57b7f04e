#include "trainer/trace/trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/json.h"

namespace fettle::trainer {
namespace {

Json::Array events_of(const Trace& trace) {
  return parse_json(trace.to_json())->find("traceEvents")->as_array();
}

void make_step(Trace& trace) {
  trace.begin_step();
  const Span step(&trace, "step");
  const Span layer(&trace, "forward", "model.layers[0] (linear)");
}

TEST(Trace, KeepsSoManyStepsAfterTheFirstOnes) {
  Trace trace(2, 5);
  int made = 0;
  for (; !trace.is_full(); ++made) make_step(trace);
  EXPECT_EQ(made, 3 + 5 + 1) << "it is full when another step begins";
  const Json::Array events = events_of(trace);
  ASSERT_EQ(events.size(), 1 + 2 * 5U);
  EXPECT_EQ(*events[0].find("ph"), Json("M"));
  for (std::size_t i = 1; i < events.size(); i += 2) {
    const Json& layer = events[i];  // it ends first
    const Json& step = events[i + 1];
    EXPECT_EQ(*layer.find("name"), Json("forward model.layers[0] (linear)"));
    EXPECT_EQ(*layer.find("cat"), Json("forward"));
    EXPECT_EQ(*layer.find("ph"), Json("X"));
    EXPECT_EQ(*layer.find("pid"), Json(2));
    const auto number = [](const Json& event, const char* key) {
      return event.find(key)->as_double();
    };
    EXPECT_GE(number(layer, "ts"), number(step, "ts"));
    EXPECT_LE(number(layer, "ts") + number(layer, "dur"),
              number(step, "ts") + number(step, "dur") + 1e-3);
  }
}

TEST(Trace, WhatIsRareIsKeptAlways) {
  Trace trace(0, 1);
  { const Span rare(&trace, "checkpoint", "", /*always=*/true); }
  { const Span often(&trace, "update"); }
  EXPECT_EQ(events_of(trace).size(), 2U);
}

// A device that completes each mark a second after the previous one.
class SlowDevice final : public kernels::Timeline {
 public:
  std::int64_t mark() override { return ++marks_; }
  std::vector<double> seconds() override {
    std::vector<double> seconds;
    for (int i = 0; i <= marks_; ++i) seconds.push_back(i);
    return seconds;
  }

 private:
  int marks_ = 0;
};

// Events of a row, in order: name, begin and length in seconds.
std::vector<std::tuple<std::string, double, double>> row_of(const Trace& trace, int row) {
  std::vector<std::tuple<std::string, double, double>> found;
  for (const Json& event : events_of(trace)) {
    if (*event.find("ph") != Json("X") || *event.find("tid") != Json(row)) continue;
    found.emplace_back(event.find("name")->as_string(), event.find("ts")->as_double() / 1e6,
                       event.find("dur")->as_double() / 1e6);
  }
  return found;
}

TEST(Trace, ShowsWhenTheDeviceHadWhatTheHostOnlyOrdered) {
  const auto start = std::chrono::steady_clock::now();
  Trace trace(0, 1);
  trace.attach(std::make_unique<SlowDevice>(), nullptr);
  while (!trace.is_full()) make_step(trace);
  EXPECT_TRUE(row_of(trace, 1).empty()) << "it is not known yet";
  trace.detach();
  const auto device = row_of(trace, 1);
  ASSERT_EQ(device.size(), 2U);
  const auto& [layer, layer_begin, layer_seconds] = device[0];
  const auto& [step, step_begin, step_seconds] = device[1];
  EXPECT_EQ(layer, "forward model.layers[0] (linear)");
  EXPECT_NEAR(layer_seconds, 1, 1e-6);
  EXPECT_EQ(step, "step");
  EXPECT_NEAR(step_seconds, 3, 1e-6);
  EXPECT_NEAR(layer_begin - step_begin, 1, 1e-6);
  // The host's row is in its own time, which has passed by now.
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  for (const auto& [name, begin, seconds] : row_of(trace, 0)) {
    EXPECT_LE(begin + seconds, passed.count()) << name;
  }
}

TEST(Trace, AnotherBackendsTimesAreItsOwn) {
  Trace trace(0, 2);
  trace.attach(std::make_unique<SlowDevice>(), nullptr);
  for (int i = 0; i < 4; ++i) make_step(trace);
  trace.detach();
  const auto first = row_of(trace, 1);
  trace.attach(std::make_unique<SlowDevice>(), nullptr);
  make_step(trace);
  trace.detach();
  const auto both = row_of(trace, 1);
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(both.size(), 4U);
  EXPECT_EQ(both[0], first[0]);
  EXPECT_NEAR(std::get<2>(both[3]), 3, 1e-6);
}

class Listener final : public kernels::Ranges {
 public:
  explicit Listener(std::vector<std::string>& heard) : heard_(heard) {}
  void push(const std::string& name) override { heard_.push_back("+" + name); }
  void pop() override { heard_.push_back("-"); }

 private:
  std::vector<std::string>& heard_;
};

TEST(Trace, ToldOfEveryStepIsAToolThatWatchesWhileNothingIsKept) {
  Trace trace(0, 0);
  std::vector<std::string> heard;
  trace.attach(nullptr, std::make_unique<Listener>(heard));
  for (int i = 0; i < 6; ++i) make_step(trace);
  { const Span rare(&trace, "checkpoint", "", /*always=*/true); }
  EXPECT_EQ(heard.size(), 6U * 4 + 2);
  heard.resize(4);
  EXPECT_EQ(heard,
            (std::vector<std::string>{"+step", "+forward model.layers[0] (linear)", "-", "-"}));
  EXPECT_EQ(events_of(trace).size(), 1U) << "of the process alone";
}

TEST(Trace, WithoutOneASpanDoesNothing) { const Span span(nullptr, "step", "", true); }

}  // namespace
}  // namespace fettle::trainer
