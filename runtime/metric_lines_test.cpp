// What trials print, and what is made of it.
#include "runtime/metric_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/trial_json.h"

namespace fettle::runtime {
namespace {

using Metrics = std::map<std::string, double>;

api::Report read(const std::string& output, const std::string& regex = "") {
  MetricLines lines({regex, {}});
  lines.feed(output, 7);
  lines.finish(8);
  return lines.report();
}

TEST(MetricLines, JsonLines) {
  const api::Report report = read(
      "starting\n"
      "{\"step\": 1, \"loss\": 0.5, \"phase\": \"warm-up\", \"flag\": true}\n"
      "  {\"step\": 2, \"loss\": 0.25, \"accuracy\": 1}\r\n"
      "{\"step\": 3, \"loss\": 0.125, \"checkpoint\": \"step-3\", \"checkpoint_step\": 3, "
      "\"final\": true}");
  EXPECT_EQ(report.step, 3);
  EXPECT_EQ(report.metrics, (Metrics{{"accuracy", 1}, {"loss", 0.125}}));
  EXPECT_EQ(report.checkpoint, "step-3");
  EXPECT_EQ(report.checkpoint_step, 3);
  EXPECT_TRUE(report.final_result);
  ASSERT_EQ(report.history.size(), 3u);
  EXPECT_EQ(report.history[1], (api::HistoryPoint{2, {{"accuracy", 1}, {"loss", 0.25}}}));
  EXPECT_EQ(report.at_ms, 8);
}

TEST(MetricLines, LinesThatAreOnlyLog) {
  for (const char* line :
       {"", "{}", "[1, 2]", "loss=0.5", "{\"loss\": \"0.5\"}", "{'loss': 0.5}", "{\"loss\": 0.5",
        "{\"step\": 4}", "x {\"loss\": 0.5}", "{\"loss\": 0.5} x", "{\"a\":{\"loss\": 0.5}}"}) {
    MetricLines lines({});
    lines.feed(std::string(line) + "\n", 1);
    EXPECT_FALSE(lines.has_report()) << line;
  }
}

TEST(MetricLines, WithoutStepsEachLineIsTheNext) {
  const api::Report report = read(
      "{\"loss\": 3}\n{\"loss\": 2}\n{\"step\": 9, \"loss\": 1}\n"
      "{\"loss\": 0}\n");
  EXPECT_EQ(report.step, 10);
  ASSERT_EQ(report.history.size(), 4u);
  EXPECT_EQ(report.history[1].step, 2);
}

TEST(MetricLines, NonFiniteValuesAreKept) {
  const api::Report report = read("{\"loss\": NaN, \"a\": Infinity, \"b\": -Infinity}\n");
  EXPECT_TRUE(std::isnan(report.metrics.at("loss")));
  EXPECT_EQ(report.metrics.at("a"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(report.metrics.at("b"), -std::numeric_limits<double>::infinity());
  const api::Report matched = read("loss=nan a=inf b=-Infinity c=1e999", "(\\w+)=(\\S+)");
  EXPECT_TRUE(std::isnan(matched.metrics.at("loss")));
  EXPECT_EQ(matched.metrics.at("c"), std::numeric_limits<double>::infinity());
}

TEST(MetricLines, RegularExpressions) {
  const struct {
    const char* regex;
    const char* output;
    std::int64_t step;
    Metrics metrics;
  } cases[] = {
      {"([\\w|-]+)\\s*=\\s*([+-]?\\d*(?:\\.\\d+)?)",
       "epoch 1:\nloss=0.5 accuracy = 0.75\n",
       1,
       {{"accuracy", 0.75}, {"loss", 0.5}}},
      {"(\\w+)=(\\S+)", "loss=0.5\nacc=0.1\nloss=0.4\nacc=0.2\n", 2, {{"acc", 0.2}, {"loss", 0.4}}},
      {"(\\w+)=(\\S+)", "step=7 loss=0.5\n", 7, {{"loss", 0.5}}},
      {"step (?P<step>\\d+): (?P<name>\\w+) is (?P<value>\\S+)",
       "step 4: loss is 2e-3\n",
       4,
       {{"loss", 0.002}}},
      {"(?P<value>\\S+) = (?P<name>\\w+)", "0.5 = loss\n", 1, {{"loss", 0.5}}},
      {"(\\w+)=(\\S+)", "loss=unknown acc=+0.5\n", 1, {{"acc", 0.5}}},
      {"(x*)(y*)", "zzzz\n", 0, {}},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(check_metrics_regex(c.regex).ok());
    const api::Report report = read(c.output, c.regex);
    EXPECT_EQ(report.step, c.step) << c.output;
    EXPECT_EQ(report.metrics, c.metrics) << c.output;
  }
}

TEST(MetricLines, RegularExpressionsThatCannotServe) {
  EXPECT_NE(check_metrics_regex("(").error().message.find("cannot read"), std::string::npos);
  EXPECT_NE(check_metrics_regex("loss=(.*)").error().message.find("it has 1"), std::string::npos);
}

TEST(MetricLines, AnyPiecesGiveTheSameReport) {
  const std::string output = "{\"loss\": 3}\nxx\n{\"loss\": 2, \"accuracy\": 0.5}\n{\"loss\": 1}";
  const api::Report whole = read(output);
  for (std::size_t size = 1; size < output.size(); ++size) {
    MetricLines lines({});
    for (std::size_t at = 0; at < output.size(); at += size) {
      lines.feed(std::string_view(output).substr(at, size), 7);
    }
    lines.finish(8);
    EXPECT_EQ(lines.report(), whole) << "pieces of " << size;
  }
}

TEST(MetricLines, GarbageIsHarmless) {
  std::string garbage;
  for (int i = 0; i < 100000; ++i) garbage += static_cast<char>((i * 2654435761u) >> 13);
  garbage += "\n{\"loss\": 1}\n";
  EXPECT_EQ(read(garbage).metrics, (Metrics{{"loss", 1}}));
  EXPECT_EQ(read(std::string("{\"\0loss\": 1}\n{\"loss\": 2}\n", 25)).metrics,
            (Metrics{{"loss", 2}}));
}

TEST(MetricLines, EveryReportCanBeReadBack) {
  const std::string bad[] = {"a\\u0000b", "a\xFFz", "\xED\xA0\x80"};
  for (const std::string& text : bad) {
    const api::Report report =
        read("{\"step\": 1, \"loss\": 1, \"" + text + "\": 2, \"checkpoint\": \"" + text +
             "\", \"checkpoint_step\": 1}\n");
    EXPECT_EQ(report.metrics, (Metrics{{"loss", 1}})) << text;
    EXPECT_EQ(report.checkpoint, "") << text;
    EXPECT_TRUE(api::read_report(api::write_report(report)).ok()) << text;
  }
  EXPECT_EQ(read("loss=1 \xE9=2\n", "(\\S+)=(\\S+)").metrics, (Metrics{{"loss", 1}}));
}

TEST(MetricLines, ALineThatIsTooLongIsLeftOutAndTheNextOneRead) {
  const std::string giant = "{\"loss\": 1, \"x\": \"" + std::string(kMaxLineBytes, 'x') + "\"}\n";
  EXPECT_EQ(read(giant + "{\"loss\": 2}\n").step, 1);
}

TEST(MetricLines, ReportsStayBounded) {
  std::string line = "{";
  for (int i = 0; i < 1000; ++i) line += "\"metric" + std::to_string(i) + "\": 1, ";
  line += "\"last\": 1}\n";
  std::string output;
  for (int i = 0; i < 200; ++i) output += line;
  const api::Report report = read(output);
  EXPECT_EQ(report.metrics.size(), kMaxMetrics);
  EXPECT_LE(report.history.size(), 3u);
}

TEST(MetricLines, LongOutputKeepsTheBestValueOfTheObjective) {
  api::Objective objective;
  objective.metric = "loss";
  MetricLines lines({"", {}, {objective}});
  for (int step = 1; step <= 1000; ++step) {
    lines.feed("{\"loss\": " + std::string(step == 737 ? "0.01" : "0.5") + "}\n", 1);
  }
  const std::vector<api::HistoryPoint>& history = lines.report().history;
  EXPECT_EQ(history.size(), api::kMaxHistoryPoints);
  EXPECT_TRUE(std::any_of(history.begin(), history.end(),
                          [](const api::HistoryPoint& point) { return point.step == 737; }));
}

TEST(MetricLines, RungsAndTheFinalResultAreUrgent) {
  MetricLines lines({"", {3, 9}});
  lines.feed("{\"step\": 2, \"loss\": 1}\n", 1);
  EXPECT_FALSE(lines.take_urgent());
  lines.feed("{\"step\": 3, \"loss\": 1}\n{\"step\": 4, \"loss\": 1}\n", 1);
  EXPECT_TRUE(lines.take_urgent());
  EXPECT_FALSE(lines.take_urgent());
  lines.feed("{\"step\": 5, \"loss\": 1, \"final\": true}\n", 1);
  EXPECT_TRUE(lines.take_urgent());
}

}  // namespace
}  // namespace fettle::runtime
