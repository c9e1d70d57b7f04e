// The additions of each profile of testdata/profiles.yaml to the pod of a trial that asks for four
// GPUs, a quarter of one, or 20 GiB (testdata/pods/PROFILE.json), and checks that the project
// behind each profile accepts them: the rules come from its own sources. With
// FETTLE_UPDATE_GOLDEN=1 in the environment the files are written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "api/fields/quantity.h"
#include "api/yaml/study_file.h"
#include "api/yaml/yaml_reader.h"
#include "base/file.h"
#include "base/test_paths.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/gpu/pod_gpus.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

struct Ask {
  const char* name;
  api::Gpu gpu;
};
const std::array<Ask, 3> kAsks{{{"count: 4", {4, {}, {}}},
                                {"fraction: 0.25", {{}, 0.25, {}}},
                                {"memory: 20Gi", {{}, {}, 20 * kGib}}}};

api::Study study_for(const api::Gpu& gpu) {
  api::Study study = api::load_study_text(R"(
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: digits, namespace: team, uid: 01234567-89ab-cdef-0123-456789abcdef}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  parameters: [{name: rate, type: Double, min: 0, max: 1}]
  budget: {parallelism: 4}
  trial: {template: {spec: {containers: [{name: trainer, image: mine}]}}}
)",
                                          "test")
                         .studies.at(0);
  study.spec.trial.gpu = gpu;
  return study;
}

api::Trial trial_of(const api::Study& study) {
  api::Trial trial;
  trial.metadata.name = "digits-0";
  trial.metadata.ns = "team";
  trial.metadata.uid = "trial-uid";
  trial.spec.study = study.metadata.name;
  return trial;
}

// The members of a map of texts, except Fettle's own.
Json others(const Json* map) {
  Json out = Json::object();
  if (map == nullptr) return out;
  for (const auto& [key, value] : map->as_object()) {
    if (!key.starts_with("fettle.dev/")) out.set(key, value);
  }
  return out;
}

// The parts of a pod that a placement may touch.
Json told(const Json& job) {
  const Json pod = pod_of(job);
  Json out = Json::object();
  for (const char* part : {"labels", "annotations"}) {
    const Json map = others(pod.find("metadata")->find(part));
    if (!map.as_object().empty()) out.set(part, map);
  }
  const Json& spec = *pod.find("spec");
  for (const char* part : {"schedulerName", "nodeSelector", "tolerations", "runtimeClassName",
                           "resourceClaims", "terminationGracePeriodSeconds"}) {
    if (const Json* found = spec.find(part)) out.set(part, *found);
  }
  const Json& container = spec.find("containers")->as_array().at(0);
  if (const Json* resources = container.find("resources")) out.set("resources", *resources);
  const Json& metadata = *job.find("metadata");
  Json of_job = Json::object();
  for (const auto& [key, value] : metadata.find("annotations")->as_object()) {
    if (key.find("gpu") != std::string::npos || key.find("gang") != std::string::npos) {
      of_job.set(key, value);
    }
  }
  out.set("job", of_job);
  return out;
}

class GoldenPod : public testing::TestWithParam<api::GpuProfile> {};

TEST_P(GoldenPod, IsAsExpected) {
  const api::GpuProfile& profile = GetParam();
  JobOptions options{"image"};
  options.gpu_profiles = {profile};
  Json all = Json::object();
  for (const Ask& ask : kAsks) {
    const api::Study study = study_for(ask.gpu);
    const auto gpus = place_gpus(study.spec, options.gpu_profiles);
    if (!gpus.ok()) {
      all.set(ask.name, Json::object({{"refused", gpus.error().message}}));
      continue;
    }
    const auto job = build_job(study, trial_of(study), 0, options);
    ASSERT_TRUE(job.ok()) << job.error().message;
    Json pod = told(*job);
    if (!(*gpus)->claim.is_null()) pod.set("claim", build_gpu_claim(study, **gpus));
    all.set(ask.name, pod);
  }
  const std::string path =
      source_path("runtime/kubernetes/gpu/testdata/pods/" + profile.name + ".json");
  if (std::getenv("FETTLE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, all.dump(2) + "\n").ok());
  }
  const Result<std::string> expected = read_file(path);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_TRUE(all.dump(2) + "\n" == *expected) << path << " has changed: " << all.dump(2);
}

// ---- The rules of each project -----------------------------------------------------------------

struct Pod {
  Json limits = Json::object();
  Json labels = Json::object();
  Json annotations = Json::object();
  Json spec = Json::object();
};

std::int64_t plain_integer(const Json& limits, const char* name) {
  const Json* const found = limits.find(name);
  EXPECT_TRUE(found != nullptr && found->is_integer()) << name << " is no plain integer";
  return found == nullptr || !found->is_integer() ? 0 : found->as_integer();
}

// pkg/binder/plugins/gpusharing/gpu-request/gpu_request_validator.go
void check_kai(const Pod& pod) {
  EXPECT_EQ(kube::text_at(pod.spec, {"schedulerName"}), "kai-scheduler");
  EXPECT_NE(kube::text_at(pod.labels, {"kai.scheduler/queue"}), "");
  const std::string fraction = kube::text_at(pod.annotations, {"gpu-fraction"});
  const std::string memory = kube::text_at(pod.annotations, {"gpu-memory"});
  if (!fraction.empty()) {
    const double value = api::parse_quantity(fraction).value();
    EXPECT_TRUE(value > 0 && value < 1) << fraction;
    EXPECT_TRUE(memory.empty());
  }
  if (!memory.empty()) {
    EXPECT_EQ(memory.find_first_not_of("0123456789"), std::string::npos) << memory;
    EXPECT_NE(memory, "0");
  }
  const bool shares = !fraction.empty() || !memory.empty();
  EXPECT_TRUE(!shares || pod.limits.find("nvidia.com/gpu") == nullptr);
}

// pkg/device/nvidia/device.go, GenerateResourceRequests: integers, per physical GPU
void check_hami(const Pod& pod) {
  EXPECT_GE(plain_integer(pod.limits, "nvidia.com/gpu"), 1);
  const bool by_memory = pod.limits.find("nvidia.com/gpumem") != nullptr;
  if (by_memory) {
    EXPECT_GE(plain_integer(pod.limits, "nvidia.com/gpumem"), 1);
    EXPECT_EQ(pod.limits.find("nvidia.com/gpumem-percentage"), nullptr);
    return;
  }
  for (const char* name : {"nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}) {
    const std::int64_t percent = plain_integer(pod.limits, name);
    EXPECT_TRUE(percent >= 1 && percent <= 100) << name << " 0 would mean no limit";
  }
}

// pkg/scheduler/api/devices/config/vgpu.go
void check_volcano(const Pod& pod) {
  EXPECT_EQ(kube::text_at(pod.spec, {"schedulerName"}), "volcano");
  EXPECT_GE(plain_integer(pod.limits, "volcano.sh/vgpu-number"), 1);
  for (const auto& [name, amount] : pod.limits.as_object()) {
    EXPECT_TRUE(amount.is_integer()) << name;
  }
}

// Requests one replica of one card and no more: with MPS failRequestsGreaterThanOne is on. The
// device plugin mounts a /dev/shm of its own (k8s-device-plugin#805).
void check_replica(const Pod& pod) {
  for (const auto& [name, amount] : pod.limits.as_object()) EXPECT_EQ(amount.as_integer(), 1);
  const Json& container = pod.spec.find("containers")->as_array().at(0);
  for (const Json& mount : kube::array_at(container, {"volumeMounts"})) {
    EXPECT_NE(kube::text_at(mount, {"mountPath"}), "/dev/shm");
  }
}

// Whether each pod has its own claim, without firstAvailable, config and constraints: Kueue admits
// no other (its KEP for dynamic resource allocation).
bool is_for_kueue(const Pod& pod, const Json& claim) {
  const Json& one = kube::array_at(pod.spec, {"resourceClaims"}).at(0);
  const bool own = one.find("resourceClaimTemplateName") != nullptr;
  const Json* const spec = kube::value_at(claim, {"spec", "spec", "devices"});
  return own && spec != nullptr && spec->find("config") == nullptr &&
         spec->find("constraints") == nullptr &&
         spec->dump().find("firstAvailable") == std::string::npos;
}

void check_claim(const Pod& pod, const Json& claim, const std::string& profile) {
  const Json& container = pod.spec.find("containers")->as_array().at(0);
  const Json::Array& of_container = kube::array_at(container, {"resources", "claims"});
  const Json::Array& of_pod = kube::array_at(pod.spec, {"resourceClaims"});
  ASSERT_EQ(of_pod.size(), 1U);
  EXPECT_EQ(kube::text_at(of_container.at(0), {"name"}), kube::text_at(of_pod.at(0), {"name"}));
  EXPECT_EQ(kube::text_at(claim, {"apiVersion"}), "resource.k8s.io/v1");
  EXPECT_EQ(kube::array_at(claim, {"metadata", "ownerReferences"}).at(0).find("kind")->as_string(),
            "Study");
  EXPECT_EQ(is_for_kueue(pod, claim), profile != "dra-mps") << "as docs/gpus.md says";
}

TEST_P(GoldenPod, ItsProjectTakesIt) {
  const api::GpuProfile& profile = GetParam();
  JobOptions options{"image"};
  options.gpu_profiles = {profile};
  int taken = 0;
  for (const Ask& ask : kAsks) {
    SCOPED_TRACE(ask.name);
    const api::Study study = study_for(ask.gpu);
    const auto gpus = place_gpus(study.spec, options.gpu_profiles);
    if (!gpus.ok()) continue;
    ++taken;
    const Json whole = pod_of(build_job(study, trial_of(study), 0, options).value());
    Pod pod;
    pod.spec = *whole.find("spec");
    const Json& container = pod.spec.find("containers")->as_array().at(0);
    if (const Json* limits = kube::value_at(container, {"resources", "limits"})) {
      pod.limits = *limits;
    }
    pod.labels = *whole.find("metadata")->find("labels");
    pod.annotations = *whole.find("metadata")->find("annotations");
    switch (profile.sharing) {
      case api::GpuSharing::kKai:
        check_kai(pod);
        break;
      case api::GpuSharing::kHami:
        check_hami(pod);
        break;
      case api::GpuSharing::kVolcano:
        check_volcano(pod);
        break;
      case api::GpuSharing::kMps:
      case api::GpuSharing::kTimeSlicing:
        check_replica(pod);
        break;
      case api::GpuSharing::kDra:
        check_claim(pod, build_gpu_claim(study, **gpus), profile.name);
        break;
      default:
        EXPECT_FALSE(pod.limits.as_object().empty());
    }
    // Pod Security, level restricted, accepts everything that a placement adds to a pod.
    EXPECT_EQ(whole.dump().find("hostPath"), std::string::npos);
    EXPECT_EQ(whole.dump().find("hostIPC"), std::string::npos);
  }
  const bool is_too_small = profile.name == "mig-1g-10gb";
  EXPECT_EQ(taken > 0, !is_too_small) << "the profile fits none of the requests";
}

std::string name_of_profile(const testing::TestParamInfo<api::GpuProfile>& profile) {
  std::string name = profile.param.name;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Profiles, GoldenPod, testing::ValuesIn(test_profiles()), name_of_profile);

// ---- A template of the user's own --------------------------------------------------------------

Result<Json> job_with(const std::string& profile, const std::string& template_yaml) {
  api::Study study = study_for({{}, 0.25, {}});
  const api::ReadYaml yaml = api::read_yaml(template_yaml);
  CHECK(yaml.errors.empty(), template_yaml);
  study.spec.trial.pod_template = yaml.documents.at(0).value();
  JobOptions options{"image"};
  options.gpu_profiles = test_profiles({profile});
  return build_job(study, trial_of(study), 0, options);
}

TEST(PodGpus, ATemplateKeepsItsQueueAndItsVariables) {
  const auto job = job_with("kai-fraction", R"(
metadata: {labels: {kai.scheduler/queue: mine}}
spec: {containers: [{name: trainer, image: i}]})");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(*pod_of(*job).find("metadata")->find("labels")->find("kai.scheduler/queue"),
            Json("mine"));
}

TEST(PodGpus, ATemplateThatContradictsTheProfileIsRefused) {
  const auto scheduler = job_with("kai-fraction", R"(
spec: {schedulerName: volcano, containers: [{name: trainer, image: i}]})");
  ASSERT_FALSE(scheduler.ok());
  EXPECT_THAT(scheduler.error().message,
              testing::HasSubstr("schedulerName: found volcano, and GPU profile kai-fraction needs "
                                 "kai-scheduler: remove it from the template"));
  const auto node = job_with("time-sliced-quarter", R"(
spec: {nodeSelector: {nvidia.com/gpu.product: A}, containers: [{name: trainer, image: i}]})");
  ASSERT_FALSE(node.ok());
  EXPECT_THAT(node.error().message,
              testing::HasSubstr("nodeSelector: found nvidia.com/gpu.product=A"));
  const auto twice = job_with("kai-fraction", R"(
spec: {containers: [{name: trainer, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]})");
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message, testing::HasSubstr("no whole GPU is asked for beside"));
}

TEST(PodGpus, AGracePeriodThatIsTooShortForNeighboursIsRaised) {
  const auto grace = [](const std::string& profile, const std::string& seconds) {
    const auto job = job_with(profile, "spec: {terminationGracePeriodSeconds: " + seconds +
                                           ", containers: [{name: trainer, image: i}]}");
    return pod_of(job.value()).find("spec")->find("terminationGracePeriodSeconds")->as_integer();
  };
  EXPECT_EQ(grace("mps-quarter", "10"), 60);
  EXPECT_EQ(grace("mps-quarter", "300"), 300);
  EXPECT_EQ(grace("mig-1g-20gb", "10"), 10) << "the hardware keeps neighbours apart";
}

TEST(PodGpus, TheTrialFileSaysWhichPartOfACardThereIs) {
  const auto job = job_with("mps-quarter", "spec: {containers: [{name: trainer, image: i}]}");
  const Json pod = pod_of(job.value());
  const Json& annotations = *pod.find("metadata")->find("annotations");
  const Json file = parse_json(kube::text_at(annotations, {kTrialFileAnnotation})).value();
  EXPECT_EQ(file.find("gpuPart")->dump(),
            R"({"share":0.25,"memory":21474836480,"sharing":"MPS","enforces":"Memory"})");
  EXPECT_EQ(file.find("gracePeriod")->as_string(), "1m");
}

TEST(PodGpus, AnotherClaimHasAnotherName) {
  const api::Study study = study_for({{}, {}, 20 * kGib});
  api::Study larger = study;
  larger.spec.trial.gpu->memory = 40 * kGib;
  const auto profiles = test_profiles({"dra-memory"});
  const std::string name = gpu_claim_name(study, **place_gpus(study.spec, profiles));
  EXPECT_THAT(name, testing::MatchesRegex("digits-gpu-01234567-[0-9a-f]+"));
  EXPECT_EQ(name, gpu_claim_name(study, **place_gpus(study.spec, profiles)));
  EXPECT_NE(name, gpu_claim_name(larger, **place_gpus(larger.spec, profiles)));
}

}  // namespace
}  // namespace fettle::kubernetes
