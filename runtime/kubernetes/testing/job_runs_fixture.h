// The fixtures of tests that call JobRuns directly, each with a Study and a trial. JobRunsTest has
// a cluster and an operator with informers; in HandRunsTest nothing runs by itself.
// One thread, but for the operator's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "api/study/study_json.h"
#include "api/yaml/study_file.h"
#include "runtime/kubernetes/store/server_clock.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {

inline constexpr const char* kJob = "digits-0-r0";

class DigitsTest : public testing::Test {
 protected:
  DigitsTest() : study_(api::load_study_text(template_study(1), "test").studies.at(0)) {
    study_.metadata.uid = "study-uid";
    study_.metadata.ns = "team";
    trial_.metadata.name = "digits-0";
    trial_.metadata.ns = "team";
    trial_.metadata.uid = "trial-uid";
    trial_.spec.study = "digits";
    trial_.spec.parameters = Json::object({{"rate", 0.5}});
  }

  // `begin`: the method, and perhaps the beginning of the path.
  static std::size_t requests_to(const kube::FakeApiServer& server, const std::string& begin) {
    const std::vector<std::string> all = server.requests();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const std::string& request) { return request.starts_with(begin); }));
  }

  api::Study study_;
  api::Trial trial_;
};

class JobRunsTest : public DigitsTest {
 protected:
  JobRunsTest() { cluster_.start_operator(); }

  JobRuns& runs() { return cluster_.manager->runs(); }
  void use_workers(std::int64_t workers) {
    study_.spec.trial.workers = {workers, workers};
    trial_.spec.workers = workers;
  }
  // Makes the operator see the Study.
  void store_study() {
    cluster_.server.set(kube::kStudies, api::write_study(study_));
    ASSERT_TRUE(eventually([&] {
      return cluster_.manager->store().get_study({"team", "digits"}).ok();
    }));
    study_ = cluster_.manager->store().get_study({"team", "digits"}).value();
  }
  Status start() { return runs().start(study_, trial_, 0); }
  Json job() { return cluster_.server.get(kube::kJobs, {"team", kJob}); }
  core::Run observe() { return runs().observe(trial_).value().at(0); }
  void refuse(const std::string& resource, ErrorCode code, const std::string& words) {
    cluster_.refuses = [resource](const kube::Admission& write) {
      return write.resource == resource;
    };
    cluster_.admit = Error{code, words};
  }
  static bool eventually(const std::function<bool()>& holds) {
    return FakeCluster::eventually(holds);
  }
  std::size_t requests(const std::string& begin) { return requests_to(cluster_.server, begin); }

  FakeCluster cluster_;
};

// A test moves the clock, and passes to JobRuns the objects that informers would bring. The clock
// is the control plane's; the clock of the operator's node is `ahead_ms` ahead of it.
class HandRunsTest : public DigitsTest {
 protected:
  explicit HandRunsTest(std::int64_t ahead_ms = 0, JobOptions options = {"image"})
      : node_clock_(clock_, ahead_ms), runs_(client_, jobs_, pods_, store_, now_, options) {
    server_.use_clock([this] { return clock_.now_ms(); });
  }

  Status start() { return runs_.start(study_, trial_, 0); }
  Json job() { return server_.get(kube::kJobs, {"team", kJob}); }
  void change_job(const Json& patch) {
    server_.merge(kube::kJobs, {"team", kJob}, patch);
    jobs_.put(kube::read_job(job()).value());
  }
  core::Run observe() { return runs_.observe(trial_).value().at(0); }
  core::Run observe_after(std::int64_t ms) {
    clock_.pass(ms);
    return observe();
  }
  std::size_t requests(const std::string& begin) { return requests_to(server_, begin); }

  HandClock clock_;
  ClockAhead node_clock_;
  ServerClock now_{node_clock_};
  kube::FakeApiServer server_;
  kube::Client client_{server_, noting_dates()};
  kube::Cache<StudyEntry> studies_;
  kube::Cache<TrialEntry> trials_;
  kube::Cache<kube::Job> jobs_;
  kube::Cache<kube::Pod> pods_;
  KubeStore store_{client_, studies_, trials_, now_, [](const auto&...) {}};
  JobRuns runs_;

 private:
  kube::ClientOptions noting_dates() {
    kube::ClientOptions options;
    options.on_call = [this](const kube::CallMade& call) { now_.note(call); };
    return options;
  }
};

}  // namespace fettle::kubernetes
