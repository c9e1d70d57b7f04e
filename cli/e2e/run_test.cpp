// fettle run from a study file to a result, and the commands that show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

// The only child of a process, as text.
std::string child_of(pid_t pid) {
  const std::string task = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid);
  std::ifstream in(task + "/children");
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kValueIsX = "echo \"{\\\"value\\\": $FETTLE_PARAM_X}\"";

TEST(Run, EndsWithTheBestConfiguration) {
  Workshop shop;
  StudyText text;
  text.script = kValueIsX;
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("digits-0 started: x="));
  EXPECT_THAT(done.out, HasSubstr("digits-3 completed: value "));
  EXPECT_THAT(done.out, HasSubstr("digits succeeded"));
  EXPECT_THAT(done.out, HasSubstr("4 trials: 4 completed, 0 stopped early, 0 failed"));
  EXPECT_THAT(done.out, HasSubstr("ready to paste:\n\n  parameters:\n    x: 0."));
  EXPECT_THAT(done.out, HasSubstr("Where the time went"));
  EXPECT_EQ(shop.trial_processes().size(), 0U);
}

TEST(Run, SpeaksJson) {
  Workshop shop;
  StudyText text;
  text.script = kValueIsX;
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml", "--output", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  std::istringstream in(done.out);
  int completed = 0;
  for (std::string line; std::getline(in, line);) {
    const auto parsed = parse_json(line);
    ASSERT_TRUE(parsed.ok()) << line;
    const Json* event = parsed->find("event");
    if (event != nullptr && *event == Json("trialCompleted")) ++completed;
  }
  EXPECT_EQ(completed, 4);
  const Json result = result_of(done);
  EXPECT_EQ(*result.find("state"), Json("succeeded"));
  const Json& best = *result.find("best");
  EXPECT_EQ(*best.find("objective"), *best.find("parameters")->find("x"));
}

TEST(Run, SaysOnceWhichFieldHoldsParallelismBack) {
  Workshop shop;
  StudyText text;
  text.budget = "{trials: 40, parallelism: 30, failures: 0}";
  text.resources = "{requests: {cpu: 400}}";
  text.goal = "goal: 1";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.err;
  const std::string all = done.out + done.err;
  const std::string said = "1 trial runs at once, although parallelism is 30: this machine has ";
  EXPECT_THAT(all, HasSubstr(said));
  EXPECT_THAT(all, HasSubstr("each trial takes 400 (resources.requests.cpu of its container)"));
  EXPECT_EQ(all.find(said), all.rfind(said));
}

// Each of four trials has a GPU for itself, in either Study. Trials of the first Study hold both
// GPUs until the other Study has reported that it waits.
TEST(Run, TwoStudiesShareTheGpusOfTheMachine) {
  Workshop shop;
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  StudyText text;
  text.script =
      "gpu=gpu-$$CUDA_VISIBLE_DEVICES; mkdir $$gpu || echo $$gpu >> clashes; echo x >> began; "
      "while [ ! -e go ]; do sleep 0.05; done; sleep 0.1; rmdir $$gpu; echo '{\"value\": 1}'";
  text.trial = "    gpu: {count: 1}\n";
  text.budget = "{trials: 4, parallelism: 2, failures: 0}";
  text.name = "one";
  const pid_t first = shop.run_until_begun(text, 2);
  text.name = "two";
  shop.write("two.yaml", text.yaml());
  const pid_t second = shop.start({"run", "two.yaml"});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_TRUE(shop.wait_until_said(
      second, " waits: no room on this machine yet: it needs 1 GPU, and 0 of 2 are"));
  shop.write("go", "");
  for (const pid_t runner : {first, second}) {
    const Finished done = shop.finish(runner);
    EXPECT_EQ(done.code, 0) << done.out << done.err;
    EXPECT_THAT(done.out, HasSubstr("4 trials: 4 completed, 0 stopped early, 0 failed"));
    EXPECT_THAT(done.out, testing::Not(HasSubstr("isrupted")));
  }
  EXPECT_FALSE(shop.exists("clashes")) << shop.read("clashes");
}

TEST(Run, StopsAtTheGoal) {
  Workshop shop;
  StudyText text;
  text.goal = "goal: 0.5";
  text.budget = "{trials: 50, parallelism: 1}";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml", "--output", "json"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(*result_of(done).find("reason"), Json("GoalReached"));
  EXPECT_EQ(shop.trials().as_array().size(), 1U);
}

TEST(Run, OfAFinishedStudyPrintsItsResultAgain) {
  Workshop shop;
  StudyText text;
  text.script = "echo x >> ran; " + kValueIsX;
  shop.write("study.yaml", text.yaml());
  const Finished first = shop.fettle({"run", "study.yaml", "--output", "json"});
  const Finished again = shop.fettle({"run", "study.yaml", "--output", "json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(*result_of(again).find("best"), *result_of(first).find("best"));
  EXPECT_EQ(shop.count_lines("ran"), 4U);
}

TEST(Run, GoesOnWithARaisedBudget) {
  Workshop shop;
  StudyText text;
  text.script = "echo x >> ran; " + kValueIsX;
  shop.write("study.yaml", text.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  text.budget = "{trials: 6, parallelism: 2}";
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_lines("ran"), 6U);
  EXPECT_EQ(shop.count_phase("Completed"), 6U);
}

TEST(Run, RefusesAnotherEditByName) {
  Workshop shop;
  StudyText text;
  shop.write("study.yaml", text.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  text.steps = 5;
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("spec.resource.max: was 1, now 5"));
  EXPECT_THAT(done.err, HasSubstr("--fresh"));
}

TEST(Run, FreshMovesTheOldStudyAside) {
  Workshop shop;
  StudyText text;
  shop.write("study.yaml", text.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  text.steps = 5;
  shop.write("study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "study.yaml", "--fresh"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(shop.exists(".fettle/.old/digits-1/digits.db"));
  EXPECT_TRUE(shop.exists(".fettle/.old/digits-1/digits/digits-0"));
  EXPECT_EQ(shop.trials().as_array().size(), 4U);
}

TEST(Run, RefusesAParallelismThatNoFileMayHave) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  for (const char* wrong : {"2000", "0", "-1"}) {
    const Finished done = shop.fettle({"run", "study.yaml", std::string("--parallelism=") + wrong});
    EXPECT_EQ(done.code, 2) << wrong << done.out;
    EXPECT_THAT(done.err, HasSubstr(std::string("found ") + wrong));
  }
  EXPECT_EQ(shop.fettle({"run", "study.yaml", "--parallelism", "1"}).code, 0);
  EXPECT_EQ(shop.fettle({"status", "digits"}).code, 0);
}

TEST(Run, ReturnsFromASuspendedStudyAndGoesOnLater) {
  Workshop shop;
  StudyText text;
  text.script = kValueIsX;
  const std::string yaml = text.yaml();
  shop.write("study.yaml", yaml + "  suspend: true\n");
  const Finished suspended = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(suspended.code, 130) << suspended.out;
  EXPECT_THAT(suspended.err, HasSubstr("set suspend: false in study.yaml and run it again"));
  EXPECT_EQ(shop.trials().as_array().size(), 0U);
  shop.write("study.yaml", yaml + "  suspend: false\n");
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
}

TEST(Run, ATrialThatPrintsOddNamesStillEnds) {
  Workshop shop;
  StudyText text;
  text.script = "printf '%s\\n' '{\"value\": 1, \"a\\u0000b\": 2, \"checkpoint\": \"c\\u0000d\"}'";
  shop.write("study.yaml", text.yaml());
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
}

TEST(Run, AsksWhichOfSeveralStudies) {
  Workshop shop;
  StudyText one;
  StudyText two;
  two.name = "letters";
  shop.write("both.yaml", one.yaml() + "---\n" + two.yaml());
  const Finished done = shop.fettle({"run", "both.yaml"});
  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("--study: digits, letters"));
  EXPECT_EQ(shop.fettle({"run", "both.yaml", "--study", "letters"}).code, 0);
  EXPECT_EQ(shop.trials("letters").as_array().size(), 4U);
}

TEST(Run, KeepsStudiesWhereItIsTold) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  EXPECT_EQ(shop.fettle({"-C", "there", "run", "study.yaml"}).code, 0);
  EXPECT_TRUE(shop.exists("there/.fettle/digits.db"));
  EXPECT_EQ(shop.fettle({"trials", "digits", "-C", "there"}).code, 0);
}

TEST(Run, NeverListsABillionPointGrid) {
  Workshop shop;
  std::string yaml = StudyText{}.yaml();
  const auto put = [&](const std::string& from, const std::string& to) {
    yaml.replace(yaml.find(from), from.size(), to);
  };
  put("[{name: x, type: Double, min: 0, max: 1}]",
      "[{name: a, type: Integer, min: 1, max: 1000}, {name: b, type: Integer, min: 1, max: 1000}, "
      "{name: c, type: Integer, min: 1, max: 1000}]");
  put("name: random", "name: grid");
  shop.write("study.yaml", yaml);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
}

TEST(Run, HandsValuesOverAsDataNeverAsCode) {
  Workshop shop;
  StudyText text;
  text.script = "printf '%s\\n' \"$FETTLE_PARAM_X\" \"$0\" >> seen; echo '{\"value\": 1}'";
  text.budget = "{trials: 1}";
  std::string yaml = text.yaml() + "          - $(FETTLE_PARAM_X)\n";
  const std::string from = "{name: x, type: Double, min: 0, max: 1}";
  yaml.replace(yaml.find(from), from.size(),
               R"({name: x, type: Categorical, values: ["'; touch broken; $(HOME) {{}} \"\n"]})");
  shop.write("study.yaml", yaml);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  const std::string value = "'; touch broken; $(HOME) {{}} \"\n";
  EXPECT_EQ(shop.read("seen"), value + '\n' + value + '\n');
  EXPECT_FALSE(shop.exists("broken"));
}

TEST(Look, StatusTrialsAndLogsShowTheRun) {
  Workshop shop;
  StudyText text;
  text.script = "echo hello from $FETTLE_PARAM_X; " + kValueIsX;
  shop.write("study.yaml", text.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  EXPECT_THAT(shop.fettle({"status", "digits"}).out, HasSubstr("digits · succeeded"));
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr("digits · succeeded"));
  EXPECT_THAT(shop.fettle({"status", "digits", "--events"}).out, HasSubstr("TrialsDone"));
  EXPECT_THAT(shop.fettle({"trials", "digits"}).out, HasSubstr("Completed"));
  EXPECT_THAT(shop.fettle({"trials", "digits", "--output", "csv"}).out,
              testing::StartsWith("trial,index,phase,step,value,infeasible,"));
  EXPECT_THAT(shop.fettle({"logs", "digits-2"}).out, HasSubstr("hello from 0."));
  EXPECT_THAT(shop.fettle({"logs", "digits-2", "--run", "7"}).err, HasSubstr("has no run 7"));
  EXPECT_THAT(shop.fettle({"logs", "digits-9"}).err, HasSubstr("digits-9"));
}

TEST(Look, WorksWhileTheStudyRuns) {
  Workshop shop;
  StudyText text;
  text.script = kUntilGo;
  text.budget = "{trials: 2, parallelism: 2}";
  const pid_t runner = shop.run_until_begun(text, 2);
  EXPECT_TRUE(shop.wait_until([&] { return shop.count_phase("Running") == 2; }));
  EXPECT_THAT(shop.fettle({"status", "digits"}).out, HasSubstr("digits · running"));
  const pid_t follower = shop.start({"logs", "digits-0", "--follow"});
  shop.write("go", "");
  EXPECT_EQ(shop.finish(runner).code, 0);
  const Finished followed = shop.finish(follower);
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_THAT(followed.out, HasSubstr("{\"value\": 1}"));
}

// No process is left to record how the run ended.
TEST(Look, FollowingALogEndsWhenRunnerAndSupervisorAreKilled) {
  Workshop shop;
  StudyText text;
  text.script = "echo working; echo x >> began; sleep 300";
  text.budget = "{trials: 1}";
  const pid_t runner = shop.run_until_begun(text, 1);
  const pid_t follower = shop.start({"logs", "digits-0", "--follow"});
  EXPECT_TRUE(shop.wait_until_said(follower, "working\n"));
  const std::string supervisor = child_of(runner);
  ::kill(runner, SIGSTOP);  // prevents it from noticing
  ::kill(static_cast<pid_t>(std::stol(supervisor)), SIGKILL);
  shop.interrupt(runner, SIGKILL);
  const Finished followed = shop.finish(follower);
  EXPECT_EQ(followed.code, 3);
  EXPECT_THAT(followed.out, HasSubstr("working\n"));
  EXPECT_THAT(followed.err, HasSubstr("run 0 of digits-0 was cut off"));
}

TEST(Run, KeepsItsDirectoryPrivate) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  struct stat status {};
  ASSERT_EQ(::stat(shop.path(".fettle").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
}

TEST(Look, SaysThatAnotherUsersStudiesCannotBeRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  ASSERT_EQ(::chmod(shop.directory().c_str(), 0755), 0);
  shop.write("said", "");
  const std::string command = "setpriv --reuid=65534 --regid=65534 --clear-groups " +
                              program_path("fettle") + " -C " + shop.directory() + " status > " +
                              shop.path("said") + " 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_THAT(shop.read("said"), HasSubstr(".fettle cannot be read: Permission denied"));
}

TEST(Run, RefusesADirectoryOfAnotherUser) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  if (::chown(shop.path(".fettle").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can";
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--fresh"}}) {
    std::vector<std::string> arguments = {"run", "study.yaml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = shop.fettle(arguments);
    EXPECT_EQ(done.code, 2);
    EXPECT_THAT(done.err, HasSubstr(".fettle belongs to user nobody"));
  }
}

TEST(Run, DoesNotFollowALinkInPlaceOfItsLock) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  shop.write("precious", "data");
  ASSERT_EQ(::mkdir(shop.path(".fettle").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("../precious", shop.path(".fettle/digits.lock").c_str()), 0);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("digits.lock is a link"));
  EXPECT_EQ(shop.read("precious"), "data");
}

}  // namespace
}  // namespace fettle::e2e
