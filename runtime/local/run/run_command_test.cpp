// The command and environment of a trial's process, and the requests that a local run refuses
// before anything starts.
#include "runtime/local/run/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/local/process/environment.h"

namespace fettle::local {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;

api::Study study_with(const std::string& pod_template) {
  api::Study study;
  study.metadata.name = "s";
  study.metadata.uid = "study";
  study.spec.trial.pod_template = parse_json(pod_template).value();
  return study;
}

api::Study study_of(const std::string& container) {
  return study_with("{\"spec\": {\"containers\": [" + container + "]}}");
}

api::Trial trial_with(Json parameters) {
  api::Trial trial;
  trial.metadata.name = "s-0";
  trial.metadata.uid = "uid";
  trial.spec.until_step = 3;
  trial.spec.parameters = std::move(parameters);
  return trial;
}

const Layout kLayout = {"/data/.fettle", "s"};

TEST(RunCommand, CommandArgumentsAndEnvironmentAreExpandedInOrder) {
  const api::Study study = study_of(R"json({"name": "a", "workingDir": "/data",
      "command": ["python3", "train.py"], "args": ["--lr=$(FETTLE_PARAM_LEARNING_RATE)", "$(B)"],
      "env": [{"name": "A", "value": "$(B)-$(FETTLE_PARAM_LEARNING_RATE)"},
              {"name": "B", "value": "<$(A)>"}, {"name": "EMPTY"}],
      "resources": {"limits": {"memory": "2Gi"}}})json");
  const auto command =
      make_command(study, trial_with(Json::object({{"learning-rate", 0.001}})), 3, kLayout, "");
  ASSERT_TRUE(command.ok()) << command.error().message;
  EXPECT_THAT(command->arguments, ElementsAre("python3", "train.py", "--lr=0.001", "<$(B)-0.001>"));
  EXPECT_EQ(command->directory, "/data");
  EXPECT_EQ(command->memory_limit, std::int64_t{2} << 30);
  EXPECT_THAT(command->environment, Contains(FieldsAre("A", "$(B)-0.001")));
  EXPECT_THAT(command->environment, Contains(FieldsAre("EMPTY", "")));
  EXPECT_THAT(command->environment,
              Contains(FieldsAre("FETTLE_TRIAL", "/data/.fettle/s/s-0/r3/trial.json")));
  EXPECT_THAT(command->environment, Contains(FieldsAre("FETTLE_POD_UID", "uid-r3")));
  EXPECT_THAT(command->environment, Contains(FieldsAre("FETTLE_UNTIL_STEP", "3")));
  EXPECT_THAT(command->environment,
              Contains(FieldsAre("FETTLE_CHECKPOINTS", "/data/.fettle/s/checkpoints/study/s-0")));
}

TEST(RunCommand, TheContainerNamedTrainerIsTheTrial) {
  const api::Study study = study_with(R"({"spec": {"containers": [
      {"name": "trainer", "command": ["right"]}]}})");
  EXPECT_THAT(make_command(study, trial_with({}), 1, kLayout, "")->arguments, ElementsAre("right"));
}

TEST(RunCommand, TheBuiltInTrainer) {
  api::Study study;
  api::TrainerConfig config;
  config.data.train_images = "images";
  config.data.train_labels = "labels";
  config.model.layers.resize(1);
  config.model.layers[0].type = api::LayerType::kLinear;
  config.model.layers[0].units = 4;
  config.training.threads = 2;
  study.spec.trial.trainer = config;
  EXPECT_THAT(make_command(study, trial_with({}), 1, kLayout, "/bin/trainer")->arguments,
              ElementsAre("/bin/trainer"));
  EXPECT_EQ(cores_per_worker(study), 2);
}

TEST(RunCommand, Cores) {
  const struct {
    const char* container;
    double cores;
  } cases[] = {
      {R"({"command": ["x"]})", 1},
      {R"({"command": ["x"], "resources": {"requests": {"cpu": "250m"}}})", 0.25},
      {R"({"command": ["x"], "resources": {"requests": {"cpu": 2}}})", 2},
      {R"({"command": ["x"], "resources": {"limits": {"cpu": "3"}}})", 3},
      {R"({"command": ["x"], "resources": {"requests": {"cpu": "0"}}})", 0.001},
  };
  for (const auto& c : cases) EXPECT_EQ(cores_per_worker(study_of(c.container)), c.cores);
}

TEST(RunCommand, WhatALocalRunCannotDoIsRefusedInWords) {
  const struct {
    const char* pod_template;
    const char* said;
  } cases[] = {
      {R"({"spec": {"containers": [{"image": "me/train"}]}})",
       "needs the command to run; found only image me/train"},
      {R"({"spec": {"containers": []}})", "expected spec.containers with one container"},
      {R"({"spec": {"containers": [{"command": ["a"]}, {"command": ["b"]}]}})",
       "leave out the other containers"},
      {R"({"spec": {"initContainers": [{}], "containers": [{"command": ["a"]}]}})",
       "leave out the other containers"},
      {R"({"spec": {"volumes": [{}], "containers": [{"command": ["a"]}]}})", "mounts nothing"},
      {R"({"spec": {"containers": [{"command": ["a"], "volumeMounts": [{}]}]}})",
       "volumeMounts: a local run mounts nothing"},
      {R"({"spec": {"containers": [{"command": ["a"], "envFrom": [{}]}]}})", "no ConfigMaps"},
      {R"({"spec": {"containers": [{"command": ["a"], "env": [{"name": "K", "valueFrom": {}}]}]}})",
       "env.K.valueFrom"},
      {R"({"spec": {"containers": [{"command": ["a"], "env": [{"name": "K", "value": 1}]}]}})",
       "env.K.value: expected a string, found 1 (quote it)"},
      {R"({"spec": {"containers": [{"command": ["a", 1]}]}})", "expected a list of strings"},
  };
  for (const auto& c : cases) {
    const Status status = check_study(study_with(c.pod_template));
    ASSERT_FALSE(status.ok()) << c.said;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(status.error().message, HasSubstr(c.said));
  }
  api::Study unmatched = study_of(R"({"command": ["a"]})");
  unmatched.spec.trial.metrics = api::MetricsFilter{"loss=(.*)"};
  EXPECT_THAT(check_study(unmatched).error().message,
              HasSubstr("spec.trial.metrics.regex: the regular expression needs two groups"));
  api::Study shared = study_of(R"({"command": ["a"]})");
  shared.spec.trial.gpu = api::Gpu{{}, 0.5, {}};
  EXPECT_THAT(check_study(shared).error().message, HasSubstr("cannot divide a GPU"));
  shared.spec.trial.gpu = api::Gpu{1, {}, {}, "H100"};
  EXPECT_THAT(check_study(shared).error().message, HasSubstr("takes the GPUs of this machine"));
}

TEST(RunCommand, ANulCharacterIsRefused) {
  const api::Study study = study_of(R"({"command": ["a"]})");
  const auto command = make_command(
      study, trial_with(Json::object({{"x", std::string("a\0b", 3)}})), 1, kLayout, "");
  EXPECT_THAT(command.error().message, HasSubstr("parameter x holds a NUL character"));
  const api::Study named = study_of(R"({"command": ["a"], "env": [{"name": "A\u0000B"}]})");
  const Status status = check_study(named);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("expected entries with a name, found"));
}

TEST(RunCommand, OnlyAKnownPartOfTheEnvironmentIsInherited) {
  ::setenv("FETTLE_SECRET_OF_THE_SHELL", "x", 1);
  ::setenv("LC_FETTLE", "y", 1);
  ::setenv("FETTLE_DATA_CACHE", "/data", 1);
  ::setenv("FETTLE_TENSORBOARD", "/scalars", 1);
  const std::vector<std::string> inherited = inherited_environment({});
  EXPECT_THAT(inherited, Contains("LC_FETTLE=y"));
  EXPECT_THAT(inherited, Contains("FETTLE_DATA_CACHE=/data"));
  EXPECT_THAT(inherited, Contains("FETTLE_TENSORBOARD=/scalars"));
  EXPECT_THAT(inherited, testing::Not(Contains("FETTLE_SECRET_OF_THE_SHELL=x")));
}

TEST(RunCommand, WhatAMachineNeedsForItsNetworkAndHardwareIsInherited) {
  for (const char* name :
       {"HTTP_PROXY", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "XLA_FLAGS",
        "NCCL_SOCKET_IFNAME", "OMP_PROC_BIND"}) {
    ::setenv(name, "there", 1);
    EXPECT_THAT(inherited_environment({}), Contains(std::string(name) + "=there"));
    ::unsetenv(name);
  }
}

TEST(RunCommand, AStudyAsksForFurtherVariablesByName) {
  api::Study study = study_of(R"({"command": ["a"]})");
  study.spec.trial.pass_environment = {"FETTLE_TEST_TOKEN"};
  ::unsetenv("FETTLE_TEST_TOKEN");
  EXPECT_THAT(
      check_study(study).error().message,
      HasSubstr("spec.trial.passEnvironment: FETTLE_TEST_TOKEN is not set here; export it"));
  ::setenv("FETTLE_TEST_TOKEN", "secret", 1);
  EXPECT_TRUE(check_study(study).ok());
  EXPECT_THAT(inherited_environment({}), testing::Not(Contains("FETTLE_TEST_TOKEN=secret")));
  EXPECT_THAT(inherited_environment({"FETTLE_TEST_TOKEN"}), Contains("FETTLE_TEST_TOKEN=secret"));
  // Only the name goes to files and over the wire.
  const auto command = make_command(study, trial_with({}), 0, kLayout, "");
  for (const auto& [name, value] : command->environment) EXPECT_NE(value, "secret") << name;
}

TEST(RunCommand, PythonDoesNotHoldItsOutputBackUnlessTheStudySaysSo) {
  const auto unbuffered = [](const api::Study& study) {
    const auto command = make_command(study, trial_with({}), 0, kLayout, "");
    for (const auto& [name, value] : command->environment) {
      if (name == "PYTHONUNBUFFERED") return value;
    }
    return std::string("left out");
  };
  EXPECT_EQ(unbuffered(study_of(R"({"command": ["a"]})")), "1");
  EXPECT_EQ(unbuffered(study_of(
                R"({"command": ["a"], "env": [{"name": "PYTHONUNBUFFERED", "value": ""}]})")),
            "");
  api::Study passes = study_of(R"({"command": ["a"]})");
  ::setenv("PYTHONUNBUFFERED", "x", 1);
  passes.spec.trial.pass_environment = {"PYTHONUNBUFFERED"};
  EXPECT_EQ(unbuffered(passes), "left out");
  ::unsetenv("PYTHONUNBUFFERED");
}

}  // namespace
}  // namespace fettle::local
