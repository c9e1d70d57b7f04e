// Tenants of one cluster, under a virtual clock: a crowd of gangs that can never be placed, and a
// team in another namespace whose gangs fit. The real JobRuns, with a scheduler and a Job
// controller of a few lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "api/yaml/study_file.h"
#include "core/names.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

// Why the crowd's gangs can never be placed.
enum class Crowd {
  kNobody,
  kNoSuchNode,    // no node has the labels that they select
  kNoQuota,       // their namespace may have no pods
  kShortOfQuota,  // it may have one pod, and a gang needs two
  kTooLarge,      // a gang needs more nodes than the cluster has
};

class Tenants {
 public:
  static constexpr std::int64_t kTimeout = 120'000;
  static constexpr std::int64_t kStepMs = 100;
  static constexpr int kTeam = 4;     // trials of the team at once, of two workers
  static constexpr int kNodes = 12;   // of one pod each
  static constexpr int kCrowd = 100;  // gangs
  static constexpr std::int64_t kTrialMs = 10'000;

  explicit Tenants(Crowd crowd) : crowd_(crowd) {
    cluster_.start_operator();
    runs_.emplace(client_, jobs_, pods_, cluster_.manager->store(), clock_,
                  JobOptions{"image", {}, kTimeout});
    if (crowd != Crowd::kNobody) {
      for (int i = 0; i < kCrowd; ++i) {
        crowd_trials_.push_back(
            trial_of("crowd", "big", i, crowd == Crowd::kTooLarge ? kNodes + 2 : 2));
        start(crowd_trials_.back());
      }
    }
    clock_.pass(1'000);  // so that the crowd comes first
    for (int i = 0; i < kTeam; ++i) begin_successor();
  }

  // Latencies of the team's successors: from the end of a trial until all workers of the next one
  // have a node.
  std::vector<std::int64_t> run_for(std::int64_t ms) {
    const std::int64_t end_ms = clock_.now_ms() + ms;
    while (clock_.now_ms() < end_ms) step();
    return latencies_;
  }
  GangLine gang_line() { return runs_->gang_line(); }

 private:
  struct Member {
    api::Trial trial;
    std::int64_t asked_ms = 0;   // when its predecessor ended
    std::int64_t placed_ms = 0;  // when all of its workers had a node; 0 = not yet
  };

  static kube::ClientOptions unlimited() {
    kube::ClientOptions options;
    options.calls_per_second = 0;
    return options;
  }
  static api::Study study_of(const api::Trial& trial) {
    static const api::Study kStudy = api::load_study_text(template_study(1), "test").studies.at(0);
    api::Study study = kStudy;
    study.metadata.ns = trial.metadata.ns;
    study.metadata.name = trial.spec.study;
    study.metadata.uid = trial.spec.study + "-uid";
    study.spec.trial.workers = {trial.spec.workers, trial.spec.workers};
    return study;
  }
  static api::Trial trial_of(const std::string& ns, const std::string& study, int index,
                             std::int64_t workers) {
    api::Trial out;
    out.metadata.name = core::trial_name(study, index);
    out.metadata.ns = ns;
    out.metadata.uid = out.metadata.name + "-uid";
    out.spec.study = study;
    out.spec.index = index;
    out.spec.parameters = Json::object({{"rate", 0.5}});
    out.spec.workers = workers;
    return out;
  }
  void start(const api::Trial& trial) { ASSERT_TRUE(runs_->start(study_of(trial), trial, 0).ok()); }
  void begin_successor() {
    team_.push_back({trial_of("team", "small", next_++, 2), clock_.now_ms()});
    start(team_.back().trial);
    news_.insert(team_.back().trial.metadata.name);
  }

  void step() {
    clock_.pass(kStepMs);
    follow_deletions();
    place_pods();
    const std::set<std::string> news = std::exchange(news_, {});
    for (std::size_t i = 0; i < team_.size(); ++i) {
      if (is_looked_at(team_[i].trial, news)) (void)runs_->observe(team_[i].trial).value();
      follow(i);
    }
    for (const api::Trial& trial : crowd_trials_) {
      if (is_looked_at(trial, news) && runs_->observe(trial).value().empty()) start(trial);
    }
  }

  // Whether the trial is reconciled: if its Job or its pods have changed, and every five seconds
  // while it waits.
  bool is_looked_at(const api::Trial& trial, const std::set<std::string>& news) {
    const bool is_due = (clock_.now_ms() / kStepMs + trial.spec.index) % 50 == 0;
    return is_due || news.contains(trial.metadata.name);
  }
  void follow(std::size_t i) {
    const api::Trial trial = team_[i].trial;
    if (team_[i].placed_ms == 0 && placed_of(trial) == trial.spec.workers) {
      team_[i].placed_ms = clock_.now_ms();
      latencies_.push_back(clock_.now_ms() - team_[i].asked_ms);
    }
    if (team_[i].placed_ms == 0 || clock_.now_ms() < team_[i].placed_ms + kTrialMs) return;
    if (const JobPtr job = jobs_.get(job_key(trial))) erase(*job);
    team_.erase(team_.begin() + static_cast<std::ptrdiff_t>(i));
    begin_successor();
  }

  // Acts as the Job controller, which makes pods of Jobs that are not suspended, and then as the
  // scheduler, which gives each pod a node if it can.
  void place_pods() {
    for (const JobPtr& job : jobs_.all()) {
      if (job->suspended || job->metadata.deleted_ms != 0) continue;
      const std::int64_t allowed = allowed_of(*job);
      const auto there = std::ssize(pods_.group(pod_group(*job)));
      for (std::int64_t rank = there; rank < allowed; ++rank) create_pod(*job, rank);
      if (there > 0) schedule(*job);
    }
  }
  std::int64_t allowed_of(const kube::Job& job) const {
    if (job.metadata.ns == "team") return job.completions;
    if (crowd_ == Crowd::kNoQuota) return 0;
    if (crowd_ != Crowd::kShortOfQuota) return job.completions;
    std::int64_t others = 0;
    for (const PodPtr& pod : pods_.all()) {
      const bool of_other = pod->owner->uid != job.metadata.uid;
      if (pod->metadata.ns == job.metadata.ns && of_other) ++others;
    }
    return others == 0 ? 1 : 0;
  }
  void create_pod(const kube::Job& job, std::int64_t rank) {
    kube::Pod pod;
    pod.metadata.name = job.metadata.name + "-" + std::to_string(rank);
    pod.metadata.ns = job.metadata.ns;
    pod.metadata.uid = job.metadata.uid + "/" + std::to_string(rank);
    pod.metadata.created_ms = clock_.now_ms();
    pod.metadata.labels = job.metadata.labels;
    pod.metadata.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
    pod.owner = kube::Owner{"Job", job.metadata.name, job.metadata.uid};
    pod.phase = "Pending";
    put(std::move(pod));
  }
  void schedule(const kube::Job& job) {
    for (const PodPtr& pod : pods_.group(pod_group(job))) {
      if (!pod->node.empty()) continue;
      kube::Pod next = *pod;
      const bool selects_none = job.metadata.ns == "crowd" && crowd_ == Crowd::kNoSuchNode;
      if (!selects_none && taken() < kNodes) {
        next.node = "node";
        next.phase = "Running";
        next.unschedulable.clear();
        next.conditions = {{"PodScheduled", "", "", clock_.now_ms()}};
        put(std::move(next));
      } else if (pod->unschedulable.empty()) {
        next.unschedulable = "0/12 nodes are available";
        put(std::move(next));
      }
    }
  }
  std::int64_t taken() const {
    const auto pods = pods_.all();
    return std::ranges::count_if(pods, [](const PodPtr& pod) { return !pod->node.empty(); });
  }
  std::int64_t placed_of(const api::Trial& trial) const {
    const JobPtr job = jobs_.get(job_key(trial));
    if (job == nullptr) return 0;
    return workers_with_node(*job, pods_.group(pod_group(*job)));
  }
  void put(kube::Pod pod) {
    news_.insert(kube::text_in(pod.metadata.labels, kTrialLabel));
    pod.metadata.resource_version = std::to_string(++version_);
    pods_.put(std::move(pod));
  }

  // Jobs whose deletion JobRuns has requested are gone at the next step, with their pods.
  void follow_deletions() {
    if (cluster_.server.writes() == 0) return;
    cluster_.server.forget_requests();
    std::set<std::string> alive;
    for (const Json& object : cluster_.server.list(kube::kJobs)) {
      const kube::Job job = kube::read_job(object).value();
      if (job.metadata.deleted_ms == 0) alive.insert(job.metadata.uid);
    }
    for (const JobPtr& job : jobs_.all()) {
      if (alive.count(job->metadata.uid) == 0) erase(*job);
    }
  }
  void erase(const kube::Job& job) {
    news_.insert(kube::text_in(job.metadata.labels, kTrialLabel));
    for (const PodPtr& pod : pods_.group(pod_group(job))) {
      pods_.erase({pod->metadata.ns, pod->metadata.name}, pod->metadata.uid, "");
    }
    const kube::ObjectKey key{job.metadata.ns, job.metadata.name};
    cluster_.server.remove(kube::kJobs, key);
    jobs_.erase(key, job.metadata.uid, "");
  }
  static kube::ObjectKey job_key(const api::Trial& trial) {
    return {trial.metadata.ns, core::run_name(trial.metadata.name, 0)};
  }

  const Crowd crowd_;
  FakeCluster cluster_;
  // Begins at a round time, so that each run of this test is the same.
  HandClock clock_{control::SystemClock().now_ms() / 10'000 * 10'000};
  kube::Client client_{cluster_.server, unlimited()};
  kube::Cache<kube::Job> jobs_;
  kube::Cache<kube::Pod> pods_;
  std::optional<JobRuns> runs_;
  std::vector<api::Trial> crowd_trials_;
  std::vector<Member> team_;
  std::set<std::string> news_;  // trials whose Job or pods have changed
  std::vector<std::int64_t> latencies_;
  int next_ = 0;
  int version_ = 1'000'000;
};

constexpr std::int64_t kTenMinutes = 600'000;

double mean_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
std::int64_t median_of(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

TEST(Tenants, GangsThatCanNeverBePlacedDoNotDelayThoseOfOthers) {
  const std::vector<std::int64_t> alone = Tenants(Crowd::kNobody).run_for(kTenMinutes);
  ASSERT_GT(alone.size(), 200u);
  const struct {
    Crowd crowd;
    const char* name;
  } cases[] = {{Crowd::kNoSuchNode, "no node has their labels"},
               {Crowd::kNoQuota, "their quota allows no pod"},
               {Crowd::kShortOfQuota, "their quota allows one pod of two"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<std::int64_t> beside = Tenants(c.crowd).run_for(kTenMinutes);
    std::printf("%s: successor latency %.0f ms, alone %.0f ms; %zu trials, alone %zu\n", c.name,
                mean_of(beside), mean_of(alone), beside.size(), alone.size());
    EXPECT_LE(mean_of(beside), 2 * mean_of(alone));
    EXPECT_GE(beside.size(), alone.size() * 9 / 10);
  }
}

// They hold nodes while they try, so others do wait for them now and then, and ever less often.
TEST(Tenants, GangsLargerThanTheClusterTryEverLessOften) {
  const std::vector<std::int64_t> alone = Tenants(Crowd::kNobody).run_for(3 * kTenMinutes);
  const std::vector<std::int64_t> beside = Tenants(Crowd::kTooLarge).run_for(3 * kTenMinutes);
  ASSERT_GE(beside.size(), alone.size() * 2 / 3);
  EXPECT_LE(median_of(beside), 2 * median_of(alone));
}

TEST(Tenants, TheLineOfGangsIsMeasured) {
  Tenants tenants(Crowd::kNoSuchNode);
  (void)tenants.run_for(120'000);
  const GangLine line = tenants.gang_line();
  EXPECT_GE(line.length, Tenants::kCrowd - 5);
  EXPECT_GE(line.longest_ms, 60'000);
}

}  // namespace
}  // namespace fettle::kubernetes
