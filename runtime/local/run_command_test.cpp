// What a trial's process is given, and what a local run refuses before anything starts.
#include "runtime/local/run_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/local/supervisor_wire.h"

namespace fettle::local {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

api::Study study_with(const std::string& pod_template) {
  api::Study study;
  study.metadata.name = "s";
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
  EXPECT_THAT(command->environment, Contains(Pair("A", "$(B)-0.001")));
  EXPECT_THAT(command->environment, Contains(Pair("EMPTY", "")));
  EXPECT_THAT(command->environment,
              Contains(Pair("FETTLE_TRIAL", "/data/.fettle/s/s-0/r3/trial.json")));
  EXPECT_THAT(command->environment, Contains(Pair("FETTLE_POD_UID", "uid-r3")));
  EXPECT_THAT(command->environment, Contains(Pair("FETTLE_UNTIL_STEP", "3")));
}

TEST(RunCommand, TheContainerNamedTrainerIsTheTrial) {
  const api::Study study = study_with(R"({"spec": {"containers": [
      {"name": "trainer", "command": ["right"]}]}})");
  EXPECT_THAT(make_command(study, trial_with({}), 1, kLayout, "")->arguments, ElementsAre("right"));
}

TEST(RunCommand, TheBuiltInTrainer) {
  api::Study study;
  study.spec.trial.trainer = api::TrainerConfig{};
  study.spec.trial.trainer->training.threads = 2;
  EXPECT_THAT(make_command(study, trial_with({}), 1, kLayout, "/bin/trainer")->arguments,
              ElementsAre("/bin/trainer"));
  EXPECT_EQ(cores_per_trial(study), 2);
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
  for (const auto& c : cases) EXPECT_EQ(cores_per_trial(study_of(c.container)), c.cores);
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
}

TEST(RunCommand, ANulCharacterIsRefused) {
  const api::Study study = study_of(R"({"command": ["a"]})");
  const auto command = make_command(
      study, trial_with(Json::object({{"x", std::string("a\0b", 3)}})), 1, kLayout, "");
  EXPECT_THAT(command.error().message, HasSubstr("FETTLE_PARAM_X holds a NUL character"));
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
  // What goes to files and over the wire has the name alone.
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

TEST(SupervisorWire, CommandsComeBackAsTheyWere) {
  SupervisorCommand start;
  start.kind = SupervisorCommand::Kind::kStart;
  start.trial = "s-0";
  start.run = 3;
  start.pod_uid = "uid-r3";
  start.run_directory = "/data/s-0/r3";
  start.arguments = {"sh", "-c", "echo \"$(x)\"\n"};
  start.environment = {{"A", "b=c"}, {"ODD", "'\"\n\\"}};
  start.workers = {{{"RANK", "0"}}, {{"RANK", "1"}, {"B", ""}}};
  start.least_workers = 2;
  start.worker_count = 2;
  start.open = true;
  start.directory = "/tmp";
  start.memory_limit = 1 << 20;
  start.grace_ms = 500;
  start.pass_environment = {"HF_TOKEN"};
  start.metrics.filter = {"(\\w+)=(\\S+)", "epoch (\\d+)", 0};
  start.metrics.rungs = {1, 3, 9};
  start.metrics.objectives.emplace_back().metric = "loss";
  start.metrics.objectives.emplace_back().metric = "accuracy";
  start.metrics.objectives[1].direction = api::Direction::kMaximize;
  start.metrics.constraints = {"memory"};
  const std::string line = write_command(start);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const SupervisorCommand back = read_command(line).value();
  EXPECT_EQ(back.arguments, start.arguments);
  EXPECT_EQ(back.environment, start.environment);
  EXPECT_EQ(back.workers, start.workers);
  EXPECT_EQ(back.least_workers, 2);
  EXPECT_EQ(back.worker_count, 2);
  EXPECT_TRUE(back.open);
  EXPECT_EQ(back.pass_environment, start.pass_environment);
  EXPECT_EQ(back.metrics.filter, start.metrics.filter);
  EXPECT_EQ(back.metrics.rungs, start.metrics.rungs);
  EXPECT_EQ(back.metrics.objectives, start.metrics.objectives);
  EXPECT_EQ(back.metrics.constraints, start.metrics.constraints);
  EXPECT_EQ(write_command(back), line);
}

TEST(SupervisorWire, EventsComeBackAsTheyWere) {
  SupervisorEvent exited;
  exited.kind = SupervisorEvent::Kind::kExited;
  exited.trial = "s-0";
  exited.run = 1;
  exited.outcome = RunOutcome{};
  exited.outcome->outcome = api::Outcome::kOutOfMemory;
  exited.outcome->message = "used 3 MiB\nof memory";
  exited.outcome->signal = 9;
  exited.outcome->report = api::Report{};
  exited.outcome->report->step = 4;
  exited.outcome->report->metrics["loss"] = 0.5;
  const SupervisorEvent back = read_event(write_event(exited)).value();
  EXPECT_EQ(write_event(back), write_event(exited));
  EXPECT_EQ(back.outcome->signal, 9);
  EXPECT_EQ(back.outcome->report->metrics.at("loss"), 0.5);
}

TEST(SupervisorWire, WhatCannotBeReadIsAnError) {
  EXPECT_FALSE(read_command("{\"command\": \"dance\"}").ok());
  EXPECT_FALSE(read_command("{\"command\": \"start\"}").ok());
  EXPECT_FALSE(read_event("nonsense").ok());
  EXPECT_FALSE(read_outcome(Json::object({{"outcome", "Fine"}})).ok());
}

}  // namespace
}  // namespace fettle::local
