// Halves of cards under a scheduler that packs too many on a card if pods come in bulk
// (KAI-Scheduler#2153): 16 trials of half a GPU on 8 cards, with pods that take turns and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "api/yaml/study_file.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

constexpr int kTrials = 16;
constexpr int kCards = 8;
constexpr double kHalf = 0.5;
// Pods that its scheduler places in one cycle, with the knowledge from the beginning of the cycle.
constexpr int kOneCycle = 4;

class PaceTest : public testing::Test {
 protected:
  PaceTest() {
    study_ = api::load_study_text(template_study(1), "test").studies.at(0);
    study_.metadata.uid = "01234567-study-uid";
    study_.spec.trial.gpu = api::Gpu{{}, kHalf, {}};
    cluster_.start_operator();
  }

  void start_all(const api::GpuProfile& profile) {
    JobOptions options{"image"};
    options.gpu_profiles = {profile};
    runs_.emplace(client_, jobs_, pods_, cluster_.manager->store(), clock_, options);
    for (int i = 0; i < kTrials; ++i) ASSERT_TRUE(runs_->start(study_, trial(i), 0).ok());
  }

  api::Trial trial(int index) {
    api::Trial out;
    out.metadata.name = "digits-" + std::to_string(index);
    out.metadata.ns = "team";
    out.metadata.uid = "trial-uid-" + std::to_string(index);
    out.spec.study = "digits";
    out.spec.parameters = Json::object({{"rate", kHalf}});
    return out;
  }

  // Acts as the Job controller: makes a pod, not on a card yet, for each Job that is not suspended.
  void make_pods() {
    for (int i = 0; i < kTrials; ++i) {
      const std::string name = "digits-" + std::to_string(i) + "-r0";
      const Json job = cluster_.server.get(kube::kJobs, {"team", name});
      jobs_.put(kube::read_job(job).value());
      if (kube::boolean_at(job, {"spec", "suspend"}) || card_of_.count(i) > 0) continue;
      card_of_[i] = -1;
      put_pod(i);
    }
  }
  void put_pod(int i) {
    kube::Pod pod;
    const std::string job = "digits-" + std::to_string(i) + "-r0";
    pod.metadata.name = job + "-0";
    pod.metadata.ns = "team";
    pod.metadata.uid = "pod-" + pod.metadata.name;
    pod.metadata.created_ms = clock_.now_ms();
    pod.metadata.resource_version = std::to_string(++version_);
    pod.metadata.labels = {{"batch.kubernetes.io/job-completion-index", "0"},
                           {kTrialLabel, "digits-" + std::to_string(i)}};
    const Json object = cluster_.server.get(kube::kJobs, {"team", job});
    pod.owner = kube::Owner{"Job", job, kube::text_at(object, {"metadata", "uid"})};
    pod.phase = card_of_[i] < 0 ? "Pending" : "Running";
    pod.node = card_of_[i] < 0 ? "" : "node";
    pods_.put(pod);
  }

  // Acts as the scheduler for one cycle: each pod goes to the fullest card that has room, without
  // regard to the other pods of the cycle.
  void schedule() {
    std::array<double, kCards> used{};
    for (const auto& [i, card] : card_of_) {
      if (card >= 0) used.at(card) += kHalf;
    }
    int placed = 0;
    for (auto& [i, card] : card_of_) {
      if (card >= 0 || placed == kOneCycle) continue;
      int best = -1;
      for (int c = 0; c < kCards; ++c) {
        if (used.at(c) + kHalf > 1) continue;
        if (best < 0 || used.at(c) > used.at(best)) best = c;
      }
      if (best < 0) return;
      card = best;
      ++placed;
    }
    for (const auto& [i, card] : card_of_) put_pod(i);
  }

  int most_on_a_card() const {
    std::array<int, kCards> trials{};
    for (const auto& [i, card] : card_of_) {
      if (card >= 0) ++trials.at(card);
    }
    return *std::ranges::max_element(trials);
  }

  // Runs until all trials have a card.
  void run() {
    for (int cycle = 0; cycle < 2 * kTrials; ++cycle) {
      for (int i = 0; i < kTrials; ++i) ASSERT_TRUE(runs_->observe(trial(i)).ok());
      make_pods();
      schedule();
    }
    for (int i = 0; i < kTrials; ++i) {
      EXPECT_TRUE(card_of_.count(i) == 1 && card_of_[i] >= 0) << "trial " << i << " has no card";
    }
  }

  FakeCluster cluster_;
  HandClock clock_{control::SystemClock().now_ms()};
  kube::Client client_{cluster_.server, {}};
  kube::Cache<kube::Job> jobs_;
  kube::Cache<kube::Pod> pods_;
  std::optional<JobRuns> runs_;
  api::Study study_;
  std::map<int, int> card_of_;  // by trial; -1: no card yet
  int version_ = 1'000'000;
};

TEST_F(PaceTest, SixteenHalvesOnEightCardsAreTwoOnEach) {
  start_all(test_profiles({"kai-fraction"}).front());
  run();
  EXPECT_EQ(most_on_a_card(), 2);
}

// Proves that the test above can fail.
TEST_F(PaceTest, WithoutTurnsTheSchedulerWouldPackTooMany) {
  api::GpuProfile profile = test_profiles({"kai-fraction"}).front();
  profile.sharing = api::GpuSharing::kOther;
  start_all(profile);
  run();
  EXPECT_GT(most_on_a_card(), 2);
}

TEST_F(PaceTest, WhoWaitsForItsTurnSaysSo) {
  start_all(test_profiles({"kai-fraction"}).front());
  make_pods();
  (void)runs_->observe(trial(0));
  make_pods();
  const auto run = runs_->observe(trial(1)).value().at(0);
  EXPECT_EQ(run.state, core::RunState::kPending);
  EXPECT_EQ(run.gpus, kHalf);
}

}  // namespace
}  // namespace fettle::kubernetes
