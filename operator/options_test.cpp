// Flags, and lines of the log.
#include "operator/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "operator/log.h"

namespace fettle::op {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::variant<Options, ParseExit> read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "fettle-operator");
  return read_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, FlagsAreRead) {
  const auto options =
      std::get<Options>(read({"--namespace", "a", "--namespace", "b", "--leader-elect=false",
                              "--metrics-port", "9", "--log-level", "error", "--log-format", "json",
                              "--trainer-image", "t:1", "--reconcile-timeout", "60"}));
  EXPECT_THAT(options.namespaces, ElementsAre("a", "b"));
  EXPECT_FALSE(options.leader_elect);
  EXPECT_EQ(options.metrics_port, 9);
  EXPECT_EQ(options.log_level, LogLevel::kError);
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.trainer_image, "t:1");
  EXPECT_EQ(options.reconcile_timeout_s, 60);
}

TEST(Options, OmittedFlagsHaveDefaults) {
  const auto options = std::get<Options>(read({}));
  EXPECT_TRUE(options.namespaces.empty());
  EXPECT_TRUE(options.leader_elect);
  EXPECT_EQ(options.lease_name, "fettle-operator");
  EXPECT_EQ(options.workers, 4);
}

TEST(Options, TimesOfTheLeaseMustFitTogether) {
  const auto options = std::get<Options>(
      read({"--lease-duration", "60", "--lease-renew", "40", "--lease-retry", "5"}));
  EXPECT_EQ(options.lease_times.lease, std::chrono::seconds(60));
  EXPECT_EQ(options.lease_times.renew, std::chrono::seconds(40));
  EXPECT_EQ(options.lease_times.retry, std::chrono::seconds(5));
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {"--lease-duration", "10"}, {"--lease-renew", "15"}, {"--lease-retry", "9"}}) {
    const auto parse_exit = std::get<ParseExit>(read(arguments));
    EXPECT_EQ(parse_exit.exit_code, 2);
    EXPECT_THAT(parse_exit.text, HasSubstr("--lease-renew"));
  }
}

TEST(Options, TheTrainersPodIsReadAndChecked) {
  const std::string path = testing::TempDir() + "/trainer-pod.json";
  ASSERT_TRUE(write_file(path, R"({"spec": {"runtimeClassName": "gvisor"}})").ok());
  EXPECT_EQ(std::get<Options>(read({"--trainer-pod", path.c_str()})).trainer_pod.dump(),
            R"({"spec":{"runtimeClassName":"gvisor"}})");
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"spec: {}", path}, {R"({"containers": []})", "unknown field containers"}}) {
    ASSERT_TRUE(write_file(path, text).ok());
    const auto parse_exit = std::get<ParseExit>(read({"--trainer-pod", path.c_str()}));
    EXPECT_EQ(parse_exit.exit_code, 2);
    EXPECT_THAT(parse_exit.text, HasSubstr(said));
  }
  EXPECT_EQ(std::get<ParseExit>(read({"--trainer-pod", "/no/such/file"})).exit_code, 2);
}

TEST(Options, HelpIsNoError) {
  const auto parse_exit = std::get<ParseExit>(read({"--help"}));
  EXPECT_EQ(parse_exit.exit_code, 0);
  EXPECT_THAT(parse_exit.text, HasSubstr("--leader-elect"));
}

TEST(Options, WrongFlagsAreNamed) {
  for (const auto& [arguments, said] :
       std::vector<std::pair<std::vector<const char*>, std::string>>{
           {{"--wrokers", "2"}, "--wrokers"},
           {{"--workers", "0"}, "--workers"},
           {{"--reconcile-timeout", "0"}, "--reconcile-timeout"},
           {{"--metrics-port", "70000"}, "--metrics-port"},
           {{"--namespace", "Team"}, "'Team' is not a name"},
           {{"--log-level", "loud"}, "loud"}}) {
    const auto parse_exit = std::get<ParseExit>(read(arguments));
    EXPECT_EQ(parse_exit.exit_code, 2);
    EXPECT_THAT(parse_exit.text, HasSubstr(said));
  }
}

TEST(Log, LinesForPeopleAndForMachines) {
  const LogFields fields = {{"study", "demo"}, {"error", "a \"b\"\nc"}};
  EXPECT_EQ(log_text(LogFormat::kText, "look again", fields),
            "look again study=\"demo\" error=\"a \\\"b\\\"\\nc\"");
  EXPECT_EQ(log_text(LogFormat::kJson, "look again", fields),
            R"("message":"look again","study":"demo","error":"a \"b\"\nc")");
}

TEST(Log, LongAndBrokenValuesAreMended) {
  const std::string value = "\xff" + std::string(10'000, 'x');
  const std::string text = log_text(LogFormat::kJson, "m", {{"k", value}});
  EXPECT_LT(text.size(), kMaxLogValue + 100);
  EXPECT_THAT(text, HasSubstr("\"?xxx"));
}

}  // namespace
}  // namespace fettle::op
