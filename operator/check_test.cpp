// fettle-operator --check against an API server in memory.
#include "operator/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "kube/testing/fake_api_server.h"

namespace fettle::op {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Json object(const std::string& api_version, const std::string& kind, const std::string& name) {
  return Json::object(
      {{"apiVersion", api_version}, {"kind", kind}, {"metadata", Json::object({{"name", name}})}});
}

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.lease_times.lease = milliseconds(2'000);
    for (const char* name : {"fettle-study", "fettle-trial", "fettle-report"}) {
      server_.set(kPolicies,
                  object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name));
      server_.set(kBindings, object("admissionregistration.k8s.io/v1",
                                    "ValidatingAdmissionPolicyBinding", name));
    }
    Json lease = object("coordination.k8s.io/v1", "Lease", "fettle-operator");
    lease.find("metadata")->set("namespace", "system");
    server_.set(kube::kLeases, lease);
  }

  Status check() {
    kube::Client client(server_, {});
    return check_installation(client, options_, "system", log_);
  }

  // Checks under a leader that renews the Lease, with all the time that a busy machine may need.
  Status check_under_leader() {
    options_.lease_times.lease = std::chrono::minutes(2);
    std::jthread leader([this](const std::stop_token& stop) {
      for (int renewals = 0; !stop.stop_requested(); ++renewals) {
        const Json spec = Json::object({{"holderIdentity", "one"}, {"leaseTransitions", renewals}});
        server_.merge(kube::kLeases, {"system", "fettle-operator"}, Json::object({{"spec", spec}}));
        std::this_thread::sleep_for(milliseconds(100));
      }
    });
    return check();
  }

  static constexpr kube::Resource kPolicies{"admissionregistration.k8s.io", "v1",
                                            "validatingadmissionpolicies",
                                            "ValidatingAdmissionPolicy"};
  static constexpr kube::Resource kBindings{"admissionregistration.k8s.io", "v1",
                                            "validatingadmissionpolicybindings",
                                            "ValidatingAdmissionPolicyBinding"};
  kube::FakeApiServer server_;
  Options options_;
  Log log_{LogFormat::kText, LogLevel::kError};
};

TEST_F(CheckTest, AnOperatorThatLeadsWorks) {
  const Status works = check_under_leader();
  EXPECT_TRUE(works.ok()) << works.error().message;
}

TEST_F(CheckTest, ALeaseThatNobodyRenewsIsAnError) {
  server_.merge(kube::kLeases, {"system", "fettle-operator"},
                parse_json(R"({"spec": {"holderIdentity": "gone"}})").value());
  const Status works = check();
  ASSERT_FALSE(works.ok());
  EXPECT_THAT(works.error().message, HasSubstr("no replica renews Lease system/fettle-operator"));
}

TEST_F(CheckTest, APolicyThatIsMissingIsAnError) {
  server_.remove(kPolicies, {"", "fettle-report"});
  const Status works = check_under_leader();
  ASSERT_FALSE(works.ok());
  EXPECT_THAT(works.error().message, HasSubstr("no admission policy fettle-report"));
}

TEST_F(CheckTest, ANamespaceThatCannotBeSeenIsAnError) {
  options_.leader_elect = false;
  options_.namespaces = {"team"};
  EXPECT_TRUE(check().ok());
  kube::Fault forbidden;
  forbidden.kind = kube::Fault::Kind::kAnswer;
  forbidden.matches = [](const kube::HttpRequest& request) {
    return request.target.find("/namespaces/team/studies") != std::string::npos;
  };
  forbidden.every = 1;
  forbidden.answer.status = 403;
  server_.inject(forbidden);
  EXPECT_FALSE(check().ok());
}

}  // namespace
}  // namespace fettle::op
