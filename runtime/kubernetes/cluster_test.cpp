// Whole Studies against an API server in memory: from creation to the end, through every death of
// the operator, and the bad days of a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>

#include "kube/objects/json_path.h"
#include "runtime/kubernetes/testing/fake_cluster.h"

namespace fettle::kubernetes {
namespace {

using kube::text_at;
using testing::HasSubstr;

// Pods run as long as `stays` is set; it must outlive the cluster.
std::function<PodScript(const std::string&)> staying(const bool& stays) {
  return [&stays](const std::string&) {
    PodScript pod;
    pod.stays = stays;
    return pod;
  };
}

void expect_done(FakeCluster& cluster, int trials) {
  EXPECT_TRUE(cluster.is_true("Succeeded")) << cluster.study().dump(2);
  EXPECT_EQ(cluster.count(kube::kTrials), static_cast<std::size_t>(trials));
  EXPECT_TRUE(cluster.run_until([&] {
    return cluster.count(kube::kJobs) + cluster.count(kube::kPods) == 0;
  })) << "Jobs or pods are left";
  for (int i = 0; i < trials; ++i) {
    EXPECT_EQ(text_at(cluster.trial(i), {"status", "phase"}), "Completed") << i;
    EXPECT_EQ(cluster.created["trials/digits-" + std::to_string(i)], 1);
    EXPECT_EQ(cluster.created["jobs/digits-" + std::to_string(i) + "-r0"], 1);
  }
}

TEST(Cluster, AStudyOfTheBuiltInTrainerGoesFromCreationToSuccess) {
  FakeCluster cluster;
  cluster.apply(trainer_study(4));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  expect_done(cluster, 4);
  EXPECT_TRUE(cluster.manager->events().size() < 4) << "ordinary trials are no events";
}

TEST(Cluster, NothingIsWrittenOnceAStudyIsDone) {
  FakeCluster cluster;
  cluster.apply(trainer_study(2));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  expect_done(cluster, 2);
  ASSERT_TRUE(cluster.come_to_rest());
  cluster.server.forget_requests();
  cluster.run_for(500);
  EXPECT_EQ(cluster.server.writes(), 0);
}

// kubectl delete study --cascade=orphan: the garbage collector removes the references first.
TEST(Cluster, TrialsThatADeletedStudyLeavesBehindEnd) {
  FakeCluster cluster;
  const bool stays = true;
  cluster.script = staying(stays);
  cluster.apply(trainer_study(2));
  cluster.start_operator();
  const auto phase = [&](int i) { return text_at(cluster.trial(i), {"status", "phase"}); };
  ASSERT_TRUE(cluster.run_until([&] { return phase(0) == "Running" && phase(1) == "Running"; }));
  for (const char* name : {"digits-0", "digits-1"}) {
    const Json none = Json::object({{"ownerReferences", Json()}});
    cluster.server.merge(kube::kTrials, {"team", name}, Json::object({{"metadata", none}}));
  }
  cluster.run_for(100);
  cluster.server.remove(kube::kStudies, {"team", "digits"});
  EXPECT_TRUE(cluster.run_until([&] {
    return phase(0) == "Stopped" && phase(1) == "Stopped" &&
           cluster.count(kube::kJobs) + cluster.count(kube::kPods) == 0;
  })) << cluster.trial(0).dump(2);
  EXPECT_TRUE(cluster.manager->has_event("Orphaned", "its Study was deleted"));
}

TEST(Cluster, MetricsOfAnyImageAreReadFromItsLog) {
  FakeCluster cluster;
  cluster.script = [](const std::string&) {
    PodScript pod;
    pod.reports = false;
    pod.log = {"hello", R"({"step": 1, "loss": 0.25})"};
    return pod;
  };
  cluster.apply(template_study(3));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  expect_done(cluster, 3);
  EXPECT_EQ(kube::value_at(cluster.trial(0), {"status", "report", "metrics", "loss"})->as_double(),
            0.25);
}

TEST(Cluster, LastWordsStandInForAReportThatDidNotArrive) {
  FakeCluster cluster;
  cluster.script = [](const std::string&) {
    PodScript pod;
    pod.reports = false;
    pod.last_words = true;
    return pod;
  };
  cluster.apply(trainer_study(2));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  expect_done(cluster, 2);
}

TEST(Cluster, AnOperatorThatDiesAtAnyWriteIsReplacedWithoutATrace) {
  for (const bool after : {false, true}) {
    int deaths = 0;
    for (int n = 0; n < 100; ++n) {
      FakeCluster cluster;
      cluster.apply(trainer_study(2));
      cluster.start_operator();
      cluster.manager->transport().die_at_write(n, after);
      if (cluster.run_until_ended()) break;
      ASSERT_TRUE(cluster.manager->transport().is_dead()) << "write " << n;
      ++deaths;
      cluster.kill_operator();
      cluster.start_operator();
      ASSERT_TRUE(cluster.run_until_ended()) << "write " << n << cluster.study().dump(2);
      expect_done(cluster, 2);
      if (testing::Test::HasFailure()) FAIL() << "died at write " << n << (after ? " after" : "");
    }
    EXPECT_GT(deaths, 8);
  }
}

TEST(Cluster, DoubledWritesDoNoHarm) {
  FakeCluster cluster;
  kube::Fault doubled;
  doubled.kind = kube::Fault::Kind::kDoubled;
  doubled.matches = [](const kube::HttpRequest& request) { return request.method != "GET"; };
  doubled.every = 1;
  cluster.server.inject(doubled);
  cluster.apply(trainer_study(3));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  expect_done(cluster, 3);
}

TEST(Cluster, AForeignJobWithTheTrialsNameIsLeftAloneAndExplained) {
  FakeCluster cluster;
  cluster.server.set(
      kube::kJobs,
      Json::object({{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", Json::object({{"name", "digits-0-r0"}, {"namespace", "team"}})}}));
  cluster.apply(trainer_study(1));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.trial(0).dump(2);
  EXPECT_TRUE(cluster.is_true("Succeeded"));
  EXPECT_FALSE(cluster.server.get(kube::kJobs, {"team", "digits-0-r0"}).is_null());
  EXPECT_EQ(cluster.created["jobs/digits-0-r1"], 1) << "the next run has another name";
  EXPECT_TRUE(cluster.manager->has_event("NameCollision", "is not Fettle's"));
}

TEST(Cluster, ATemplateThatTheApiServerRefusesFailsTheStudyInItsWords) {
  FakeCluster cluster;
  cluster.refuses = [](const kube::Admission& write) { return write.resource == "pods"; };
  cluster.admit = Error{ErrorCode::kForbidden, "violates PodSecurity \"restricted:latest\""};
  cluster.apply(template_study(3));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  EXPECT_TRUE(cluster.is_true("Failed"));
  EXPECT_THAT(cluster.message_of("Failed"), HasSubstr("violates PodSecurity"));
  EXPECT_EQ(cluster.count(kube::kTrials), 0u);
}

TEST(Cluster, AQuotaThatIsFullDelaysAndSaysSo) {
  FakeCluster cluster;
  bool full = true;
  cluster.refuses = [&](const kube::Admission& write) { return full && write.resource == "jobs"; };
  cluster.admit =
      Error{ErrorCode::kForbidden, "exceeded quota: few, requested: count/jobs.batch=1"};
  cluster.apply(trainer_study(2));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until([&] {
    return cluster.trial(0).dump().find("exceeded quota: few") != std::string::npos;
  })) << cluster.trial(0).dump(2);
  EXPECT_FALSE(cluster.is_true("Failed"));
  full = false;
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.trial(0).dump(2);
  expect_done(cluster, 2);
}

// Policies deny with 422, and webhooks that set no code with 400.
TEST(Cluster, APolicyThatRefusesJobsInMidStudyFailsNoTrial) {
  for (const int code : {400, 422}) {
    FakeCluster cluster;
    std::atomic<bool> denies = false;
    kube::Fault denial;
    denial.kind = kube::Fault::Kind::kAnswer;
    denial.every = 1;
    denial.matches = [&](const kube::HttpRequest& request) {
      const bool is_dry_run = request.target.find("dryRun") != std::string::npos;
      const bool of_jobs = request.target.find("/jobs?") != std::string::npos;
      return denies && request.method == "POST" && of_jobs && !is_dry_run;
    };
    denial.answer = kube::status_response(code, "", "denied the request: not on Tuesdays");
    cluster.server.inject(denial);
    cluster.apply(trainer_study(6));
    cluster.start_operator();
    ASSERT_TRUE(cluster.run_until([&] { return cluster.count(kube::kTrials) >= 3; }));
    denies = true;
    ASSERT_TRUE(cluster.run_until([&] { return cluster.is_true("Blocked"); })) << code;
    EXPECT_THAT(cluster.message_of("Blocked"), HasSubstr("not on Tuesdays"));
    const auto says_it = [&](const Json& trial) {
      return trial.dump().find("denied the request") != std::string::npos;
    };
    EXPECT_TRUE(cluster.run_until([&] {
      return std::ranges::any_of(cluster.server.list(kube::kTrials), says_it);
    })) << "the trial says it, too";
    EXPECT_TRUE(cluster.manager->has_event("Refused", "not on Tuesdays"));
    denies = false;
    ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
    expect_done(cluster, 6);
    EXPECT_FALSE(cluster.is_true("Blocked"));
    for (const Json& trial : cluster.server.list(kube::kTrials)) {
      EXPECT_EQ(text_at(trial, {"status", "phase"}), "Completed");
      EXPECT_EQ(kube::array_at(trial, {"status", "runs"}).size(), 1u) << "no run is spent";
    }
  }
}

TEST(Cluster, PodsThatCannotRunAreExplainedByConditionAndEvent) {
  const struct {
    const char* status;
    std::string said;
  } cases[] = {
      {R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
           "reason": "Unschedulable", "message": "0/3 nodes are available: no nvidia.com/gpu"}]})",
       "no node has room for it: 0/3 nodes are available: no nvidia.com/gpu"},
      {R"({"phase": "Pending", "containerStatuses": [{"name": "trainer", "state": {"waiting": {
           "reason": "ErrImagePull", "message": "no such image"}}}]})",
       "its image cannot be pulled: no such image"},
  };
  for (const auto& c : cases) {
    FakeCluster cluster;
    cluster.script = [&](const std::string&) {
      PodScript pod;
      pod.waits = parse_json(c.status).value();
      return pod;
    };
    cluster.apply(trainer_study(1));
    cluster.start_operator();
    ASSERT_TRUE(cluster.run_until([&] {
      return cluster.trial(0).dump().find(c.said) != std::string::npos;
    })) << cluster.trial(0).dump(2);
    const Json waiting = kube::array_at(cluster.trial(0), {"status", "conditions"}).at(0);
    EXPECT_EQ(text_at(waiting, {"type"}), "Waiting");
    EXPECT_TRUE(cluster.run_until([&] { return cluster.manager->has_event("Waiting", c.said); }));
  }
}

TEST(Cluster, ATrialTakesAtMostSixWrites) {
  constexpr int kTrials = 20;
  FakeCluster cluster;
  cluster.apply(trainer_study(kTrials));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  expect_done(cluster, kTrials);
  int writes = 0;
  for (const std::string& request : cluster.server.requests()) {
    const bool of_studies = request.find("/studies/") != std::string::npos;
    if (request.rfind("GET", 0) != 0 && !of_studies) ++writes;
  }
  EXPECT_LE(writes, 6 * kTrials + 2) << "with the two dry runs";
  EXPECT_GE(writes, 4 * kTrials);
}

TEST(Cluster, AStudyDeletedWhileTrialsAreMadeLeavesNothing) {
  const bool stays = true;
  FakeCluster cluster;
  cluster.script = staying(stays);
  cluster.apply(trainer_study(4));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(kube::kTrials) >= 1; }));
  cluster.server.remove(kube::kStudies, {"team", "digits"});
  ASSERT_TRUE(cluster.run_until([&] {
    return cluster.count(kube::kTrials) + cluster.count(kube::kJobs) + cluster.count(kube::kPods) ==
           0;
  }));
  ASSERT_TRUE(cluster.come_to_rest());
  EXPECT_EQ(cluster.count(kube::kTrials), 0u);
  EXPECT_EQ(cluster.count(kube::kJobs), 0u);
}

TEST(Cluster, ATrialDeletedByHandIsNotMissed) {
  bool stays = true;
  FakeCluster cluster;
  cluster.script = staying(stays);
  cluster.apply(trainer_study(3));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until([&] { return cluster.count(kube::kPods) == 2; }));
  cluster.server.remove(kube::kTrials, {"team", "digits-0"});
  stays = false;
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  EXPECT_TRUE(cluster.is_true("Succeeded"));
  EXPECT_TRUE(cluster.trial(0).is_null());
}

TEST(Cluster, SuspendingStopsTrialsAndResumingGoesOn) {
  bool stays = true;
  FakeCluster cluster;
  cluster.script = staying(stays);
  cluster.apply(trainer_study(2));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until([&] {
    return text_at(cluster.trial(1), {"status", "phase"}) == "Running";
  })) << cluster.trial(1).dump(2);
  cluster.server.merge(kube::kStudies, {"team", "digits"},
                       Json::object({{"spec", Json::object({{"suspend", true}})}}));
  ASSERT_TRUE(cluster.run_until([&] {
    return text_at(cluster.trial(0), {"status", "phase"}) == "Paused" &&
           text_at(cluster.trial(1), {"status", "phase"}) == "Paused" &&
           cluster.count(kube::kJobs) == 0;
  })) << cluster.trial(0).dump(2);
  stays = false;
  cluster.server.merge(kube::kStudies, {"team", "digits"},
                       Json::object({{"spec", Json::object({{"suspend", false}})}}));
  ASSERT_TRUE(cluster.run_until_ended());
  EXPECT_TRUE(cluster.is_true("Succeeded"));
}

TEST(Cluster, AStudyThatCannotBeReadSaysSoAndDisturbsNoOther) {
  FakeCluster cluster;
  cluster.apply(trainer_study(1));
  Json broken = cluster.study();
  broken.find("metadata")->set("name", "broken");
  broken.find("spec")->set("budget", "much");
  cluster.server.set(kube::kStudies, broken);
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  ASSERT_TRUE(cluster.run_until([&] {
    return cluster.server.get(kube::kStudies, {"team", "broken"}).dump().find("Unreadable") !=
           std::string::npos;
  }));
  ASSERT_TRUE(cluster.come_to_rest());
  cluster.server.forget_requests();
  cluster.run_for(500);
  EXPECT_EQ(cluster.server.writes(), 0) << "it is said once";
}

}  // namespace
}  // namespace fettle::kubernetes
