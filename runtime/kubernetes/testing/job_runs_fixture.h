// JobRunsTest: the fixture of tests that call JobRuns directly: a Study, a trial and a cluster.
// One thread, but for the operator's own.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "api/study_json.h"
#include "api/yaml/study_file.h"
#include "runtime/kubernetes/testing/fake_cluster.h"

namespace fettle::kubernetes {

inline constexpr const char* kJob = "digits-0-r0";

class JobRunsTest : public testing::Test {
 protected:
  JobRunsTest() {
    study_ = api::load_study_text(template_study(1), "test").studies.at(0);
    study_.metadata.uid = "study-uid";
    study_.metadata.ns = "team";
    trial_.metadata.name = "digits-0";
    trial_.metadata.ns = "team";
    trial_.metadata.uid = "trial-uid";
    trial_.spec.study = "digits";
    trial_.spec.parameters = Json::object({{"rate", 0.5}});
    cluster_.start_operator();
  }

  JobRuns& runs() { return cluster_.manager->runs(); }
  void use_workers(std::int64_t workers) {
    study_.spec.trial.workers = {workers, workers};
    trial_.spec.workers = workers;
  }
  // As the operator sees it.
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
  std::size_t requests(const std::string& method) {
    std::size_t count = 0;
    for (const std::string& request : cluster_.server.requests()) {
      count += request.rfind(method, 0) == 0 ? 1 : 0;
    }
    return count;
  }

  FakeCluster cluster_;
  api::Study study_;
  api::Trial trial_;
};

}  // namespace fettle::kubernetes
