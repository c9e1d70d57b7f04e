#include "trainer/trace.h"

#include <gtest/gtest.h>

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

TEST(Trace, WithoutOneASpanDoesNothing) { const Span span(nullptr, "step", "", true); }

}  // namespace
}  // namespace fettle::trainer
