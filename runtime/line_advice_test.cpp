// The expression that is advised for a line from which no report was read.
#include "runtime/line_advice.h"

#include <gtest/gtest.h>

#include "runtime/metric_lines.h"

namespace fettle::runtime {
namespace {

std::string in_yaml(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return "'" + out + "'";
}

TEST(LineAdvice, EachFormIsReadAsAdvised) {
  const struct {
    const char* line;
    const char* metric;
    const char* regex;
  } cases[] = {
      {"epoch 3: loss=0.41", "loss", R"((\w+)=([-+.\w]+))"},
      {"loss: 0.41 - acc: 0.9", "loss", R"((\w+): ([-+.\w]+))"},
      {"[4]\tvalid-x:0.2\tloss:0.41", "loss", R"(([\w-]+):([-+.\w]+))"},
      {"{'loss': 0.41, 'epoch': 1.0}", "loss", R"('(\w+)': '?([-+.\w]+))"},
      {"val/loss = 0.41", "val/loss", R"(([\w./@-]+) *[=:] *([-+.\w]+))"},
      {"loss 0.41", "loss", R"((\w+) +([-+.\w]+))"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(advice_for(c.line, {c.metric}),
              "; spec.trial.metrics: {regex: " + in_yaml(c.regex) + "} reads it");
    MetricLinesOptions options;
    options.filter.regex = c.regex;
    options.objectives = {{.metric = c.metric}};
    MetricLines lines(options);
    lines.feed(std::string(c.line) + "\n", 1);
    ASSERT_TRUE(lines.has_result()) << c.line;
    EXPECT_EQ(lines.report().metrics.at(c.metric), 0.41) << c.line;
  }
}

TEST(LineAdvice, NothingIsAdvisedWhereNoFormFits) {
  EXPECT_EQ(advice_for("loss is small", {"loss"}), "");
  EXPECT_EQ(advice_for("lossy=3", {"loss"}), "");
  EXPECT_EQ(advice_for("", {"loss"}), "");
}

TEST(LineAdvice, ANameInAnotherCaseIsWrittenAsPrinted) {
  EXPECT_EQ(advice_for("Loss=1", {"loss"}),
            R"(; spec.trial.metrics: {regex: '(\w+)=([-+.\w]+)'} reads it, )"
            "with metric: Loss in place of loss");
  EXPECT_EQ(same_but_for_case("LOSS", {"accuracy", "loss"}), "loss");
  EXPECT_EQ(same_but_for_case("loss", {"loss"}), "");
}

}  // namespace
}  // namespace fettle::runtime
