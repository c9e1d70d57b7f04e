// Limits on the operator's size: curves that its caches leave out stay on the API server, and
// Studies are deleted when their time to live has passed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"
#include "runtime/kubernetes/testing/fake_cluster.h"

namespace fettle::kubernetes {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

PodScript three_epochs(const std::string&) {
  PodScript pod;
  pod.reports = false;
  for (const char* step : {"1", "2", "3"}) {
    pod.log.push_back(std::string(R"({"step": )") + step + R"(, "loss": 0.5})");
  }
  return pod;
}

std::size_t points_stored(FakeCluster& cluster) {
  return kube::array_at(cluster.trial(0), {"status", "report", "history"}).size();
}

TEST(ManyTrials, TheCurveOfATrialThatIsDoneIsKeptByTheServerAlone) {
  FakeCluster cluster;
  cluster.script = three_epochs;
  cluster.apply(template_study(1));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended()) << cluster.study().dump(2);
  const std::size_t points = points_stored(cluster);
  ASSERT_GT(points, 0u) << cluster.trial(0).dump(2);
  KubeStore& store = cluster.manager->store();
  const api::TrialPtr cached = store.get_trial({"team", "digits-0"}).value();
  ASSERT_TRUE(cached->status.report);
  EXPECT_THAT(cached->status.report->history, IsEmpty());
  EXPECT_EQ(cached->status.report->metrics.at("loss"), 0.5);

  api::Trial next = *cached;
  next.status.gpus = "2";
  ASSERT_TRUE(store.update_trial_status(next).ok());
  EXPECT_EQ(kube::text_at(cluster.trial(0), {"status", "gpus"}), "2");
  EXPECT_EQ(points_stored(cluster), points) << "a write deleted what the cache had left out";
}

TEST(ManyTrials, ACurveIsNotReadFromATrialThatHasChangedSince) {
  FakeCluster cluster;
  cluster.script = three_epochs;
  cluster.apply(template_study(1));
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  KubeStore& store = cluster.manager->store();
  const api::TrialPtr cached = store.get_trial({"team", "digits-0"}).value();
  cluster.server.merge(kube::kTrials, {"team", "digits-0"},
                       Json::object({{"spec", Json::object({{"suspend", true}})}}));
  const auto written = store.update_trial_status(*cached);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::kConflict);
}

TEST(ManyTrials, ARunningTrialKeepsItsCurve) {
  Json object = parse_json(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial",
      "metadata": {"name": "digits-0", "namespace": "team"},
      "spec": {"study": "digits"}, "status": {"phase": "Running", "report": {"step": 2,
      "history": [{"step": 1, "metrics": {"loss": 1}}, {"step": 2, "metrics": {"loss": 0.5}}]}}})")
                    .value();
  const TrialEntry running = read_trial_entry(object).value();
  ASSERT_NE(running.trial, nullptr) << running.readability.why;
  EXPECT_THAT(running.trial->status.report->history, SizeIs(2));
  // It paused at a rung, and may be promoted: its next run continues the curve.
  object.find("status")->set("phase", "Completed");
  Json paused = Json::object({{"seq", 1}, {"kind", "Stopped"}, {"step", 2}});
  object.find("status")->set("facts", Json(Json::Array{std::move(paused)}));
  EXPECT_THAT(read_trial_entry(object)->trial->status.report->history, SizeIs(2));
  object.find("status")->set("phase", "Stopped");
  EXPECT_THAT(read_trial_entry(object)->trial->status.report->history, IsEmpty());
}

TEST(ManyTrials, AStudyGoesWithItsTrialsWhenItsTimeToLiveHasPassed) {
  FakeCluster cluster;
  cluster.apply(trainer_study(2) + "  ttlAfterFinished: 20s\n");
  cluster.start_operator();
  ASSERT_TRUE(cluster.run_until_ended());
  EXPECT_EQ(cluster.count(kube::kTrials), 2u) << "it went too early";
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(kube::kStudies) == 0; }));
  EXPECT_TRUE(cluster.run_until([&] { return cluster.count(kube::kTrials) == 0; }));
}

}  // namespace
}  // namespace fettle::kubernetes
