// A reporter against an API server in memory: its writes, the directives it takes, the failures it
// survives.
#include "trainer/reporter/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <vector>

#include "api/trial/trial_json.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const kube::ObjectKey kKey{"team", "digits-3"};
// An interval at which a held-back report is never sent.
constexpr std::int64_t kNeverMs = 24 * 3'600'000;
// Limit of waits that only a failing test reaches, however busy the machine.
constexpr seconds kPatience{120};

// A transport to the API server that is shut until open() is called.
class Gate final : public kube::HttpTransport {
 public:
  explicit Gate(kube::HttpTransport& behind) : behind_(behind) {}
  void open() { open_.count_down(); }
  kube::HttpResult call(const kube::HttpRequest& request, milliseconds deadline) override {
    reached_.count_down();
    open_.wait();
    return behind_.call(request, deadline);
  }
  kube::HttpResult stream(const kube::HttpRequest&, const std::function<bool(std::string_view)>&,
                          milliseconds, std::stop_token) override {
    return kube::HttpFailure{false, "a reporter follows nothing"};
  }
  void await_first_call() { reached_.wait(); }

 private:
  kube::HttpTransport& behind_;
  std::latch reached_{1};
  std::latch open_{1};
};

class ReporterTest : public testing::Test {
 protected:
  ReporterTest() {
    api::Trial trial;
    trial.metadata.name = kKey.name;
    trial.metadata.ns = kKey.ns;
    trial.spec.study = "digits";
    trial.spec.index = 3;
    trial.spec.until_step = 9;
    server_.set(kube::kTrials, api::write_trial(trial));
    server_.forget_requests();
  }

  Reporter make(std::vector<std::int64_t> rungs = {}) {
    ReporterSettings settings;
    settings.trial = kKey;
    settings.interval_ms = kNeverMs;
    settings.needs.rungs = std::move(rungs);
    settings.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    return Reporter(client_, std::move(settings));
  }

  static api::ReportLine line(std::int64_t step, double accuracy, bool final_result = false) {
    api::ReportLine out;
    out.step = step;
    out.metrics["accuracy"] = accuracy;
    out.final_result = final_result;
    return out;
  }

  // The server's report; empty if it has none.
  api::Report stored() {
    const Json trial = server_.get(kube::kTrials, kKey);
    const Json* report = trial.find("status")->find("report");
    return report != nullptr ? *api::read_report(*report) : api::Report();
  }
  std::vector<std::int64_t> stored_steps() {
    std::vector<std::int64_t> steps;
    for (const api::HistoryPoint& point : stored().history) steps.push_back(point.step);
    return steps;
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  // Waits until `condition` holds, with a limit that only a failing test reaches.
  static bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }
  kube::Fault refusal(int times) {
    kube::Fault fault;
    fault.kind = kube::Fault::Kind::kAnswer;
    fault.times = times;
    fault.answer.status = 403;
    fault.answer.body =
        R"({"kind":"Status","code":403,"reason":"Forbidden","message":"not this pod's trial"})";
    return fault;
  }

  kube::FakeApiServer server_;
  kube::Client client_{server_, {}};
  std::mutex mutex_;
  std::vector<std::string> log_;
};

TEST_F(ReporterTest, WritesItsReportAndNothingElse) {
  const Json before = server_.get(kube::kTrials, kKey);
  Reporter reporter = make();
  reporter.submit(line(1, 0.5));
  ASSERT_TRUE(reporter.finish(kPatience));
  EXPECT_EQ(stored().step, 1);
  EXPECT_EQ(stored().metrics.at("accuracy"), 0.5);
  EXPECT_GT(stored().at_ms, 1'600'000'000'000);
  const Json after = server_.get(kube::kTrials, kKey);
  EXPECT_EQ(*after.find("spec"), *before.find("spec"));
  EXPECT_EQ(*after.find("status")->find("phase"), *before.find("status")->find("phase"));
  EXPECT_THAT(server_.requests(), testing::Each(AllOf(testing::StartsWith("PATCH"),
                                                      HasSubstr("/trials/digits-3/status"))))
      << "a trainer may patch the status of its Trial, and not even read it";
}

TEST_F(ReporterTest, TheNewestReportWinsAndTheCurveIsWhole) {
  Reporter reporter = make();
  reporter.submit(line(1, 0.1));
  ASSERT_TRUE(eventually([&] { return stored().step == 1; }));
  for (std::int64_t step = 2; step <= 5; ++step) reporter.submit(line(step, 0.2));
  EXPECT_EQ(stored().step, 1) << "held back";
  reporter.submit(line(6, 0.6, true));
  ASSERT_TRUE(reporter.finish(kPatience));
  EXPECT_TRUE(stored().final_result);
  EXPECT_THAT(stored_steps(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(server_.writes(), 3) << "one that reads, and two reports";
}

TEST_F(ReporterTest, ARungIsNotHeldBack) {
  Reporter reporter = make({3});
  reporter.submit(line(1, 0.1));
  ASSERT_TRUE(eventually([&] { return stored().step == 1; }));
  reporter.submit(line(3, 0.3));
  EXPECT_TRUE(eventually([&] { return stored().step == 3; }));
}

TEST_F(ReporterTest, ContinuesTheCurveOfEarlierRuns) {
  {
    Reporter first = make();
    api::ReportLine saved = line(2, 0.2);
    saved.checkpoint = "epoch-2";
    saved.checkpoint_step = 2;
    first.submit(line(1, 0.1));
    first.submit(saved);
    ASSERT_TRUE(first.finish(kPatience));
  }
  Reporter second = make();
  second.submit(line(3, 0.3));
  ASSERT_TRUE(second.finish(kPatience));
  EXPECT_THAT(stored_steps(), ElementsAre(1, 2, 3));
  EXPECT_EQ(stored().checkpoint, "epoch-2") << "the second run has none of its own yet";
}

TEST_F(ReporterTest, HearsThatTheTrialIsToStop) {
  Reporter reporter = make({2});
  reporter.submit(line(1, 0.1));
  ASSERT_TRUE(eventually([&] { return stored().step == 1; }));
  EXPECT_FALSE(reporter.stop_wanted());
  server_.merge(kube::kTrials, kKey,
                *parse_json(R"({"spec":{"stop":{"reason":"EarlyStopped","basis":4}}})"));
  reporter.submit(line(2, 0.1));
  EXPECT_TRUE(eventually([&] { return reporter.stop_wanted(); }));
  EXPECT_THAT(log(), ElementsAre("the trial is to be stopped"));
}

TEST_F(ReporterTest, SaysThatThisRunIsResized) {
  Reporter reporter = make({2});
  reporter.submit(line(1, 0.1));
  ASSERT_TRUE(eventually([&] { return stored().step == 1; }));
  server_.merge(kube::kTrials, kKey, *parse_json(R"({"spec":{"workers":3}})"));
  reporter.submit(line(2, 0.1));
  EXPECT_TRUE(eventually([&] { return !log().empty(); }));
  EXPECT_THAT(log(), ElementsAre("workers is now 3; this run is resized"));
  EXPECT_FALSE(reporter.stop_wanted());
}

TEST_F(ReporterTest, IsPatientUntilThePodIsRecorded) {
  server_.inject(refusal(2));
  Reporter reporter = make();
  reporter.submit(line(1, 0.5));
  ASSERT_TRUE(eventually([&] { return log().size() == 2; }));  // the second after the write
  EXPECT_THAT(log(), ElementsAre(HasSubstr("tried again: "), "reports are delivered again"));
  EXPECT_EQ(stored().step, 1);
}

TEST_F(ReporterTest, SurvivesEveryWayACallCanFail) {
  using Kind = kube::Fault::Kind;
  for (const Kind kind :
       {Kind::kRefused, Kind::kResetBefore, Kind::kResetAfter, Kind::kDoubled, Kind::kTruncated}) {
    kube::Fault fault;
    fault.kind = kind;
    server_.inject(fault);
    Reporter reporter = make();
    reporter.submit(line(1, 0.5, true));
    EXPECT_TRUE(reporter.finish(kPatience)) << static_cast<int>(kind);
    EXPECT_EQ(stored().metrics.at("accuracy"), 0.5);
    server_.clear_faults();
  }
}

TEST_F(ReporterTest, GivesUpWhenItsTimeIsOver) {
  server_.inject(refusal(1'000'000));
  Reporter reporter = make();
  reporter.submit(line(1, 0.5, true));
  EXPECT_FALSE(reporter.finish(milliseconds(100)));
}

// If submit() waited, this test would never open the gate.
TEST_F(ReporterTest, SubmitNeverWaitsForTheServer) {
  Gate gate(server_);
  kube::Client client(gate, {});
  ReporterSettings settings;
  settings.trial = kKey;
  settings.log = [](const std::string&) {};
  Reporter reporter(client, std::move(settings));
  reporter.submit(line(1, 0.1));
  gate.await_first_call();
  reporter.submit(line(2, 0.2));
  EXPECT_FALSE(reporter.stop_wanted());
  EXPECT_EQ(server_.writes(), 0) << "nothing has reached the server yet";
  gate.open();
  ASSERT_TRUE(reporter.finish(kPatience));
  EXPECT_THAT(stored_steps(), ElementsAre(1, 2));
}

TEST_F(ReporterTest, ATrainingWithoutReportsSendsNothing) {
  Reporter reporter = make();
  EXPECT_TRUE(reporter.finish(kPatience));
  EXPECT_THAT(server_.requests(), ElementsAre());
}

TEST(TrialDirectives, AreReadFromWhateverASpecHolds) {
  EXPECT_EQ(read_directives(Json::object()), TrialDirectives());
  EXPECT_EQ(read_directives(*parse_json(R"({"spec":{"stop":null,"suspend":false}})")),
            TrialDirectives());
  EXPECT_EQ(read_directives(*parse_json(
                R"({"spec":{"stop":{},"suspend":true,"untilStep":9,"workers":2,"new":[]}})")),
            (TrialDirectives{true, true, 9, 2}));
}

}  // namespace
}  // namespace fettle::trainer
