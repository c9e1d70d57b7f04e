// The output of tqdm, Keras, Lightning and others (captured/README.md), read by the expressions
// that a user writes for them: which metric is learnt at which step.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/test_paths.h"
#include "runtime/metric_lines.h"

namespace fettle::runtime {
namespace {

using Curve = std::vector<std::pair<std::int64_t, double>>;

// The newest value is the report's; the curve may not have it yet.
Curve curve_of(const api::Report& report, const std::string& metric) {
  Curve curve;
  for (const api::HistoryPoint& point : api::curve_of(report)) {
    const auto found = point.metrics.find(metric);
    if (found != point.metrics.end()) curve.emplace_back(point.step, found->second);
  }
  return curve;
}

struct Case {
  const char* file;
  api::MetricsFilter filter;
  const char* metric;
  Curve curve;
};

TEST(Captured, ReadsTheMetricsOfRealPrograms) {
  const Case cases[] = {
      {"tqdm_batches.out.txt",
       {R"((\w+)=([-+.\w]+))", R"(epoch (\d+))"},
       "accuracy",
       {{1, 0.3950}, {2, 0.6975}, {3, 0.7983}}},
      {"tqdm_batches.err.txt",
       {R"((\w+)=([-+.\w]+))"},
       "loss",
       {{1, 0.6050}, {2, 0.3025}, {3, 0.2017}}},
      {"tqdm_nested.err.txt",
       {R"((\w+)=([-+.\w]+))"},
       "accuracy",
       {{1, 0.2603}, {2, 0.6301}, {3, 0.7534}}},
      {"keras_fit.out.txt",
       {R"((\w+): ([-+.\w]+))", R"(^Epoch (\d+))"},
       "val_accuracy",
       {{1, 0.5938}, {2, 0.6500}, {3, 0.6812}}},
      {"xgboost_train.out.txt",
       {R"(([\w-]+):([-+.\w]+))", R"(^\[(\d+)\])", 0},
       "valid-logloss",
       {{1, 0.49564}, {2, 0.38322}, {3, 0.30555}, {4, 0.25684}, {5, 0.21315}}},
      {"lightgbm_train.out.txt",
       {R"(valid_0's (\w+): ([-+.\w]+))", R"(^\[(\d+)\])"},
       "auc",
       {{1, 0.935588}, {2, 0.937601}, {3, 0.948068}, {4, 0.948068}, {5, 0.948068}}},
      {"lightning_fit.out.txt",
       {R"(^epoch \d+: (\w+)=([-+.\w]+))", R"(^epoch (\d+))"},
       "val_loss",
       {{1, 0.3937}, {2, 0.3028}, {3, 0.2507}}},
      // With the package rich its bar is drawn once, at the end.
      {"lightning_rich.out.txt",
       {R"((\w+): ([-+.\w]+))", R"(^Epoch (\d+))", 0},
       "val_loss",
       {{3, 0.251}}},
      {"hf_trainer.out.txt",
       {R"('(\w+)': '?([-+.\w]+))", R"('epoch': '?([\d.]+))"},
       "eval_loss",
       {{1, 0.8302}, {2, 0.8299}, {3, 0.8299}}},
      {"ray_tune.out.txt",
       {R"(│ (\w+) +([-+.\w]+) │)", R"(│ training_iteration +(\d+) │)"},
       "accuracy",
       {{3, 0.75}}},
      // Behind "(RayTrainWorker pid=3912)", whose pid is no metric.
      {"ray_train.out.txt",
       {R"((accuracy)=([-+.\w]+))", R"(epoch (\d+):)"},
       "accuracy",
       {{1, 0.25}, {2, 0.5}, {3, 0.75}}},
      {"ray_train.err.txt",
       {R"('(\w+)': ([-+.\w]+))", R"(training result (\d+))"},
       "accuracy",
       {{1, 0.25}, {2, 0.5}, {3, 0.75}}},
  };
  for (const Case& c : cases) {
    const Result<std::string> text = read_file(source_path("runtime/captured/") + c.file);
    ASSERT_TRUE(text.ok()) << c.file;
    ASSERT_TRUE(check_metrics_filter(c.filter).ok()) << c.file;
    MetricLinesOptions options{.filter = c.filter};
    options.objectives.emplace_back().metric = c.metric;
    for (const std::size_t piece : {text->size(), std::size_t{4096}, std::size_t{7}}) {
      MetricLines lines(options);
      for (std::size_t at = 0; at < text->size(); at += piece) {
        lines.feed(std::string_view(*text).substr(at, piece), 7);
      }
      lines.finish(8);
      EXPECT_EQ(curve_of(lines.report(), c.metric), c.curve) << c.file << " in pieces of " << piece;
      EXPECT_LE(lines.lines(), 3 * static_cast<std::int64_t>(c.curve.size()) + 10) << c.file;
    }
  }
}

// A row of the table in docs/your-program.md, and the place of the metric's last value in the
// output.
struct Row {
  const char* file;
  api::MetricsFilter filter;
  const char* metric;
  const char* before;  // the last value
  const char* value;
  std::int64_t step;
};

std::string replace_last(std::string text, const std::string& before, const std::string& value,
                         const std::string& word) {
  const std::size_t at = text.rfind(before + value);
  EXPECT_NE(at, text.npos) << before << value;
  if (at == text.npos) return text;
  return text.replace(at + before.size(), value.size(), word);
}

// The newest value counts, even if the expression matches digits only.
TEST(Captured, ATrainingThatDivergesEndsWithoutAFiniteValue) {
  const Row rows[] = {
      {"tqdm_batches.out.txt",
       {R"((\w+)=([-+.\w]+))", R"(epoch (\d+))"},
       "accuracy",
       "accuracy=",
       "0.7983",
       3},
      {"lightning_fit.out.txt",
       {R"(^epoch \d+: (\w+)=([-+.\w]+))", R"(^epoch (\d+))"},
       "val_loss",
       "val_loss=",
       "0.2507",
       3},
      {"keras_fit.out.txt",
       {R"((\w+): ([-+.\w]+))", R"(^Epoch (\d+))"},
       "val_accuracy",
       "val_accuracy: ",
       "0.6812",
       3},
      {"xgboost_train.out.txt",
       {R"(([\w-]+):([-+.\w]+))", R"(^\[(\d+)\])", 0},
       "valid-logloss",
       "valid-logloss:",
       "0.21315",
       5},
      {"lightgbm_train.out.txt",
       {R"(valid_0's (\w+): ([-+.\w]+))", R"(^\[(\d+)\])"},
       "auc",
       "auc: ",
       "0.948068",
       5},
      {"hf_trainer.out.txt",
       {R"('(\w+)': '?([-+.\w]+))", R"('epoch': '?([\d.]+))"},
       "eval_loss",
       "'eval_loss': '",
       "0.8299",
       3},
  };
  const Result<std::string> page = read_file(source_path("docs/your-program.md"));
  ASSERT_TRUE(page.ok());
  for (const Row& row : rows) {
    // Lightning prints here as tqdm does; its expression is that of the example.
    if (std::string_view(row.file) != "lightning_fit.out.txt") {
      EXPECT_NE(page->find("`" + row.filter.regex + "` | `" + row.filter.step), page->npos);
    }
    const Result<std::string> text = read_file(source_path("runtime/captured/") + row.file);
    ASSERT_TRUE(text.ok()) << row.file;
    std::string digits_only = row.filter.regex;
    digits_only.replace(digits_only.find(R"([-+.\w]+)"), 8, R"([-+.\deE]+)");
    EXPECT_EQ(metrics_filter_warning(row.filter), "");
    EXPECT_NE(metrics_filter_warning({digits_only}), "");
    for (const std::string& regex : {std::string(row.filter.regex), digits_only}) {
      for (const char* word : {"nan", "-nan", "NaN", "inf", "-inf", "Infinity", "null", "1e400"}) {
        MetricLinesOptions options{.filter = row.filter};
        options.filter.regex = regex;
        options.objectives.emplace_back().metric = row.metric;
        MetricLines lines(options);
        lines.feed(replace_last(*text, row.before, row.value, word), 7);
        lines.finish(8);
        const Curve curve = curve_of(lines.report(), row.metric);
        ASSERT_FALSE(curve.empty()) << row.file;
        EXPECT_EQ(curve.back().first, row.step) << row.file << " " << regex << " " << word;
        EXPECT_FALSE(std::isfinite(curve.back().second)) << row.file << " " << regex << " " << word;
        EXPECT_FALSE(std::isfinite(lines.report().metrics.at(row.metric))) << row.file;
      }
    }
  }
}

}  // namespace
}  // namespace fettle::runtime
