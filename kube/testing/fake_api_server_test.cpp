// The in-memory API server keeps the promises on which other tests rest.
#include "kube/testing/fake_api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/client/client.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json object(const std::string& name, const Json& owner = {}) {
  Json metadata = Json::object({{"name", name}, {"namespace", "team"}});
  if (!owner.is_null()) {
    metadata.set("ownerReferences",
                 Json::Array{Json::object(
                     {{"uid", text_at(owner, {"metadata", "uid"})}, {"controller", true}})});
  }
  return Json::object({{"metadata", std::move(metadata)}});
}

std::string uid_of(const Json& object) { return text_at(object, {"metadata", "uid"}); }

class FakeApiServerTest : public testing::Test {
 protected:
  FakeApiServerTest() { server_.allow_any_call(); }

  FakeApiServer server_;
  Client client_{server_, {}};
};

TEST(FakeApiServerDeathTest, ACallWithoutARowInTheTableOfCallsFailsTheTest) {
  EXPECT_DEATH(
      {
        FakeApiServer server;
        Client client(server, {});
        (void)client.get(kEvents, {"team", "x"});
      },
      "a call without a row in kube/client/calls.h: get events.k8s.io/events");
}

TEST_F(FakeApiServerTest, CollectsObjectsWithoutAnOwner) {
  const Json study = server_.set(kStudies, object("digits"));
  const Json trial = server_.set(kTrials, object("digits-0", study));
  const Json job = server_.set(kJobs, object("digits-0-r0", trial));
  server_.set(kPods, object("pod", job));
  server_.set(kPods, object("lonely"));
  EXPECT_EQ(server_.collect_garbage(), 0);
  ASSERT_TRUE(client_.remove(kStudies, {"team", "digits"}, {uid_of(study), "", false}).ok());
  EXPECT_EQ(server_.collect_garbage(), 3);
  EXPECT_EQ(server_.list(kPods).size(), 1U);
}

TEST_F(FakeApiServerTest, AForegroundDeletionWaitsForDependents) {
  const Json job = server_.set(kJobs, object("job"));
  server_.set(kPods, object("pod", job));
  ASSERT_TRUE(client_.remove(kJobs, {"team", "job"}, {uid_of(job), "", true}).ok());
  EXPECT_NE(text_at(server_.get(kJobs, {"team", "job"}), {"metadata", "deletionTimestamp"}), "");
  EXPECT_EQ(server_.collect_garbage(), 2);
  EXPECT_TRUE(server_.get(kJobs, {"team", "job"}).is_null());
}

TEST_F(FakeApiServerTest, FinalizersHoldAnObject) {
  Json held = object("held");
  held.find("metadata")->set("finalizers", Json::Array{"fettle.dev/hold"});
  held = server_.set(kStudies, held);
  ASSERT_TRUE(client_.remove(kStudies, {"team", "held"}, {uid_of(held), "", false}).ok());
  EXPECT_FALSE(server_.get(kStudies, {"team", "held"}).is_null());
  const Json patch = Json::object({{"metadata", Json::object({{"finalizers", Json()}})}});
  ASSERT_TRUE(client_.patch(kStudies, {"team", "held"}, "", patch).ok());
  EXPECT_TRUE(server_.get(kStudies, {"team", "held"}).is_null());
}

TEST_F(FakeApiServerTest, AdmissionSeesAndRefusesWrites) {
  std::vector<std::string> seen;
  server_.on_admission([&](const Admission& write) -> Status {
    seen.push_back(write.verb + ' ' + write.resource + '/' + write.subresource + ' ' +
                   write.manager);
    if (write.manager == "stranger") return Error{ErrorCode::kForbidden, "not yours"};
    return success();
  });
  ASSERT_TRUE(client_.create(kTrials, "team", object("t")).ok());
  const Json status = Json::object({{"status", Json::object({{"phase", "Running"}})}});
  const auto refused = client_.apply(kTrials, {"team", "t"}, "status", status, "stranger");
  EXPECT_EQ(refused.error().code, ErrorCode::kForbidden);
  EXPECT_THAT(refused.error().message, HasSubstr("not yours"));
  EXPECT_EQ(server_.get(kTrials, {"team", "t"}).find("status"), nullptr);
  EXPECT_THAT(seen, ElementsAre("create trials/ fettle", "apply trials/status stranger"));
}

TEST_F(FakeApiServerTest, AWriteOfNothingIsNoWrite) {
  const Json made = client_.create(kTrials, "team", object("t")).value().object;
  const Json again = client_.update(kTrials, {"team", "t"}, "", made).value().object;
  EXPECT_EQ(again, made);
}

TEST_F(FakeApiServerTest, NamesCanBeGenerated) {
  Json unnamed = Json::object({{"metadata", Json::object({{"generateName", "pod-"}})}});
  const Json a = client_.create(kPods, "team", unnamed).value().object;
  const Json b = client_.create(kPods, "team", unnamed).value().object;
  EXPECT_NE(key_of(a), key_of(b));
  EXPECT_TRUE(key_of(a).name.starts_with("pod-"));
}

TEST_F(FakeApiServerTest, AnObjectThatLosesItsLabelLeavesTheWatch) {
  Json labelled = object("p");
  labelled.find("metadata")->set("labels", Json::object({{"app", "fettle"}}));
  server_.set(kPods, labelled);
  server_.set(kPods, object("p"));
  HttpRequest request;
  request.target = "/api/v1/pods?watch=true&resourceVersion=100&labelSelector=app%3Dfettle";
  std::vector<std::string> types;
  (void)server_.stream(request,
                       [&](std::string_view line) {
                         types.push_back(text_at(parse_json(line).value(), {"type"}));
                         return types.size() < 2;
                       },
                       std::chrono::seconds(5), {});
  EXPECT_THAT(types, ElementsAre("ADDED", "DELETED"));
}

TEST_F(FakeApiServerTest, ASilentWatchEndsAfterItsIdleTime) {
  HttpRequest request;
  request.target = "/api/v1/pods?watch=true&resourceVersion=100";
  const HttpResult result = server_.stream(request, [](std::string_view) { return true; },
                                           std::chrono::milliseconds(20), {});
  EXPECT_TRUE(std::holds_alternative<HttpFailure>(result));
}

}  // namespace
}  // namespace fettle::kube
