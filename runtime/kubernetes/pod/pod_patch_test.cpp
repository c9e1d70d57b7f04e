// Merges an administrator's patch into a pod; job_builder_test has a complete example.
#include "runtime/kubernetes/pod/pod_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/yaml/study_file.h"
#include "base/file.h"
#include "base/test_paths.h"
#include "runtime/kubernetes/pod/trainer_pod.h"

namespace fettle::kubernetes {
namespace {

using testing::HasSubstr;

api::Study load(const std::string& name) {
  return api::load_study_file(source_path("runtime/kubernetes/testdata/" + name)).studies.at(0);
}

Json json(const std::string& text) { return parse_json(text).value(); }

// An administrator sets the default placement of trials; a Study knows its own needs.
TEST(PodPatch, TheStudysPlacementWins) {
  const Json patch = json(R"({"spec": {"nodeSelector": {"kubernetes.io/arch": "amd64"},
                                       "runtimeClassName": "gvisor"}})");
  const Json pod = trainer_pod(load("pod.yaml"), {"t", patch}).value();
  EXPECT_EQ(*pod.find("spec")->find("runtimeClassName"), Json("nvidia"));
  const Json& selector = *pod.find("spec")->find("nodeSelector");
  EXPECT_EQ(*selector.find("kubernetes.io/arch"), Json("amd64"));
  EXPECT_GT(selector.as_object().size(), 1u);
}

// For a trial with a GPU: all trials of a Study run the plans that one of them timed.
TEST(TrainerPod, PlansLieBesideTheCheckpoints) {
  api::Study study = load("trainer.yaml");
  const auto variable = [&](std::string_view name) -> std::string {
    const Json pod = trainer_pod(study, {"t", {}}).value();
    const Json& container = pod.find("spec")->find("containers")->as_array().at(0);
    for (const Json& one : container.find("env")->as_array()) {
      if (*one.find("name") == Json(name)) return one.find("value")->as_string();
    }
    return "-";
  };
  study.spec.trial.gpu.reset();
  EXPECT_EQ(variable("FETTLE_CUDA_PLANS"), "-");
  EXPECT_EQ(variable("FETTLE_KERNEL_CACHE"), "-");
  study.spec.trial.gpu.emplace().count = 1;
  study.spec.trial.checkpoints.reset();
  EXPECT_EQ(variable("FETTLE_CUDA_PLANS"), "first") << "each pod would time by itself";
  EXPECT_EQ(variable("FETTLE_KERNEL_CACHE"), "-");
  study.spec.trial.checkpoints.emplace().claim = "work";
  EXPECT_EQ(variable("FETTLE_CUDA_PLANS"), "-");
  EXPECT_EQ(variable("FETTLE_KERNEL_CACHE"),
            "/fettle/checkpoints/" + study.metadata.uid + "/plans");
}

TEST(PodPatch, MergesMapsAndNamedListsAndReplacesTheRest) {
  struct Case {
    const char* what;
    const char* object;
    const char* patch;
    const char* merged;
  };
  for (const Case& one : std::vector<Case>{
           {"maps", R"({"a": {"b": 1, "c": 2}})", R"({"a": {"c": 3}})",
            R"({"a": {"b": 1, "c": 3}})"},
           {"null", R"({"a": {"b": 1, "c": 2}})", R"({"a": {"b": null}, "x": null})",
            R"({"a": {"c": 2}})"},
           {"null in a new map", R"({})", R"({"a": {"b": null}})", R"({"a": {}})"},
           {"containers", R"({"containers": [{"name": "t", "image": "i"}]})",
            R"({"containers": [{"name": "t", "tty": true}]})",
            R"({"containers": [{"name": "t", "image": "i", "tty": true}]})"},
           {"volumes", R"({"volumes": [{"name": "v", "emptyDir": {}}]})",
            R"({"volumes": [{"name": "v", "hostPath": {}}, {"name": "w"}]})",
            R"({"volumes": [{"name": "v", "hostPath": {}}, {"name": "w"}]})"},
           {"mounts", R"({"volumeMounts": [{"name": "a", "mountPath": "/tmp"}]})",
            R"({"volumeMounts": [{"name": "b", "mountPath": "/tmp"}]})",
            R"({"volumeMounts": [{"name": "b", "mountPath": "/tmp"}]})"},
           {"other lists", R"({"tolerations": [{"key": "a"}]})",
            R"({"tolerations": [{"key": "b"}]})", R"({"tolerations": [{"key": "b"}]})"},
       }) {
    Json object = json(one.object);
    patch_pod(object, json(one.patch));
    EXPECT_EQ(object, json(one.merged)) << one.what << ": " << object.dump();
  }
}

// helm/tests/test.sh writes these files.
TEST(PodPatch, WhatTheChartMakesOfItsValuesIsAccepted) {
  for (const std::string name : {"defaults", "cluster", "openshift"}) {
    const Json patch =
        json(read_file(source_path("helm/tests/trainer-pod/" + name + ".json")).value());
    const Status checked = check_pod_patch(patch);
    EXPECT_TRUE(checked.ok()) << name << ": " << checked.error().message;
    const Json pod = trainer_pod(load("trainer.yaml"), {"t", patch}).value();
    const Json& security = *pod.find("spec")->find("securityContext");
    EXPECT_EQ(security.find("runAsUser") != nullptr, name != "openshift");
    EXPECT_EQ(security.find("fsGroup") != nullptr, name != "openshift");
    EXPECT_EQ(*security.find("runAsNonRoot"), Json(true));
  }
}

TEST(PodPatch, WhatIsNoPodTemplateIsRefused) {
  for (const auto& [patch, said] : std::vector<std::pair<std::string, std::string>>{
           {R"([])", "expected a pod template"},
           {R"({"resources": {}})", "unknown field resources"},
           {R"({"spec": []})", "spec: expected a map"},
           {R"({"spec": {"containers": {}}})", "spec.containers: expected a list"},
           {R"({"spec": {"containers": [{"name": "sidecar"}]}})", "the container trainer alone"},
           {R"({"spec": {"containers": [{}]}})", "the container trainer alone"}}) {
    const Status checked = check_pod_patch(json(patch));
    ASSERT_FALSE(checked.ok()) << patch;
    EXPECT_THAT(checked.error().message, HasSubstr(said));
  }
}

}  // namespace
}  // namespace fettle::kubernetes
