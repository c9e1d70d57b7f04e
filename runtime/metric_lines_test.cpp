// The output of trials, and the reports that are read from it.
#include "runtime/metric_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/trial/trial_json.h"

namespace fettle::runtime {
namespace {

using Metrics = std::map<std::string, double>;

api::Report read(const std::string& output, const std::string& regex = "") {
  MetricLines lines({.filter = {regex}});
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

MetricLinesOptions asks_for(const std::string& metric, const api::MetricsFilter& filter = {}) {
  MetricLinesOptions options{.filter = filter};
  options.objectives.emplace_back().metric = metric;
  return options;
}

api::Report read(const std::string& output, const MetricLinesOptions& options) {
  MetricLines lines(options);
  lines.feed(output, 7);
  lines.finish(8);
  return lines.report();
}

TEST(MetricLines, LinesThatAreDrawnOver) {
  std::string bar;
  for (int i = 991; i > 0; --i) bar += "\r100%|####| 10/10 loss=" + std::to_string(i);
  EXPECT_EQ(read(bar + "\n", "(\\w+)=(\\S+)").metrics, (Metrics{{"loss", 1}}));
  EXPECT_EQ(read(bar + "\n" + bar + "\n", "(\\w+)=(\\S+)").step, 2);
  EXPECT_EQ(read(bar + "\r      \r{\"step\": 3, \"loss\": 0.5}\n").step, 3);
  EXPECT_EQ(read("loss=\x1b[32m0.5\x1b[0m\n", "(\\w+)=(\\S+)").metrics, (Metrics{{"loss", 0.5}}));
  EXPECT_EQ(read("\xEF\xBB\xBF{\"loss\": 0.5}\n").metrics, (Metrics{{"loss", 0.5}}));
}

TEST(MetricLines, TheLastValueOnALineCountsHoweverManyThereAre) {
  std::string line;
  for (int i = 991; i > 0; --i) line += " loss=" + std::to_string(i);
  EXPECT_EQ(read(line, "(\\w+)=(\\S+)").metrics, (Metrics{{"loss", 1}}));
  const std::string dots(2 * kMaxLineBytes, '.');
  EXPECT_EQ(read("loss=3 " + dots + line, "(\\w+)=(\\S+)").metrics, (Metrics{{"loss", 1}}));
}

TEST(MetricLines, WantedMetricsStayAmongManyMetrics) {
  std::string many;
  for (int i = 100; i < 200; ++i) many += "m" + std::to_string(i) + "=1 ";
  for (const std::string& output :
       {many + "zeal=2\n", many + "\nzeal=2\n", many + "\n" + many + "zeal=2"}) {
    const api::Report report = read(output, asks_for("zeal", {"(\\w+)=(\\S+)"}));
    EXPECT_EQ(report.metrics.size(), kMaxMetrics);
    EXPECT_EQ(report.metrics.count("zeal"), 1u);
    EXPECT_EQ(report.history.back().metrics.count("zeal"), 1u);
  }
}

TEST(MetricLines, LaterMetricsOfALineNeverDisplaceWantedMetrics) {
  std::string many;
  for (int i = 100; i < 200; ++i) many += "m" + std::to_string(i) + "=1 ";
  MetricLinesOptions options = asks_for("zeal", {"(\\w+)=(\\S+)"});
  options.constraints = {"yield"};
  const api::Report report = read(many + "\nanother=3 yield=4 zeal=2\n", options);
  EXPECT_EQ(report.metrics.size(), kMaxMetrics);
  EXPECT_EQ(report.metrics.count("zeal"), 1u);
  EXPECT_EQ(report.metrics.count("yield"), 1u);
}

TEST(MetricLines, GroupsMayFollowManyOthers) {
  std::string others;
  for (int i = 0; i < 20; ++i) others += "(x?)";
  EXPECT_EQ(read("loss=0.5\n", others + "(?P<name>\\w+)=(?P<value>\\S+)").metrics,
            (Metrics{{"loss", 0.5}}));
}

TEST(MetricLines, JsonLinesWithoutWantedMetricsAreOnlyLog) {
  MetricLinesOptions options = asks_for("accuracy");
  options.constraints = {"memory"};
  const std::string log = "{\"ts\": 1.7e9, \"msg\": \"hello\"}\n";
  const api::Report report = read(log + "{\"accuracy\": 0.5, \"ts\": 3}\n" + log + log +
                                      "{\"memory\": 7}\n" + log + "{\"checkpoint\": \"c\"}\n" + log,
                                  options);
  EXPECT_EQ(report.step, 2);
  EXPECT_EQ(report.metrics, (Metrics{{"accuracy", 0.5}, {"memory", 7}, {"ts", 3}}));
  EXPECT_EQ(report.checkpoint, "c");
  MetricLines lines(options);
  lines.feed(log + "{\"step\": 3, \"loss\": 0.5}\n", 7);
  EXPECT_FALSE(lines.has_report());
  lines.feed("{\"final\": true}\n", 8);
  EXPECT_TRUE(lines.report().final_result);
}

TEST(MetricLines, AnUnfinishedLineCountsOnlyIfTheProgramEndedByItself) {
  MetricLines lines({.filter = {"(\\w+)=(\\S+)"}});
  lines.feed("accuracy=0.8\naccuracy=0.9", 7);
  EXPECT_EQ(lines.report().metrics, (Metrics{{"accuracy", 0.8}}));
  lines.finish(8);
  EXPECT_EQ(lines.report().metrics, (Metrics{{"accuracy", 0.9}}));
}

TEST(MetricLines, StepsAreReadByAnExpressionOfTheirOwn) {
  const struct {
    api::MetricsFilter filter;
    const char* output;
    std::int64_t step;
  } cases[] = {
      {{"(\\w+)=(\\S+)", "epoch (\\d+)"}, "epoch 3 acc=0.9\n", 3},
      {{"(\\w+)=(\\S+)", "epoch (\\d+)"}, "epoch 3\nacc=0.9\nacc=0.8\nacc=0.7\n", 3},
      {{"(\\w+)=(\\S+)", "epoch (\\d+)"}, "lr=0.1 acc=0.1\nacc=0.2\n", 0},
      {{"(\\w+)=(\\S+)", "epoch (\\d+)"}, "epoch 4\nepoch ?\nacc=0.2\n", 4},
      {{"(\\w+)=(\\S+)", "epoch (\\d+)", 0}, "epoch 0: acc=0.2\nepoch 1: acc=0.2\n", 2},
      {{"(\\w+)=(\\S+)", "ep=([\\d.]+)"}, "ep=2.0 acc=0.2\n", 2},
      {{"(\\w+)=(\\S+)", "ep=([\\d.]+)"}, "ep=2.6 acc=0.2\n", 2},
      {{"(\\w+)=(\\S+)", "epoch (\\S+)"}, "epoch 2 acc=0.2\nepoch 1e99 acc=0.1\n", 2},
      // A step in the line itself takes precedence.
      {{"(\\w+)=(\\S+)", "epoch (\\d+)"}, "epoch 1 step=7 acc=0.2\n", 7},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(check_metrics_filter(c.filter).ok());
    EXPECT_EQ(read(c.output, MetricLinesOptions{.filter = c.filter}).step, c.step) << c.output;
  }
  EXPECT_NE(check_metrics_filter({"(a)(b)", "("}).error().message.find("metrics.step: cannot read"),
            std::string::npos);
  EXPECT_NE(check_metrics_filter({"(a)(b)", "epoch"}).error().message.find("needs a group"),
            std::string::npos);
}

TEST(MetricLines, QuotesTheLineThatNearlyMatched) {
  const struct {
    const char* regex;
    const char* output;
    const char* said;
  } cases[] = {
      {"", "",
       "nothing was printed; a program that prints may hold it back until its buffer is full: "
       "flush each line, in Python print(json.dumps({...}), flush=True)"},
      {"", "hello\nworld\n", "none of its 2 lines is a JSON object with a metric"},
      {"", "hello", "no whole line was printed"},
      {"", "accuracy 0.9\n",
       "the line that came nearest, \"accuracy 0.9\", is no JSON object; spec.trial.metrics: "
       "{regex: '(\\w+) +([-+.\\w]+)'} reads it"},
      {"", "Accuracy: 0.9\n",
       "is no JSON object; spec.trial.metrics: {regex: '(\\w+): ([-+.\\w]+)'} reads it, with "
       "metric: Accuracy in place of accuracy"},
      {"", "accuracy is unknown\n",
       "is no JSON object; spec.trial.metrics.regex says how such a line is read"},
      {"", "{\"Accuracy\": 0.9}\n",
       "holds Accuracy, and the Study asks for accuracy: case counts; write metric: Accuracy in "
       "the Study"},
      {"", "x\nINFO {\"accuracy\": 0.9}\naccuracy\n",
       "the line that came nearest, \"INFO {\"accuracy\": 0.9}\", has text before its {; a JSON "
       "line holds nothing else"},
      {"", "{'accuracy': 0.9}\n", "\"{'accuracy': 0.9}\", is no JSON: "},
      {"", "{'accuracy': 0.9}\n",
       "; spec.trial.metrics: {regex: '''(\\w+)'': ''?([-+.\\w]+)'} reads it"},
      {"", "{\"loss\": 0.9}\n{'accuracy': 1}\n",
       "the line that came nearest, \"{\"loss\": 0.9}\", holds loss, but not accuracy"},
      {"", "{\"accuracy\": \"0.9\"}\n", "holds accuracy, but its value is no number"},
      {"", "{\"a\": 1, LONG \"accuracy\": 0.9}\n",
       ", is the end of a line of more than 65536 bytes, which is too long; print fewer metrics"},
      {"(\\w+)=(\\S+)", "accuracy=0.9%\n",
       "the line that came nearest, \"accuracy=0.9%\", is matched, but what it says for accuracy "
       "is "
       "no number"},
      {"(\\w+)=(\\S+)", "accuracy: 0.9\n",
       "\"accuracy: 0.9\", is not matched by spec.trial.metrics.regex; spec.trial.metrics: "
       "{regex: '(\\w+): ([-+.\\w]+)'} reads it"},
      {"(\\w+)=(\\S+)", "hello\n", "none of its 1 line is matched by spec.trial.metrics.regex"},
  };
  for (const auto& c : cases) {
    MetricLines lines(asks_for("accuracy", {c.regex}));
    std::string output = c.output;
    const std::size_t at = output.find("LONG");
    for (int i = 0; at != output.npos && i < 10'000; ++i) output.insert(at, "\"m\": 1, ");
    lines.feed(output, 7);
    EXPECT_FALSE(lines.has_report());
    const std::string said = lines.near_miss().sentence(lines.expected_line());
    EXPECT_NE(said.find(c.said), std::string::npos) << said;
  }
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

// The newest line that names the objective decides, however a program writes that it has no value.
TEST(MetricLines, ALossThatIsNotFiniteIsNeverPassedOver) {
  for (const std::string word : {"NaN", "nan", "-nan", "+nan", "nan(ind)", "-nan(ind)", "Infinity",
                                 "-Infinity", "inf", "-inf", "null", "1e400", "-1e400"}) {
    const std::string output =
        "{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": " + word + "}\n";
    const api::Report report = read(output, asks_for("loss"));
    EXPECT_EQ(report.step, 2) << word;
    EXPECT_FALSE(std::isfinite(report.metrics.at("loss"))) << word;
    EXPECT_EQ(report.history.size(), 2u) << word;
    const api::Report matched =
        read("loss=0.5\nloss=" + word + "\n", asks_for("loss", {"(\\w+)=(\\S+)"}));
    EXPECT_EQ(matched.step, 2) << word;
    EXPECT_FALSE(std::isfinite(matched.metrics.at("loss"))) << word;
  }
  // A metric that the Study does not ask for may be null without a meaning.
  const api::Report report = read("{\"loss\": 1, \"note\": null}\n", asks_for("loss"));
  EXPECT_EQ(report.metrics, (Metrics{{"loss", 1}}));
  MetricLinesOptions constrained = asks_for("loss");
  constrained.constraints = {"memory"};
  EXPECT_TRUE(
      std::isnan(read("{\"loss\": 1, \"memory\": null}\n", constrained).metrics.at("memory")));
}

TEST(MetricLines, ExpressionsForDigitsMatchNonFiniteValues) {
  const struct {
    const char* regex;
    const char* output;
  } cases[] = {
      {"(\\w+)=([\\d.]+)", "loss=0.5\nloss=nan\n"},
      {"(\\w+)=(-?\\d+\\.\\d+)", "loss=0.5\nloss=-nan acc=0.5\n"},
      {"(\\w+)=(\\d\\.\\d{4})", "loss=0.5000\nloss=inf\n"},
      {"(?P<value>[\\d.]+) is the (?P<name>\\w+)", "0.5 is the loss\nNaN is the loss\n"},
      {"([\\w|-]+)\\s*=\\s*([+-]?\\d*(?:\\.\\d+)?)", "loss = 0.5\nloss = null\n"},
  };
  for (const auto& c : cases) {
    const api::Report report = read(c.output, asks_for("loss", {c.regex}));
    EXPECT_EQ(report.step, 2) << c.regex;
    EXPECT_TRUE(std::isnan(report.metrics.at("loss"))) << c.regex;
  }
  // Parts of other words are no numbers.
  EXPECT_EQ(read("loss=0.5 nano=1 info=2 x_nan=3\n", "(\\w+)=([\\d.]+)").metrics,
            (Metrics{{"info", 2}, {"loss", 0.5}, {"nano", 1}, {"x_nan", 3}}));
}

TEST(MetricLines, AnExpressionThatDoesNotMatchNanIsWarnedAbout) {
  for (const char* good :
       {"(\\w+)=(\\S+)", "(\\w+)=([-+.\\w]+)", "(a)|(?P<name>x)(?P<value>.*)", "(a[)(]b\\()(\\S+)",
        "(?:(x))(?P<v>[^ ,]+)", "\\Q((\\E(x)=([\\w]+)", "(\\w+)=([[:alnum:]]+)"}) {
    ASSERT_TRUE(check_metrics_filter({good}).ok()) << good;
    EXPECT_EQ(metrics_filter_warning({good}), "") << good;
  }
  const struct {
    const char* regex;
    const char* said;
  } bad[] = {
      {"(\\w+)=([-+.\\deE]+)", "([-+.\\deE]+), does not match nan or inf"},
      {"(\\w+)=([\\d.]+|nan)", "does not match inf"},
      {"(?P<value>[\\d.]+) (?P<name>\\w+)", "([\\d.]+), does not match nan or inf"},
      {"(a[)(]b)=(\\d+(?:\\.\\d+)?)", "(\\d+(?:\\.\\d+)?), does not match"},
  };
  for (const auto& c : bad) {
    ASSERT_TRUE(check_metrics_filter({c.regex}).ok()) << c.regex;
    EXPECT_NE(metrics_filter_warning({c.regex}).find(c.said), std::string::npos)
        << metrics_filter_warning({c.regex});
  }
}

TEST(MetricLines, IgnoredLinesAreReportedAtTheEnd) {
  const struct {
    const char* regex;
    const char* output;
    const char* said;
  } cases[] = {
      {"", "{\"loss\": 1}\n{\"loss\": \"x\"}\n", "the last line with loss held no number"},
      {"", "{\"loss\": 1}\n{\"loss\": \"x\"}\n{\"loss\": [2]}\n{\"loss\": tensor(nan)}\nbye\n",
       "the last 3 lines with loss held no number"},
      {"", "{\"loss\": \"x\"}\n{\"loss\": 1}\n", ""},
      {"(\\w+)=(\\S+)", "loss=1\nloss=?\nloss=tensor(nan)\n",
       "the last 2 lines with loss held no number"},
      {"(\\w+)=(\\S+)", "loss=1 acc=?\n", ""},
      {"", "{\"step\": \"3\", \"loss\": 1}\n{\"step\": 2.5, \"loss\": 1}\n",
       "step \"3\" is no whole number from 0 on, so lines were counted instead"},
      {"", "{\"step\": 1e20, \"loss\": 1}\n", "step 1e+20 is no whole number"},
      {"", "{\"step\": \"warm-up\"}\n{\"loss\": 1}\n", ""},
      {"", "{\"step\": 9, \"loss\": 1}\n{\"step\": 5, \"loss\": 2}\n",
       "it reported step 9, then went back to 5: what was printed last counts"},
      {"", "{\"step\": 2, \"loss\": 1}\n{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 2}\n",
       ""},
      {"", "{\"step\": 3, \"loss\": 1, \"final\": true}\n{\"step\": 3, \"loss\": 2}\n",
       "it printed metrics after its final result, which replace nothing"},
  };
  for (const auto& c : cases) {
    MetricLines lines(asks_for("loss", {c.regex}));
    lines.feed(c.output, 7);
    EXPECT_TRUE(lines.has_report()) << c.output;
    if (*c.said == '\0') {
      EXPECT_EQ(lines.remarks(), "") << c.output;
    } else {
      EXPECT_NE(lines.remarks().find(c.said), std::string::npos) << lines.remarks();
    }
  }
}

TEST(MetricLines, AFinalResultStays) {
  const api::Report report = read(
      "{\"step\": 3, \"loss\": 1, \"final\": true}\n{\"step\": 3, \"loss\": 2}\n"
      "{\"loss\": 4, \"step\": 2, \"checkpoint\": \"c\"}\n");
  EXPECT_EQ(report.step, 3);
  EXPECT_EQ(report.metrics, (Metrics{{"loss", 1}}));
  EXPECT_EQ(report.checkpoint, "c");
  // A program that calls every line final continues nevertheless.
  EXPECT_EQ(read("{\"step\": 1, \"loss\": 3, \"final\": true}\n"
                 "{\"step\": 2, \"loss\": 2, \"final\": true}\n"
                 "{\"step\": 3, \"loss\": 1}\n")
                .metrics,
            (Metrics{{"loss", 1}}));
}

// With an exponent or without.
TEST(MetricLines, NumbersBeyondADoubleAreZeroOrInfinity) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string zeros(400, '0');
  const struct {
    std::string number;
    double value;
  } cases[] = {
      {"1e-999", 0},
      {"0." + zeros + "1", 0},
      {"-0." + zeros + "1", 0},
      {"0." + zeros + "1e+9", 0},
      {"1e999", kInfinity},
      {"1" + zeros, kInfinity},
      {"-1" + zeros + ".5", -kInfinity},
      {"1" + zeros + "e-9", kInfinity},
  };
  for (const auto& c : cases) {
    const api::Report report = read("loss=" + c.number, "(\\w+)=(\\S+)");
    EXPECT_EQ(report.metrics.at("loss"), c.value) << c.number;
  }
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
    ASSERT_TRUE(check_metrics_filter({c.regex}).ok());
    const api::Report report = read(c.output, c.regex);
    EXPECT_EQ(report.step, c.step) << c.output;
    EXPECT_EQ(report.metrics, c.metrics) << c.output;
  }
}

TEST(MetricLines, RegularExpressionsThatCannotServe) {
  EXPECT_NE(check_metrics_filter({"("}).error().message.find("cannot read"), std::string::npos);
  EXPECT_NE(check_metrics_filter({"loss=(.*)"}).error().message.find("it has 1"),
            std::string::npos);
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
  MetricLines lines({.objectives = {objective}});
  for (int step = 1; step <= 1000; ++step) {
    lines.feed("{\"loss\": " + std::string(step == 737 ? "0.01" : "0.5") + "}\n", 1);
  }
  const std::vector<api::HistoryPoint>& history = lines.report().history;
  EXPECT_EQ(history.size(), api::kMaxHistoryPoints);
  EXPECT_TRUE(std::ranges::any_of(
      history, [](const api::HistoryPoint& point) { return point.step == 737; }));
}

TEST(MetricLines, RungsAndTheFinalResultAreUrgent) {
  MetricLines lines({.rungs = {3, 9}});
  lines.feed("{\"step\": 2, \"loss\": 1}\n", 1);
  EXPECT_FALSE(lines.take_urgent());
  lines.feed("{\"step\": 3, \"loss\": 1}\n{\"step\": 4, \"loss\": 1}\n", 1);
  EXPECT_TRUE(lines.take_urgent());
  EXPECT_FALSE(lines.take_urgent());
  lines.feed("{\"step\": 5, \"loss\": 1, \"final\": true}\n", 1);
  EXPECT_TRUE(lines.take_urgent());
}

TEST(MetricLines, FinalIsFinal) {
  MetricLines lines({});
  lines.feed("{\"step\": 3, \"loss\": 0.5, \"final\": true}\n", 1);
  lines.feed("{\"step\": 3, \"loss\": 9, \"test_loss\": 0.7}\n", 2);
  lines.feed("{\"step\": 2, \"loss\": 8}\n", 3);
  EXPECT_EQ(lines.report().step, 3);
  EXPECT_EQ(lines.report().metrics.at("loss"), 0.5);
  EXPECT_EQ(lines.report().metrics.at("test_loss"), 0.7);
  EXPECT_TRUE(lines.report().final_result);
}

}  // namespace
}  // namespace fettle::runtime
