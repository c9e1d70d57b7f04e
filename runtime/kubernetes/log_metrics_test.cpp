// Logs as the API server gives them, and the reports that come of them.
#include "runtime/kubernetes/log_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "kube/fake_api_server.h"

namespace fettle::kubernetes {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LogMetricsTest : public testing::Test {
 protected:
  LogSource source(const std::string& pod, const std::string& regex = "") {
    server_.set(kube::kPods,
                Json::object({{"apiVersion", "v1"},
                              {"kind", "Pod"},
                              {"metadata", Json::object({{"name", pod}, {"namespace", "team"}})}}));
    return {{"team", pod}, "uid-" + pod, "trainer", "team/digits-0", {regex, {}, {}}};
  }
  void print(const std::string& pod, const std::string& line) {
    server_.append_log({"team", pod}, "trainer", line);
  }
  void end(const std::string& pod) { server_.end_log({"team", pod}, "trainer"); }

  bool eventually(const std::function<bool()>& holds) {
    const auto patience = std::chrono::steady_clock::now() + 5s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > patience) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }
  bool completes(const LogSource& what) {
    return eventually([&] { return logs_.read(what, true).complete; });
  }

  kube::FakeApiServer server_;
  kube::Client client_{server_, {}};
  control::SystemClock clock_;
  std::atomic<int> changes_ = 0;
  LogMetrics logs_{client_, clock_, [this](const std::string&) { ++changes_; }};
};

TEST_F(LogMetricsTest, APodThatHasEndedIsReadOnce) {
  print("a", "starting");
  print("a", R"({"step": 1, "loss": 0.5})");
  print("a", R"({"step": 2, "loss": 0.25, "final": true})");
  end("a");
  const LogSource pod = source("a");
  ASSERT_TRUE(completes(pod));
  const LogReading reading = logs_.read(pod, true);
  ASSERT_TRUE(reading.report);
  EXPECT_EQ(reading.report->step, 2);
  EXPECT_TRUE(reading.report->final_result);
  EXPECT_EQ(reading.trouble, "");
  EXPECT_GE(changes_, 1);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(LogMetricsTest, APodThatRunsIsFollowed) {
  const LogSource pod = source("a");
  EXPECT_FALSE(logs_.read(pod, false).report);
  print("a", R"({"step": 1, "loss": 0.5})");
  ASSERT_TRUE(eventually([&] { return logs_.read(pod, false).report.has_value(); }));
  EXPECT_FALSE(logs_.read(pod, false).complete);
  print("a", R"({"step": 2, "loss": 0.25})");
  end("a");
  ASSERT_TRUE(completes(pod));
  EXPECT_EQ(logs_.read(pod, true).report->step, 2);
}

TEST_F(LogMetricsTest, TheStudysExpressionFindsMetrics) {
  print("a", "epoch 3: loss=0.25");
  end("a");
  const LogSource pod = source("a", "(\\w+)=(\\S+)");
  ASSERT_TRUE(completes(pod));
  EXPECT_EQ(logs_.read(pod, true).report->metrics.at("loss"), 0.25);
}

TEST_F(LogMetricsTest, ALogWithoutMetricsIsCompleteAndEmpty) {
  print("a", "nothing to see");
  end("a");
  const LogSource pod = source("a");
  ASSERT_TRUE(completes(pod));
  EXPECT_FALSE(logs_.read(pod, true).report);
}

TEST_F(LogMetricsTest, ALogThatBreaksOffIsReadAgain) {
  print("a", R"({"step": 1, "loss": 0.5})");
  end("a");
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kResetBefore;
  fault.times = 2;
  server_.inject(fault);
  const LogSource pod = source("a");
  ASSERT_TRUE(completes(pod));
  EXPECT_TRUE(logs_.read(pod, true).report);
}

TEST_F(LogMetricsTest, ALogThatIsGoneIsGivenUpInWords) {
  LogSource pod = source("a");
  server_.remove(kube::kPods, {"team", "a"});
  ASSERT_TRUE(completes(pod));
  EXPECT_THAT(logs_.recall(pod.uid).trouble, HasSubstr("its log could not be read"));
}

TEST_F(LogMetricsTest, WhatIsForgottenIsReadAnew) {
  print("a", R"({"step": 1, "loss": 0.5})");
  end("a");
  const LogSource pod = source("a");
  ASSERT_TRUE(completes(pod));
  logs_.forget(pod.uid);
  EXPECT_FALSE(logs_.recall(pod.uid).report);
  EXPECT_TRUE(completes(pod));
}

TEST_F(LogMetricsTest, ManyPodsWaitTheirTurn) {
  constexpr int kPods = 3 * kMostReaders;
  std::vector<LogSource> pods;
  for (int i = 0; i < kPods; ++i) {
    const std::string name = "p" + std::to_string(i);
    print(name, R"({"step": 1, "loss": )" + std::to_string(i) + "}");
    end(name);
    pods.push_back(source(name));
  }
  for (const LogSource& pod : pods) (void)logs_.read(pod, true);
  for (int i = 0; i < kPods; ++i) {
    ASSERT_TRUE(completes(pods[static_cast<std::size_t>(i)]));
    EXPECT_EQ(logs_.recall(pods[static_cast<std::size_t>(i)].uid).report->metrics.at("loss"), i);
  }
}

TEST_F(LogMetricsTest, EndsWhileItFollows) {
  const LogSource pod = source("a");
  (void)logs_.read(pod, false);
  std::this_thread::sleep_for(20ms);  // the destructor must not wait for the pod
}

}  // namespace
}  // namespace fettle::kubernetes
