// The Studies of testdata/*.yaml, and the Job that a trial of each gets (testdata/*.json). With
// FETTLE_UPDATE_GOLDEN=1 in the environment the expected files are written again.
#include "runtime/kubernetes/job/job_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "api/fields/enum_names.h"
#include "api/fields/quantity.h"
#include "api/study/algorithm.h"
#include "api/yaml/study_file.h"
#include "base/file.h"
#include "base/test_paths.h"
#include "runtime/kubernetes/gpu/placement.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/pod/pod_patch.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/pod/volume_claim.h"

namespace fettle::kubernetes {
namespace {

using testing::HasSubstr;

constexpr const char* kImage = "fettle-trainer:test";

std::string data_file(const std::string& name) {
  return source_path("runtime/kubernetes/testdata/" + name);
}

api::Study load(const std::string& name) {
  api::LoadedFile file = api::load_study_file(data_file(name + ".yaml"));
  CHECK(file.diagnostics.empty(), api::to_string(file.diagnostics.front()));
  return file.studies.at(0);
}

api::Trial trial_of(const api::Study& study) {
  api::Trial trial;
  trial.metadata.name = "digits-4";
  trial.metadata.ns = "team";
  trial.metadata.uid = "trial-uid";
  trial.spec.study = study.metadata.name;
  trial.spec.index = 4;
  trial.spec.seed = 7;
  trial.spec.until_step = study.spec.resource.max;
  trial.spec.workers = study.spec.trial.workers.min;
  trial.spec.parameters = Json::object({{"learning_rate", 0.025}});
  return trial;
}

void expect_golden(const std::string& name, const Json& object) {
  const std::string path = data_file(name + ".json");
  if (std::getenv("FETTLE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, object.dump(2) + "\n").ok());
  }
  const Result<std::string> expected = read_file(path);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(object.dump(2) + "\n", *expected) << path;
}

class JobBuilderGolden : public testing::TestWithParam<const char*> {};

TEST_P(JobBuilderGolden, IsAsExpected) {
  const api::Study study = load(GetParam());
  api::Trial trial = trial_of(study);
  if (std::string(GetParam()) == "template") {
    trial.spec.parameters.set("prompt", "$(id) costs $5");
    trial.spec.parameters.set("mode", "fast");
  }
  if (study.spec.trial.checkpoints) trial.spec.parent = api::Parent{"digits-1", 3};
  const Result<Json> job = build_job(study, trial, 2, {kImage});
  ASSERT_TRUE(job.ok()) << job.error().message;
  expect_golden(GetParam(), *job);
}

INSTANTIATE_TEST_SUITE_P(All, JobBuilderGolden,
                         testing::Values("trainer", "template", "workers", "gpus", "checkpoints",
                                         "pod", "pod_own"),
                         [](const auto& about) { return std::string(about.param); });

TEST(JobBuilder, WhatTheAdministratorWantsIsLaidOverTheTrainersPod) {
  const api::Study study = load("trainer");
  const Json patch = parse_json(read_file(data_file("pod_patch.json")).value()).value();
  EXPECT_TRUE(check_pod_patch(patch).ok());
  const Result<Json> job = build_job(study, trial_of(study), 2, {kImage, patch});
  ASSERT_TRUE(job.ok()) << job.error().message;
  expect_golden("pod_patched", *job);
  const api::Study own = load("template");  // the patch leaves a user's own image alone
  EXPECT_EQ(build_job(own, trial_of(own), 2, {kImage, patch}).value(),
            build_job(own, trial_of(own), 2, {kImage}).value());
}

TEST(JobBuilder, TheBuiltInTrainerWithAGpuDoesNotTrainOnTheCpuInstead) {
  api::Study study = load("trainer");
  EXPECT_EQ(build_job(study, trial_of(study), 0, {kImage})->dump().find("cuda"), std::string::npos);
  study.spec.trial.gpu.emplace();
  const std::string text = build_job(study, trial_of(study), 0, {kImage})->dump();
  EXPECT_NE(text.find("\\\"backend\\\":\\\"cuda\\\""), std::string::npos) << text;
}

TEST(JobBuilder, APodOfTheTrainerGoesWhereTheStudySays) {
  const api::Study study = load("pod");
  const Result<Json> job = build_job(study, trial_of(study), 0, {kImage});
  ASSERT_TRUE(job.ok()) << job.error().message;
  const std::string text = job->dump();
  EXPECT_THAT(text, HasSubstr(R"("tolerations":[{"key":"nvidia.com/gpu",)"));
  EXPECT_THAT(text, HasSubstr(R"("runtimeClassName":"nvidia")"));
}

// fettle-trainer starts a process for each GPU; NCCL between GPUs without peer access needs more
// shared memory than a container's 64 MiB.
TEST(JobBuilder, TheBuiltInTrainerIsToldOfSeveralGpusAndHasSharedMemory) {
  api::Study study = load("trainer");
  for (const std::int64_t count : {1, 2}) {
    study.spec.trial.gpu.emplace().count = count;
    const Result<Json> job = build_job(study, trial_of(study), 0, {kImage});
    ASSERT_TRUE(job.ok()) << job.error().message;
    const std::string text = job->dump();
    EXPECT_EQ(text.find("\"mountPath\":\"/dev/shm\"") != std::string::npos, count > 1);
    EXPECT_EQ(text.find("gpusPerWorker") != std::string::npos, count > 1);
  }
}

TEST(JobBuilder, AClaimOfASizeIsMadeAndBelongsToItsStudy) {
  const api::Study study = load("claim");
  expect_golden("claim", build_volume_claim(study));
  const Result<Json> job = build_job(study, trial_of(study), 0, {kImage});
  EXPECT_NE(job->dump().find(R"({"claimName":"digits-checkpoints-study-ui"})"), std::string::npos);
  EXPECT_FALSE(makes_volume_claim(load("checkpoints"))) << "the user's own is there";
}

TEST(JobBuilder, AStudyHasOneServiceForAllItsWorkers) {
  api::Study study = load("workers");
  expect_golden("service", build_service(study));
  const Json job = build_job(study, trial_of(study), 0, {kImage}).value();
  EXPECT_EQ(service_of(kube::read_job(job).value()), service_of(study));
  EXPECT_FALSE(has_own_service(kube::read_job(job).value()));
  const std::string name = service_of(study);
  study.metadata.uid = "0" + study.metadata.uid;
  EXPECT_NE(service_of(study), name) << "a later Study of the name must not lose it to the other";
  study.metadata.name = std::string(63, 's');
  EXPECT_EQ(service_of(study).size(), 63u);
}

TEST(JobBuilder, AJobOfAnEarlierVersionHasItsOwnService) {
  kube::Job job;
  job.metadata.name = "digits-4-r2";
  job.metadata.ns = "team";
  job.metadata.uid = "job-uid";
  job.metadata.annotations[kServiceAnnotation] = "w-digits-4-r2";
  job.metadata.labels = {
      {"fettle.dev/study", "digits"}, {"fettle.dev/trial", "digits-4"}, {"fettle.dev/run", "2"}};
  EXPECT_TRUE(has_own_service(job));
  expect_golden("own_service", build_own_service(job));
  job.metadata.annotations[kServiceAnnotation] = "true";
  EXPECT_TRUE(has_own_service(job));
  EXPECT_EQ(*build_own_service(job).find("metadata")->find("name"), Json("digits-4-r2"))
      << "the pods of a Job that an earlier version made look for it under this name";
}

// The Job owns the group of each; a Kueue queue concerns the Job alone.
TEST(JobBuilder, WorkersAreAGroupOfTheSchedulerThatTheStudyNames) {
  for (const char* const gang : {"native", "coscheduling", "volcano", "kai", "kueue", "none"}) {
    api::Study study = load("workers");
    study.spec.trial.gang = gang == std::string("kueue") ? "auto" : gang;
    study.spec.trial.queue = gang == std::string("none") ? "" : "team-a";
    if (gang == std::string("kueue")) study.spec.trial.queue_priority = "low";
    const Json job = build_job(study, trial_of(study), 0, {kImage}).value();
    kube::Job made = kube::read_job(job).value();
    made.metadata.uid = "job-uid";
    Json objects = Json::object({{"job", job}});
    for (const kube::Resource& resource : pod_group_resources(pod_group_of(made))) {
      objects.set(kube::api_version(resource), build_pod_group(made, resource));
    }
    expect_golden(std::string("gang_") + gang, objects);
  }
}

TEST(JobBuilder, AGroupIsOpenedAtOnceAndATrialOfOneWorkerIsNone) {
  api::Study study = load("workers");
  study.spec.trial.gang = "volcano";
  api::Trial trial = trial_of(study);
  const kube::Job job = kube::read_job(build_job(study, trial, 0, {kImage}).value()).value();
  trial.metadata.name = "digits-5";
  const kube::Job other = kube::read_job(build_job(study, trial, 0, {kImage}).value()).value();
  EXPECT_NE(domain_of(job), domain_of(other)) << "neither waits for the other";
  trial.spec.workers = 1;
  const Json alone = build_job(study, trial, 0, {kImage}).value();
  EXPECT_EQ(pod_group_of(kube::read_job(alone).value()), "");
  EXPECT_THAT(alone.dump(), HasSubstr(R"("schedulerName":"volcano")"));
}

TEST(JobBuilder, ATrialThatSaysHowMuchMemoryItNeedsIsPlacedByThat) {
  JobOptions options{kImage};
  options.gpu_profiles = test_profiles();
  api::Study study = load("trainer");
  api::Trial trial = trial_of(study);
  study.spec.trial.gpu.emplace().memory = 0x1p30 * 20;
  const Result<Json> fixed = build_job(study, trial, 0, options);
  ASSERT_TRUE(fixed.ok()) << fixed.error().message;
  study.spec.trial.gpu->memory = api::kAutoAmount;
  trial.spec.gpu_memory = 0x1p30 * 20;
  EXPECT_EQ(build_job(study, trial, 0, options).value(), *fixed);
  const double most = most_memory(study.spec, options.gpu_profiles).value();
  trial.spec.gpu_memory = most;
  EXPECT_TRUE(build_job(study, trial, 0, options).ok());
  trial.spec.gpu_memory = 1.1 * most;
  EXPECT_FALSE(build_job(study, trial, 0, options).ok());
  EXPECT_EQ(most_memory(study.spec, api::default_gpu_profiles()), std::nullopt);
}

TEST(JobBuilder, AJobOfOneWorkerIsNoGang) {
  const api::Study study = load("workers");
  api::Trial trial = trial_of(study);
  trial.spec.workers = 1;
  const Json job = build_job(study, trial, 0, {kImage}).value();
  EXPECT_EQ(job.find("spec")->find("suspend"), nullptr);
  EXPECT_EQ(job.find("metadata")->find("annotations")->find(kGangAnnotation), nullptr);
}

TEST(JobBuilder, GangsThatCompeteForTheSameNodesHaveOneDomain) {
  api::Study study = load("pod");
  study.spec.trial.workers = {2, 2};
  const auto domain = [&study] {
    const Json job = build_job(study, trial_of(study), 0, {kImage}).value();
    return job.find("metadata")->find("annotations")->find(kGangDomainAnnotation)->as_string();
  };
  const std::string first = domain();
  study.spec.trial.checkpoints.emplace().claim = "disk";
  EXPECT_EQ(domain(), first);
  study.spec.trial.pod->node_selector["zone"] = "b";
  EXPECT_NE(domain(), first);
  const std::string of_zone = domain();
  study.spec.trial.gpu.reset();
  EXPECT_NE(domain(), of_zone);
}

// Every pod of a Job is made from one template, so all workers mount the claim or none does.
TEST(JobBuilder, WorkersThatShareAClaimOfOneNodeAreKeptOnOneNode) {
  api::Study study = load("claim");
  study.spec.trial.workers = {2, 2};
  const auto build = [&study](const std::string& mode) {
    study.spec.trial.checkpoints->access_mode = mode;
    return build_job(study, trial_of(study), 0, {kImage});
  };
  EXPECT_THAT(build("ReadWriteOnce")->dump(),
              HasSubstr(R"("podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[)"
                        R"({"labelSelector":{"matchLabels":)"
                        R"({"batch.kubernetes.io/job-name":"digits-4-r0"}},)"
                        R"("topologyKey":"kubernetes.io/hostname"}]})"));
  EXPECT_EQ(build("ReadWriteMany")->dump().find("podAffinity"), std::string::npos);
  const Result<Json> of_one_pod = build("ReadWriteOncePod");
  ASSERT_FALSE(of_one_pod.ok());
  EXPECT_THAT(of_one_pod.error().message, HasSubstr("give ReadWriteMany, or ReadWriteOnce"));
  study.spec.trial.workers = {1, 1};
  EXPECT_EQ(build("ReadWriteOnce")->dump().find("podAffinity"), std::string::npos);
  EXPECT_TRUE(build("ReadWriteOncePod").ok());
}

TEST(JobBuilder, APodForADryRunHasTheTemplateAndAName) {
  const api::Study study = load("template");
  const Json job = build_job(study, trial_of(study), 0, {kImage}).value();
  const Json pod = pod_of(job);
  EXPECT_EQ(*pod.find("kind"), Json("Pod"));
  EXPECT_EQ(*pod.find("metadata")->find("name"), Json("digits-4-r0-0"));
  EXPECT_EQ(*pod.find("metadata")->find("namespace"), Json("team"));
  EXPECT_EQ(*pod.find("spec"), *job.find("spec")->find("template")->find("spec"));
}

TEST(JobBuilder, NamesThatKubernetesCannotTakeAreRefused) {
  const api::Study study = load("workers");
  api::Trial trial = trial_of(study);
  trial.metadata.name = std::string(58, 'a');
  EXPECT_TRUE(build_job(study, trial, 0, {kImage}).ok());
  const Result<Json> longer = build_job(study, trial, 10, {kImage});
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(longer.error().message, HasSubstr("64 characters"));
}

TEST(JobBuilder, APopulationNeedsAVolumeThatAllPodsSee) {
  api::Study study = load("trainer");
  study.spec.trial.checkpoints.reset();
  study.spec.algorithm.name = api::AlgorithmKind::kPbt;
  const Result<Json> job = build_job(study, trial_of(study), 0, {kImage});
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("under algorithm pbt trials start from checkpoints"));
  EXPECT_THAT(job.error().message, HasSubstr("give spec.trial.checkpoints a claim or a size"));
  study.spec.trial.checkpoints.emplace().claim = "disk";
  EXPECT_TRUE(build_job(study, trial_of(study), 0, {kImage}).ok());
}

TEST(JobBuilder, ValuesThatNoEnvironmentCanCarryAreRefused) {
  const api::Study study = load("template");
  api::Trial trial = trial_of(study);
  trial.spec.parameters.set("prompt", std::string("a\0b", 3));
  const Result<Json> job = build_job(study, trial, 0, {kImage});
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("parameter prompt holds a NUL"));
}

TEST(JobBuilder, TheBuiltInTrainerNeedsAnImage) {
  const api::Study study = load("trainer");
  const Result<Json> job = build_job(study, trial_of(study), 0, {});
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().message, HasSubstr("--trainer-image"));
}

}  // namespace
}  // namespace fettle::kubernetes
