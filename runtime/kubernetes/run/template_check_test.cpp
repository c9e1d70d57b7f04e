// How the check of a Study's template judges the API server's answers to dry runs.
#include "runtime/kubernetes/run/template_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "runtime/kubernetes/testing/job_runs_fixture.h"

namespace fettle::kubernetes {
namespace {

using testing::HasSubstr;

class TemplateCheckTest : public JobRunsTest {};

TEST_F(TemplateCheckTest, ACheckLeavesNothingBehind) {
  EXPECT_TRUE(runs().check(study_).ok());
  EXPECT_EQ(cluster_.count(kube::kJobs) + cluster_.count(kube::kPods), 0u);
}

TEST_F(TemplateCheckTest, ChecksTellTheTemplatesFaultFromOthers) {
  const struct {
    const char* resource;
    ErrorCode answered;
    std::string words;
    std::optional<ErrorCode> check;
  } cases[] = {
      {"jobs", ErrorCode::kInvalid, "spec: Required value", ErrorCode::kInvalid},
      {"pods", ErrorCode::kForbidden, "violates PodSecurity \"restricted\"", ErrorCode::kInvalid},
      {"pods", ErrorCode::kForbidden, "maximum memory usage per Container is 1Gi",
       ErrorCode::kInvalid},
      {"pods", ErrorCode::kForbidden, "exceeded quota: few", std::nullopt},
      {"services", ErrorCode::kForbidden, "exceeded quota: few", std::nullopt},
      {"services", ErrorCode::kInvalid, "no Services here", ErrorCode::kInvalid},
      {"jobs", ErrorCode::kForbidden, "exceeded quota: few", std::nullopt},
      {"jobs", ErrorCode::kForbidden, "status unknown for quota: few, resources: count/jobs.batch",
       std::nullopt},
      {"pods", ErrorCode::kForbidden, "User \"x\" cannot create resource \"pods\"",
       ErrorCode::kUnavailable},
      {"pods", ErrorCode::kForbidden, "no PriorityClass with name high was found",
       ErrorCode::kUnavailable},
      {"pods", ErrorCode::kForbidden,
       "error looking up service account team/mine: serviceaccount \"mine\" not found",
       ErrorCode::kUnavailable},
      {"pods", ErrorCode::kForbidden, "terminationGracePeriodSeconds must be at most 30",
       ErrorCode::kInvalid},
  };
  use_workers(2);
  for (const auto& c : cases) {
    refuse(c.resource, c.answered, c.words);
    const Status checked = runs().check(study_);
    ASSERT_EQ(checked.ok(), !c.check) << c.words;
    if (checked.ok()) continue;
    EXPECT_EQ(checked.error().code, *c.check) << c.words;
    const bool says_the_way_out =
        checked.error().message.find("delete the Study and apply it again") != std::string::npos;
    EXPECT_EQ(says_the_way_out,
              c.answered == ErrorCode::kForbidden && *c.check == ErrorCode::kInvalid);
    EXPECT_THAT(checked.error().message, HasSubstr(c.words));
  }
}

TEST_F(TemplateCheckTest, ATypoThatTheServerOnlyWarnsOfIsRefused) {
  kube::Fault warned;
  warned.kind = kube::Fault::Kind::kAnswer;
  warned.matches = [](const kube::HttpRequest& request) { return request.method == "POST"; };
  warned.answer.status = 201;
  warned.answer.body = "{}";
  warned.answer.warnings = {"unknown field \"spec.template.spec.nodeSelektor\""};
  cluster_.server.inject(warned);
  const Status checked = runs().check(study_);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(checked.error().message, HasSubstr("nodeSelektor"));
}

TEST_F(TemplateCheckTest, AnExpressionThatCannotBeReadIsRefusedBeforeAnythingIsAsked) {
  study_.spec.trial.metrics = api::MetricsFilter{"(unfinished"};
  const Status checked = runs().check(study_);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("spec.trial.metrics.regex"));
}

TEST_F(TemplateCheckTest, AClusterHasNoEnvironmentToPassOn) {
  study_.spec.trial.pass_environment = {"HF_TOKEN"};
  const Status checked = runs().check(study_);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("spec.trial.passEnvironment: a cluster does not"));
  EXPECT_THAT(checked.error().message, HasSubstr("env or envFrom"));
}

// A cluster starts a Job for each run; nothing there keeps a worker.
TEST_F(TemplateCheckTest, WarmWorkersAreRefusedOnACluster) {
  study_.spec.trial.execution = api::Execution::kWarm;
  const Status warm = runs().check(study_);
  ASSERT_FALSE(warm.ok());
  EXPECT_EQ(warm.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(warm.error().message,
              HasSubstr("spec.trial.execution: Warm works without a cluster"));

  study_.spec.trial.execution = api::Execution::kAuto;
  study_.spec.trial.slots = 4;
  const Status slots = runs().check(study_);
  ASSERT_FALSE(slots.ok());
  EXPECT_THAT(slots.error().message, HasSubstr("spec.trial.slots works without a cluster"));
}

}  // namespace
}  // namespace fettle::kubernetes
