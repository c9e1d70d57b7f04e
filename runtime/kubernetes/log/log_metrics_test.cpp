// Logs as the API server returns them, and the reports in them. Time and readers are moved by hand,
// but for one test with threads.
#include "runtime/kubernetes/log/log_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "kube/testing/fake_api_server.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::int64_t kStart = 1'800'000'000'000;

std::string metric(int step, double loss) {
  return R"({"step": )" + std::to_string(step) + R"(, "loss": )" + std::to_string(loss) + "}";
}

class LogMetricsTest : public testing::Test {
 protected:
  explicit LogMetricsTest(const LogMetricsOptions& options = {.calls_per_second = 100,
                                                              .readers = 0})
      : logs_(
            client_, clock_, [this](const std::string&) { ++changes_; }, options) {}

  LogSource source(const std::string& pod, const std::string& regex = "",
                   const std::string& ns = "team") {
    server_.set(kube::kPods,
                Json::object({{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", Json::object({{"name", pod}, {"namespace", ns}})}}));
    return {{ns, pod}, "uid-" + pod, "trainer", ns + "/digits-0", "digits", {regex, {}, {}}};
  }
  void print(const std::string& pod, const std::string& line, const std::string& ns = "team") {
    server_.append_log({ns, pod}, "trainer", line, clock_.now_ms() * 1'000'000 + ++printed_);
  }
  // Reads every log that is due, for `ms`.
  void pass(std::int64_t ms = 0) {
    const std::int64_t end = clock_.now_ms() + ms;
    while (true) {
      while (logs_.step()) continue;
      if (clock_.now_ms() >= end) return;
      clock_.pass(std::min<std::int64_t>(10, end - clock_.now_ms()));
    }
  }
  static kube::ClientOptions unlimited() {
    kube::ClientOptions options;
    options.calls_per_second = 0;
    options.pause = [](std::chrono::milliseconds) {};
    return options;
  }
  // Only the logs fail: the pods themselves exist.
  void fail_logs(int code, const std::string& reason, const std::string& words) {
    kube::Fault fault;
    fault.kind = kube::Fault::Kind::kAnswer;
    fault.every = 1;
    fault.matches = [](const kube::HttpRequest& request) {
      return request.target.find("/log") != std::string::npos;
    };
    fault.answer = kube::status_response(code, reason, words);
    server_.inject(fault);
  }
  std::size_t calls() const { return server_.requests().size(); }

  kube::FakeApiServer server_;
  kube::Client client_{server_, unlimited()};
  HandClock clock_{kStart};
  std::atomic<int> changes_ = 0;
  std::int64_t printed_ = 0;
  LogMetrics logs_;
};

TEST_F(LogMetricsTest, APodThatHasEndedIsReadOnce) {
  print("a", "starting");
  print("a", metric(1, 0.5));
  print("a", R"({"step": 2, "loss": 0.25, "final": true})");
  const LogSource pod = source("a");
  (void)logs_.read(pod, true);
  pass(60'000);
  const LogReading reading = logs_.read(pod, true);
  EXPECT_TRUE(reading.complete);
  ASSERT_TRUE(reading.report);
  EXPECT_EQ(reading.report->step, 2);
  EXPECT_TRUE(reading.report->final_result);
  EXPECT_EQ(reading.read_error, "");
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(calls(), 1u);
}

TEST_F(LogMetricsTest, APodThatRunsIsReadAgainAndAgain) {
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  pass(kFirstPauseMs);
  EXPECT_FALSE(logs_.read(pod, false).report);
  EXPECT_EQ(logs_.read(pod, false).read_ms, clock_.now_ms());
  print("a", metric(1, 0.5));
  pass(kMinPauseMs);
  ASSERT_TRUE(logs_.read(pod, false).report);
  EXPECT_FALSE(logs_.read(pod, false).complete);
  print("a", metric(2, 0.25));
  (void)logs_.read(pod, true);
  pass();
  EXPECT_TRUE(logs_.read(pod, true).complete);
  EXPECT_EQ(logs_.read(pod, true).report->step, 2);
}

TEST_F(LogMetricsTest, ALogIsNotKnownToBeSilentBeforeItWasRead) {
  const LogSource pod = source("a");
  EXPECT_EQ(logs_.read(pod, false).read_ms, 0);
  pass(kFirstPauseMs);
  EXPECT_EQ(logs_.read(pod, false).read_ms, kStart + kFirstPauseMs);
}

TEST_F(LogMetricsTest, OfAShortRunOnlyTheWholeLogIsRead) {
  print("a", metric(1, 0.5));
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  pass(kFirstPauseMs - 10);
  print("a", metric(2, 0.25));
  (void)logs_.read(pod, true);
  pass();
  EXPECT_TRUE(logs_.read(pod, true).complete);
  EXPECT_EQ(logs_.read(pod, true).report->step, 2);
  EXPECT_EQ(calls(), 1u);
}

TEST_F(LogMetricsTest, ASilentLogIsReadLessOften) {
  (void)logs_.read(source("a"), false);
  pass(600'000);
  EXPECT_LE(calls(), 60u);
  EXPECT_GE(calls(), 600'000u / kMaxPauseMs);
}

TEST_F(LogMetricsTest, ReportsArePacedButNoneIsForgotten) {
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  for (int step = 1; step <= 30; ++step) {
    print("a", metric(step, 0.5));
    pass(1'000);
  }
  EXPECT_LE(changes_, 30'000 / kPublishMs + 1);
  pass(20'000);
  EXPECT_EQ(logs_.read(pod, false).report->step, 30);
}

TEST_F(LogMetricsTest, RungsAndResultsAreNotHeldBack) {
  LogSource pod = source("a");
  pod.metrics.rungs = {3};
  (void)logs_.read(pod, false);
  print("a", metric(1, 0.5));
  pass(kMinPauseMs);
  print("a", metric(2, 0.5));
  pass(kMinPauseMs);
  EXPECT_EQ(logs_.read(pod, false).report->step, 1);
  print("a", metric(3, 0.5));
  pass(kMinPauseMs);
  EXPECT_EQ(logs_.read(pod, false).report->step, 3);
}

TEST_F(LogMetricsTest, TheStudysExpressionFindsMetrics) {
  print("a", "epoch 3: loss=0.25");
  const LogSource pod = source("a", "(\\w+)=(\\S+)");
  (void)logs_.read(pod, true);
  pass();
  EXPECT_EQ(logs_.read(pod, true).report->metrics.at("loss"), 0.25);
}

TEST_F(LogMetricsTest, ALossThatIsNotFiniteIsTheNewestValue) {
  int pods = 0;
  for (const char* word : {"nan", "-nan", "NaN", "inf", "-inf", "null", "1e400"}) {
    for (const char* regex : {"", "(\\w+)=([-+.\\w]+)", "(\\w+)=([-+.\\deE]+)"}) {
      const std::string name = "pod-" + std::to_string(pods++);
      const bool json = *regex == '\0';
      print(name, json ? metric(1, 0.5) : "loss=0.5");
      print(name, json ? R"({"step": 2, "loss": )" + std::string(word) + "}"
                       : "loss=" + std::string(word));
      LogSource pod = source(name, regex);
      pod.metrics.objectives.emplace_back().metric = "loss";
      (void)logs_.read(pod, true);
      pass();
      const LogReading reading = logs_.read(pod, true);
      ASSERT_TRUE(reading.report) << word << " " << regex;
      EXPECT_FALSE(std::isfinite(reading.report->metrics.at("loss"))) << word << " " << regex;
      EXPECT_EQ(reading.report->step, 2) << word << " " << regex;
    }
  }
}

TEST_F(LogMetricsTest, LinesThatDidNotCountAreSaidOnceTheLogIsComplete) {
  print("a", metric(1, 0.5));
  print("a", R"({"step": 2, "loss": "?"})");
  LogSource pod = source("a");
  pod.metrics.objectives.emplace_back().metric = "loss";
  (void)logs_.read(pod, false);
  pass(kFirstPauseMs);
  EXPECT_EQ(logs_.read(pod, false).remarks, "");
  (void)logs_.read(pod, true);
  pass();
  EXPECT_EQ(logs_.read(pod, true).remarks, "the last line with loss held no number");
}

TEST_F(LogMetricsTest, ALogWithoutMetricsIsCompleteAndEmpty) {
  print("a", "nothing to see");
  const LogSource pod = source("a");
  (void)logs_.read(pod, true);
  pass();
  EXPECT_TRUE(logs_.read(pod, true).complete);
  EXPECT_FALSE(logs_.read(pod, true).report);
}

TEST_F(LogMetricsTest, AReadThatFailsIsMadeAgain) {
  print("a", metric(1, 0.5));
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kResetBefore;
  fault.times = 2;
  server_.inject(fault);
  const LogSource pod = source("a");
  (void)logs_.read(pod, true);
  pass(5'000);
  EXPECT_TRUE(logs_.read(pod, true).complete);
  EXPECT_TRUE(logs_.read(pod, true).report);
  EXPECT_EQ(logs_.read(pod, true).read_error, "");
}

TEST_F(LogMetricsTest, ALogThatIsGoneIsGivenUpInWords) {
  const LogSource pod = source("a");
  server_.remove(kube::kPods, {"team", "a"});
  (void)logs_.read(pod, true);
  pass();
  EXPECT_TRUE(logs_.recall(pod.uid).complete);
  EXPECT_THAT(logs_.recall(pod.uid).read_error, HasSubstr("its log could not be read"));
}

// A kubelet that has just started, or has not made the container yet, answers 404 as well.
TEST_F(LogMetricsTest, ALogThatTheNodeDoesNotHaveYetIsTriedOn) {
  const LogSource pod = source("a");
  fail_logs(404, "NotFound", "pods \"a\" not found on this node");
  (void)logs_.read(pod, true);
  pass(kGiveUpMs - 60'000);
  EXPECT_FALSE(logs_.recall(pod.uid).complete);
  EXPECT_THAT(logs_.recall(pod.uid).read_error, HasSubstr("not found on this node"));
  server_.clear_faults();
  print("a", metric(1, 0.5));
  pass(20'000);
  EXPECT_TRUE(logs_.recall(pod.uid).complete);
  EXPECT_TRUE(logs_.recall(pod.uid).report);
  EXPECT_EQ(logs_.recall(pod.uid).read_error, "");
}

// An ended log is tried for as long as an upgrade of the control plane takes to reconnect to the
// kubelets, but not for ever.
TEST_F(LogMetricsTest, AnEndedLogIsGivenUpAfterMinutesNotSeconds) {
  const LogSource pod = source("a");
  fail_logs(502, "BadGateway", "no agent available");
  (void)logs_.read(pod, true);
  pass(kGiveUpMs - 60'000);
  EXPECT_FALSE(logs_.recall(pod.uid).complete);
  pass(120'000);
  EXPECT_TRUE(logs_.recall(pod.uid).complete);
  EXPECT_THAT(logs_.recall(pod.uid).read_error, HasSubstr("no agent available"));
}

// No other run could be read either, so nothing is gained by giving up.
TEST_F(LogMetricsTest, AForbiddenLogIsAskedForUntilItIsAllowed) {
  const LogSource pod = source("a");
  fail_logs(403, "Forbidden", "no rights to pods/log");
  (void)logs_.read(pod, true);
  pass(3 * kGiveUpMs);
  EXPECT_FALSE(logs_.recall(pod.uid).complete);
  EXPECT_THAT(logs_.recall(pod.uid).read_error, HasSubstr("no rights to pods/log"));
}

class FewLogsTest : public LogMetricsTest {
 protected:
  FewLogsTest() : LogMetricsTest({.calls_per_second = 1'000, .readers = 0, .kept = 2}) {}
};

// The end of the pod is asked for while a read is in flight that gives the log up. The log was then
// complete and queued, so that it was dropped and later looked for.
TEST_F(FewLogsTest, ALogThatIsGivenUpDuringARequestForItsEndCanBeDropped) {
  const LogSource pod = source("a");
  server_.remove(kube::kPods, {"team", "a"});
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kAnswer;
  fault.every = 1;
  fault.matches = [&](const kube::HttpRequest& request) {
    const bool of_log = request.target.find("/log") != std::string::npos;
    if (of_log) (void)logs_.read(pod, true);
    return false;
  };
  server_.inject(fault);
  (void)logs_.read(pod, false);
  clock_.pass(kFirstPauseMs);
  ASSERT_TRUE(logs_.step());
  server_.clear_faults();
  EXPECT_TRUE(logs_.recall(pod.uid).complete);
  for (const char* name : {"b", "c", "d"}) {
    print(name, metric(1, 0.5));
    (void)logs_.read(source(name), true);
  }
  EXPECT_FALSE(logs_.recall(pod.uid).complete) << "the oldest was dropped";
  pass(1'000);
  EXPECT_TRUE(logs_.recall("uid-d").report);
}

// The error of a running pod's log is reported, and reading is tried again; its silence meanwhile
// means nothing.
TEST_F(LogMetricsTest, ALogThatCannotBeReadIsTriedOn) {
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kAnswer;
  fault.every = 1;
  fault.answer = kube::status_response(403, "Forbidden", "no rights to pods/log");
  server_.inject(fault);
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  pass(60'000);
  LogReading reading = logs_.read(pod, false);
  EXPECT_FALSE(reading.complete);
  EXPECT_EQ(reading.read_ms, 0);
  EXPECT_THAT(reading.read_error, HasSubstr("no rights to pods/log"));
  EXPECT_EQ(changes_, 1) << "it is said once";
  server_.clear_faults();
  print("a", metric(1, 0.5));
  pass(20'000);
  reading = logs_.read(pod, false);
  EXPECT_EQ(reading.read_error, "");
  EXPECT_TRUE(reading.report);
  EXPECT_GT(reading.read_ms, 0);
}

TEST_F(LogMetricsTest, WhatIsForgottenIsReadAnew) {
  print("a", metric(1, 0.5));
  const LogSource pod = source("a");
  (void)logs_.read(pod, true);
  pass();
  logs_.forget(pod.uid);
  EXPECT_FALSE(logs_.recall(pod.uid).report);
  (void)logs_.read(pod, true);
  pass();
  EXPECT_TRUE(logs_.recall(pod.uid).report);
}

// After a restart of the operator known reports are not published again step by step.
TEST_F(LogMetricsTest, ALongLogIsPublishedOnceItsEndIsReached) {
  for (int step = 1; step <= 5'000; ++step) {
    print("a", metric(step, 0.5));
    print("a", std::string(200, '.'));
  }
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  while (!logs_.recall(pod.uid).report) pass(10);
  EXPECT_EQ(logs_.recall(pod.uid).report->step, 5'000);
  EXPECT_EQ(changes_, 1);
}

TEST_F(LogMetricsTest, AFloodOfOutputHoldsNoOtherLogUp) {
  const LogSource loud = source("loud");
  const LogSource quiet = source("quiet");
  (void)logs_.read(loud, false);
  (void)logs_.read(quiet, false);
  const std::string chatter(1'000, '.');
  for (int step = 1; step <= 10; ++step) {
    for (int i = 0; i < 3'000; ++i) print("loud", chatter);
    print("loud", metric(step, 0.5));
    print("quiet", metric(step, 0.5));
    pass(kPublishMs + kMaxPauseMs);
    EXPECT_EQ(logs_.read(quiet, false).report->step, step);
    EXPECT_EQ(logs_.read(loud, false).report->step, step);
  }
}

// The calls in this number of seconds: 100 a second, and those of one second saved up.
std::size_t most_calls(std::size_t seconds) { return 100 * (seconds + 1) + 1; }

// A thousand trials of two tenants at once. All report, within the calls that are allowed.
TEST_F(LogMetricsTest, AThousandPodsAreAllRead) {
  constexpr int kPods = 1'000;
  std::vector<LogSource> pods;
  for (int i = 0; i < kPods; ++i) {
    pods.push_back(source("p" + std::to_string(i), "", i < 10 ? "small" : "big"));
    (void)logs_.read(pods.back(), false);
  }
  for (int step = 1; step <= 3; ++step) {
    for (int i = 0; i < kPods; ++i) {
      print(pods[i].pod.name, metric(step, i), pods[i].pod.ns);
    }
    const std::size_t before = calls();
    pass(1'000);
    for (int i = 0; i < 10; ++i) {
      const std::optional<api::Report> report = logs_.recall(pods[i].uid).report;
      ASSERT_TRUE(report) << "the small tenant waits for the big one";
    }
    EXPECT_LE(calls() - before, most_calls(1));
    pass(30'000);
    EXPECT_LE(calls() - before, most_calls(31));
    for (int i = 0; i < kPods; ++i) {
      const LogReading reading = logs_.recall(pods[i].uid);
      ASSERT_TRUE(reading.report) << i;
      EXPECT_EQ(reading.report->step, step);
      EXPECT_EQ(reading.report->metrics.at("loss"), i);
      EXPECT_GT(reading.read_ms, clock_.now_ms() - 2 * kMaxPauseMs);
    }
  }
}

class LogReadersTest : public LogMetricsTest {
 protected:
  LogReadersTest() : LogMetricsTest({.calls_per_second = 10'000, .readers = 4}) {}
};

TEST_F(LogReadersTest, ReadersShareTheWorkAndEndAtOnce) {
  constexpr int kPods = 200;
  std::vector<LogSource> pods;
  for (int i = 0; i < kPods; ++i) {
    pods.push_back(source("p" + std::to_string(i)));
    print(pods.back().pod.name, metric(1, i));
    (void)logs_.read(pods.back(), i % 2 == 0);
  }
  const auto patience = std::chrono::steady_clock::now() + 120s;
  const auto all_read = [&] {
    return std::ranges::all_of(
        pods, [&](const LogSource& pod) { return logs_.recall(pod.uid).report.has_value(); });
  };
  while (!all_read() && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(2ms);
    clock_.pass(1);
  }
  EXPECT_TRUE(all_read());
  logs_.stop();
  const std::size_t before = calls();
  (void)logs_.read(source("late"), false);
  EXPECT_EQ(calls(), before);
}

}  // namespace
}  // namespace fettle::kubernetes
