// fettle-operator over an API server in memory: from start to the last write. The test plays the
// Job controller and the kubelet.
#include "operator/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kube/testing/fake_api_server.h"

namespace fettle::op {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Limit of waits that only a failing test reaches, however busy the machine; informers that failed
// pause for up to a minute.
constexpr milliseconds kLong{240'000};

bool eventually(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < end) {
    if (is_true()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return is_true();
}

Json demo_study(const std::string& ns = "team") {
  Json study = parse_json(R"({
    "apiVersion": "fettle.dev/v1alpha1", "kind": "Study",
    "metadata": {"name": "demo"},
    "spec": {
      "objectives": [{"metric": "accuracy", "direction": "Maximize"}],
      "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
      "algorithm": {"name": "random"},
      "budget": {"trials": 3, "parallelism": 2},
      "trial": {"template": {"spec": {"containers": [
        {"name": "trainer", "image": "none", "command": ["true"]}]}}}
    }})")
                   .value();
  study.find("metadata")->set("namespace", ns);
  return study;
}

class OperatorTest : public testing::Test {
 protected:
  void begin(const std::string& name = "one", bool leader_elect = true) {
    Options options;
    options.metrics_port = 0;
    options.health_port = 0;
    options.workers = 2;
    options.leader_elect = leader_elect;
    options.namespaces = namespaces_;
    program_.emplace(options, Identity{name, "system", 7}, server_, server_, log_);
    thread_ = std::thread([this] { outcome_ = program_->run(); });
  }

  Status end() {
    program_->stop();
    if (thread_.joinable()) thread_.join();
    return outcome_;
  }

  void TearDown() override {
    if (program_) (void)end();
    program_.reset();
  }

  Json lease() { return server_.get(kube::kLeases, {"system", "fettle-operator"}); }

  // Refuses lists as for a namespace that was deleted, together with its Role.
  void refuse_lists(const std::string& ns) {
    kube::Fault refused;
    refused.kind = kube::Fault::Kind::kAnswer;
    refused.matches = [ns](const kube::HttpRequest& request) {
      return request.method == "GET" &&
             request.target.find("/namespaces/" + ns + "/") != std::string::npos;
    };
    refused.every = 1;
    refused.answer = {403, R"({"kind": "Status", "code": 403, "message": "forbidden"})", {}, {}};
    server_.inject(refused);
  }
  std::size_t jobs_in(const std::string& ns) {
    const std::vector<Json> jobs = server_.list(kube::kJobs);
    return static_cast<std::size_t>(std::ranges::count_if(jobs, [&](const Json& job) {
      return job.find("metadata")->find("namespace")->as_string() == ns;
    }));
  }

  std::vector<std::string> namespaces_;  // empty = all
  kube::FakeApiServer server_;
  Log log_{LogFormat::kText, LogLevel::kError};
  std::optional<Operator> program_;
  std::thread thread_;
  Status outcome_ = success();
};

TEST_F(OperatorTest, AStudyBecomesTrialsAndJobs) {
  begin();
  server_.set(kube::kStudies, demo_study());
  EXPECT_TRUE(eventually([&] { return server_.list(kube::kJobs).size() == 2; }));
  EXPECT_FALSE(server_.get(kube::kTrials, {"team", "demo-1"}).is_null());
  EXPECT_FALSE(server_.get(kube::kJobs, {"team", "demo-0-r0"}).is_null());
  EXPECT_TRUE(end().ok());
}

// All times of a Study are by the API server's clock, whatever the clock of the operator's node.
TEST_F(OperatorTest, ItWritesTimesOfTheApiServersClock) {
  control::SystemClock own;
  constexpr std::int64_t kAhead = 300'000;
  server_.use_clock([&] { return own.now_ms() + kAhead; });
  begin();
  server_.set(kube::kStudies, demo_study());
  const auto started = [&] {
    return kube::time_at(server_.get(kube::kStudies, {"team", "demo"}), {"status", "startTime"});
  };
  ASSERT_TRUE(eventually([&] { return started() != 0; }));
  EXPECT_GE(started(), own.now_ms() + kAhead - 60'000);
  EXPECT_TRUE(end().ok());
}

constexpr kube::Resource kPolicy{"admissionregistration.k8s.io", "v1",
                                 "validatingadmissionpolicies", "ValidatingAdmissionPolicy"};
constexpr kube::Resource kBinding{"admissionregistration.k8s.io", "v1",
                                  "validatingadmissionpolicybindings",
                                  "ValidatingAdmissionPolicyBinding"};

Json named(const std::string& name) {
  return Json::object({{"metadata", Json::object({{"name", name}})}});
}

// The metric's value; -1 without it.
double number_of(const std::string& metric, Operator& program) {
  const std::string text = program.answer_metrics("/metrics").body;
  const std::size_t at = text.find("\n" + metric + " ");
  return at == text.npos ? -1 : std::stod(text.substr(at + metric.size() + 2));
}

// The metric of the policies, once the operator leads.
std::string policies_of(Operator& program) {
  const std::string text = program.answer_metrics("/metrics").body;
  const std::string name = "\nfettle_admission_policies ";
  const std::size_t at = text.find(name);
  return at == text.npos ? "" : text.substr(at + name.size(), 1);
}

TEST_F(OperatorTest, ItSaysWhetherTheAdmissionPoliciesAreThere) {
  begin();
  EXPECT_TRUE(eventually([&] { return policies_of(*program_) == "0"; }));
  EXPECT_TRUE(end().ok());
  for (const char* name : {"fettle-study", "fettle-trial", "fettle-report"}) {
    server_.set(kPolicy, named(name));
    server_.set(kBinding, named(name));
  }
  begin("two");
  EXPECT_TRUE(eventually([&] { return policies_of(*program_) == "1"; }));
  EXPECT_TRUE(end().ok());
  server_.remove(kBinding, {"", "fettle-trial"});  // a policy without a binding has no effect
  begin("three");
  EXPECT_TRUE(eventually([&] { return policies_of(*program_) == "0"; }));
}

TEST_F(OperatorTest, ItIgnoresPoliciesThatItMayNotSee) {
  kube::Fault forbidden;
  forbidden.kind = kube::Fault::Kind::kAnswer;
  forbidden.matches = [](const kube::HttpRequest& request) {
    return request.target.find("validatingadmission") != std::string::npos;
  };
  forbidden.every = 1;
  forbidden.answer.status = 403;
  server_.inject(forbidden);
  begin();
  server_.set(kube::kStudies, demo_study());
  EXPECT_TRUE(eventually([&] { return server_.list(kube::kJobs).size() == 2; }));
  EXPECT_EQ(policies_of(*program_), "");
}

TEST_F(OperatorTest, NoNamespaceWaitsForAnotherOne) {
  namespaces_ = {"gone", "team"};
  refuse_lists("gone");
  begin();
  server_.set(kube::kStudies, demo_study("team"));
  EXPECT_TRUE(eventually([&] { return jobs_in("team") == 2; }));
  server_.set(kube::kStudies, demo_study("gone"));
  EXPECT_EQ(jobs_in("gone"), 0u);
  server_.clear_faults();  // the namespace exists again
  EXPECT_TRUE(eventually([&] { return jobs_in("gone") == 2; }));
  EXPECT_TRUE(end().ok());
}

TEST_F(OperatorTest, ItGivesTheLeaseBackWhenItIsAskedToStop) {
  begin();
  ASSERT_TRUE(eventually([&] { return !lease().is_null(); }));
  EXPECT_EQ(lease().find("spec")->find("holderIdentity")->as_string(), "one");
  EXPECT_TRUE(end().ok());
  const Json given_back = lease();
  const Json* holder = given_back.find("spec")->find("holderIdentity");
  EXPECT_TRUE(holder == nullptr || holder->as_string().empty());
}

TEST_F(OperatorTest, AReplicaInReserveWritesNothing) {
  begin("one");
  ASSERT_TRUE(eventually([&] { return !lease().is_null(); }));
  Options options;
  options.metrics_port = 0;
  options.health_port = 0;
  Operator reserve(options, Identity{"two", "system", 8}, server_, server_, log_);
  std::thread thread([&] { EXPECT_TRUE(reserve.run().ok()); });
  server_.set(kube::kStudies, demo_study());
  ASSERT_TRUE(eventually([&] { return server_.list(kube::kJobs).size() == 2; }));
  EXPECT_EQ(lease().find("spec")->find("holderIdentity")->as_string(), "one");
  reserve.stop();
  thread.join();
  EXPECT_TRUE(end().ok());
}

TEST_F(OperatorTest, LosingTheLeaseStopsItWithAnError) {
  begin();
  ASSERT_TRUE(eventually([&] { return !lease().is_null(); }));
  server_.merge(kube::kLeases, {"system", "fettle-operator"},
                parse_json(R"({"spec": {"holderIdentity": "usurper"}})").value());
  thread_.join();
  ASSERT_FALSE(outcome_.ok());
  EXPECT_THAT(outcome_.error().message, HasSubstr("lease"));
}

TEST_F(OperatorTest, StoppingBeforeItLeadsIsNoError) {
  begin();
  EXPECT_TRUE(end().ok());
}

// Leaves writes of Jobs unanswered until it is released.
class Stuck final : public kube::HttpTransport {
 public:
  explicit Stuck(kube::HttpTransport& server) : server_(server) {}
  void let_go() { stuck_ = false; }
  bool was_met() const { return met_; }

  kube::HttpResult call(const kube::HttpRequest& request, milliseconds deadline) override {
    const bool of_job =
        request.method != "GET" && request.target.find("/jobs") != std::string::npos;
    while (of_job && stuck_) {
      met_ = true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return server_.call(request, deadline);
  }
  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          milliseconds idle, std::stop_token stop) override {
    return server_.stream(request, on_line, idle, std::move(stop));
  }

 private:
  kube::HttpTransport& server_;
  std::atomic<bool> stuck_ = true;
  std::atomic<bool> met_ = false;
};

TEST(OperatorLiveness, ALookThatDoesNotComeBackFailsTheProbeAndShowsInTheMetrics) {
  kube::FakeApiServer server;
  Stuck stuck(server);
  Log log(LogFormat::kText, LogLevel::kError);
  Options options;
  options.metrics_port = 0;
  options.health_port = 0;
  options.reconcile_timeout_s = 0.1;
  options.leader_elect = false;  // a slow test would lose the lease and end it
  Operator program(options, Identity{"one", "system", 7}, stuck, server, log);
  std::thread thread([&] { EXPECT_TRUE(program.run().ok()); });
  server.set(kube::kStudies, demo_study());
  ASSERT_TRUE(eventually([&] { return stuck.was_met(); }));
  EXPECT_TRUE(eventually([&] { return program.answer_health("/healthz").status == 503; }));
  EXPECT_THAT(program.answer_health("/healthz").body, HasSubstr("--reconcile-timeout"));
  EXPECT_GE(number_of("fettle_oldest_reconcile_seconds", program), 0.1);
  stuck.let_go();
  EXPECT_TRUE(eventually([&] { return program.answer_health("/healthz").status == 200; }));
  program.stop();
  thread.join();
}

TEST(FencedTransport, LetsOnlyReadsThroughOnceItMayNotWrite) {
  kube::FakeApiServer server;
  server.allow_any_call();
  bool may_write = false;
  FencedTransport fenced(server, [&] { return may_write; });
  kube::HttpRequest write{"POST", "/apis/fettle.dev/v1alpha1/namespaces/team/studies",
                          "application/json", demo_study().dump()};
  const auto refused = fenced.call(write, kLong);
  ASSERT_TRUE(std::holds_alternative<kube::HttpFailure>(refused));
  EXPECT_FALSE(std::get<kube::HttpFailure>(refused).maybe_done);
  const kube::HttpRequest read{"GET", "/apis/fettle.dev/v1alpha1/studies", "", ""};
  EXPECT_TRUE(std::holds_alternative<kube::HttpResponse>(fenced.call(read, kLong)));
  may_write = true;
  EXPECT_TRUE(std::holds_alternative<kube::HttpResponse>(fenced.call(write, kLong)));
  EXPECT_EQ(server.writes(), 1);
}

}  // namespace
}  // namespace fettle::op
