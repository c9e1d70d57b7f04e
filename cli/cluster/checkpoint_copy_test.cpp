// Checkpoints of a cluster: the pod that mounts their volume, and the copy. The test plays the
// kubelet, a script plays kubectl.
#include "cli/cluster/checkpoint_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "cli/common/scratch_folder.h"
#include "cli/testing/played_kubelet.h"
#include "cli/testing/test_studies.h"
#include "kube/objects/json_path.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kNoImage = R"({"phase": "Pending", "containerStatuses": [
    {"name": "checkpoints", "state": {"waiting": {"reason": "ErrImagePull", "message": "gone"}}}]})";
constexpr const char* kEvicted = R"({"phase": "Failed", "message": "Evicted"})";

api::Study study_on_a_volume() {
  api::Study study = view_in_the_middle().study;
  study.metadata.uid = "u-1";
  study.spec.trial.pod_template = *parse_json(R"({"spec": {
    "serviceAccountName": "robot", "nodeSelector": {"disk": "fast"},
    "securityContext": {"fsGroup": 7}, "volumes": [{"name": "data"}],
    "initContainers": [{"name": "first"}],
    "containers": [{"name": "trainer", "image": "mine:1", "env": [{"name": "A"}], "args": ["x"],
                    "securityContext": {"runAsNonRoot": true},
                    "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}})");
  study.spec.trial.checkpoints.emplace().claim = "disk";
  return study;
}

api::Trial a_trial() {
  api::Trial trial = *view_in_the_middle().trials.front();
  trial.metadata.uid = "t-1";
  return trial;
}

class CheckpointCopyTest : public testing::Test {
 protected:
  CheckpointCopyTest() : scratch_(*ScratchFolder::make()) {
    cluster_ = {server_, "team", "kubectl fettle -n team", "kubectl -n team"};
    path_ = std::getenv("PATH");
    ::setenv("PATH", (scratch_.path() + ":" + path_).c_str(), 1);
  }
  ~CheckpointCopyTest() override { ::setenv("PATH", path_.c_str(), 1); }

  // The script sees its arguments as $*, and the place to copy to as $to.
  void make_kubectl(const std::string& script) {
    const std::string file = scratch_.path() + "/kubectl";
    std::ofstream(file) << "#!/bin/sh\nfor to; do :; done\n" << script << '\n';
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  // Copies while the test gives new pods this status.
  Status copy(std::string_view pod_status) {
    const PlayedKubelet kubelet(*server_, pod_status);
    return copy_from_volume(cluster_, study_on_a_volume(), a_trial(), "", to());
  }
  std::string to() const { return scratch_.path() + "/copy"; }

  ScratchFolder scratch_;
  std::shared_ptr<kube::FakeApiServer> server_ = std::make_shared<kube::FakeApiServer>();
  Cluster cluster_;
  std::string path_;
};

TEST_F(CheckpointCopyTest, CopiesByKubectlAndLeavesNoPod) {
  make_kubectl("echo \"$*\" > " + scratch_.path() + "/said; mkdir \"$to\"");
  const Status copied = copy(kRunningPod);
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_THAT(
      *read_file(scratch_.path() + "/said"),
      testing::MatchesRegex("-n team cp -c checkpoints "
                            "digits-0-copy-[^:]*:/fettle/checkpoints/u-1/digits-0 .*/copy\n"));
  EXPECT_THAT(server_->list(kube::kPods), IsEmpty());
}

struct Failure {
  const char* name;
  const char* kubectl;
  std::string_view pod_status;
  const char* message;  // a part of it
};

class FailedCopyTest : public CheckpointCopyTest, public testing::WithParamInterface<Failure> {};

TEST_P(FailedCopyTest, SaysWhyAndLeavesNoPod) {
  make_kubectl(GetParam().kubectl);
  const Status copied = copy(GetParam().pod_status);
  ASSERT_FALSE(copied.ok());
  EXPECT_THAT(copied.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(server_->list(kube::kPods), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    CheckpointCopy, FailedCopyTest,
    testing::Values(Failure{"NoImage", "mkdir $to", kNoImage,
                            "name one that its node can pull with"},
                    Failure{"PodEnds", "mkdir $to", kEvicted, "ended: Failed Evicted"},
                    Failure{"KubectlFails", "echo no tar here >&2; exit 1", kRunningPod,
                            "kubectl cp: no tar here"},
                    Failure{"NoKubectl", "exit 127", kRunningPod, "needs kubectl"},
                    Failure{"NoCheckpoint", "exit 0", kRunningPod, "digits-0 has no checkpoint"}),
    [](const auto& failure) { return failure.param.name; });

TEST(CheckpointPod, IsTheTrialsPodWithoutProgramAndGpus) {
  const Json pod = *checkpoint_pod(study_on_a_volume(), a_trial(), "");
  const Json spec = *pod.find("spec");
  EXPECT_EQ(spec.find("initContainers"), nullptr);
  EXPECT_EQ(spec.find("serviceAccountName"), nullptr);
  EXPECT_EQ(kube::text_at(spec, {"nodeSelector", "disk"}), "fast");
  EXPECT_EQ(*spec.find("volumes"), *parse_json(R"([{"name": "checkpoints",
    "persistentVolumeClaim": {"claimName": "disk", "readOnly": true}}])"));
  ASSERT_EQ(spec.find("containers")->as_array().size(), 1u);
  const Json& container = spec.find("containers")->as_array()[0];
  EXPECT_EQ(container, *parse_json(R"({"name": "checkpoints", "image": "mine:1",
    "command": ["sleep", "3600"], "securityContext": {"runAsNonRoot": true},
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"},
                  "limits": {"cpu": "1", "memory": "256Mi"}},
    "volumeMounts": [{"name": "checkpoints", "mountPath": "/fettle/checkpoints",
                      "readOnly": true}]})"));
  EXPECT_EQ(*pod.find("metadata"), *parse_json(R"({"generateName": "digits-0-copy-",
    "ownerReferences": [{"apiVersion": "fettle.dev/v1alpha1", "kind": "Trial", "name": "digits-0",
                         "uid": "t-1"}]})"));
}

TEST(CheckpointPod, TakesAnotherImage) {
  const Json pod = *checkpoint_pod(study_on_a_volume(), a_trial(), "tools:2");
  EXPECT_EQ(kube::text_at(pod.find("spec")->find("containers")->as_array()[0], {"image"}),
            "tools:2");
}

TEST(CheckpointPod, OfTheTrainerIsRestricted) {
  api::Study study = study_on_a_volume();
  study.spec.trial.pod_template = Json();
  study.spec.trial.trainer.emplace();
  const Json pod = *checkpoint_pod(study, a_trial(), "");
  const Json& container = pod.find("spec")->find("containers")->as_array()[0];
  EXPECT_THAT(kube::text_at(container, {"image"}), StartsWith("fettle-trainer:"));
  EXPECT_FALSE(kube::boolean_at(container, {"securityContext", "allowPrivilegeEscalation"}));
  EXPECT_TRUE(kube::boolean_at(*pod.find("spec"), {"securityContext", "runAsNonRoot"}));
}

TEST(CheckpointPod, NeedsAVolume) {
  api::Study study = study_on_a_volume();
  study.spec.trial.checkpoints.reset();
  const auto pod = checkpoint_pod(study, a_trial(), "");
  ASSERT_FALSE(pod.ok());
  EXPECT_THAT(pod.error().message, HasSubstr("without spec.trial.checkpoints"));
}

}  // namespace
}  // namespace fettle::cli
