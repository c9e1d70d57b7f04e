// Which report of a run counts: from standard output or from standard error.
#include "runtime/local/process/trial_output.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>

namespace fettle::local {
namespace {

using Stream = OutputMetrics::Stream;
using Metrics = std::map<std::string, double>;

runtime::MetricLinesOptions options() {
  runtime::MetricLinesOptions options{.filter = {"(\\w+)=(\\S+)"}};
  options.objectives.emplace_back().metric = "accuracy";
  return options;
}

TEST(OutputMetrics, ProgressBarsAndLoggingAreReadOffStandardError) {
  OutputMetrics metrics(options());
  metrics.feed(Stream::kErrors, "\rloss=3 accuracy=0.1\rloss=2 accuracy=0.4\n", 1);
  metrics.feed(Stream::kOutput, "batch=32\n", 1);
  EXPECT_EQ(metrics.report().metrics, (Metrics{{"accuracy", 0.4}, {"loss", 2}}));
  metrics.feed(Stream::kErrors, "\rloss=3 accuracy=0.5", 1);
  metrics.finish(2);
  EXPECT_EQ(metrics.report().metrics.at("accuracy"), 0.5);
  EXPECT_EQ(metrics.report().step, 2);
}

// A program prints the loss of batches by a bar, and the accuracy of epochs. Both are read, in any
// order in which they come through their pipes.
TEST(OutputMetrics, TheTwoAreNotMixed) {
  for (const bool bar_first : {false, true}) {
    OutputMetrics metrics(options());
    const auto bar = [&] { metrics.feed(Stream::kErrors, "\rloss=3\rloss=2\n\rloss=1\n", 1); };
    if (bar_first) bar();
    metrics.feed(Stream::kOutput, "accuracy=0.5\naccuracy=0.6\naccuracy=0.7\n", 1);
    if (!bar_first) bar();
    EXPECT_EQ(metrics.report().step, 3);
    EXPECT_EQ(metrics.report().metrics, (Metrics{{"accuracy", 0.7}}));
  }
}

TEST(OutputMetrics, SilenceIsExplainedForBoth) {
  OutputMetrics metrics(options());
  EXPECT_NE(metrics.silence().find("nothing was printed"), std::string::npos);
  metrics.feed(Stream::kErrors, "accuracy: 0.5\n", 1);
  metrics.feed(Stream::kOutput, "hello\n", 1);
  EXPECT_NE(metrics.silence().find("\"accuracy: 0.5\", is not matched"), std::string::npos);
  metrics.feed(Stream::kOutput, "accuracy=0.5\n", 1);
  EXPECT_EQ(metrics.silence(), "");
}

TEST(TrialOutput, StandardErrorOfSeveralWorkersIsOnlyLogged) {
  for (const std::size_t workers : {1, 2}) {
    std::string directory = (std::filesystem::temp_directory_path() / "fettle-XXXXXX").string();
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    SupervisorCommand command;
    command.run_directory = directory;
    command.workers.resize(workers);
    command.metrics = options();
    TrialOutput output(command);
    EXPECT_FALSE(output.has_begun());
    output.feed(Stream::kErrors, "accuracy=0.5\n", 1);
    EXPECT_TRUE(output.has_begun());
    EXPECT_EQ(output.metrics().has_report(), workers == 1);
    EXPECT_EQ(output.log().last_lines(1), "accuracy=0.5");
    EXPECT_EQ(output.report_due(1'000), workers == 1) << "a report is news";
    if (workers == 1) output.take_report(1'000);
    EXPECT_FALSE(output.report_due(5'000)) << "nothing new";
    output.remove();
    EXPECT_TRUE(std::filesystem::is_empty(directory));
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace fettle::local
