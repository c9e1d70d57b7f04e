// Holds judge_exit to the table of tests/plan/endings/endings.yaml, which people can read.
#include "core/trial/endings.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <set>
#include <vector>

#include "api/fields/enum_names.h"
#include "base/test_paths.h"

namespace fettle::core {
namespace {

const std::map<std::string, EndCondition>& conditions() {
  using enum EndCondition;
  static const std::map<std::string, EndCondition> kNames = {
      {"StopAsked", kStopAsked},
      {"RunnerInterrupted", kRunnerInterrupted},
      {"RunnerDied", kRunnerDied},
      {"PodDisrupted", kPodDisrupted},
      {"PodDeleted", kPodDeleted},
      {"PodRefused", kPodRefused},
      {"PodNeverBegan", kPodNeverBegan},
      {"NodeLost", kNodeLost},
      {"ResultLost", kResultLost},
      {"GuardKilled", kGuardKilled},
      {"OverTimeLimit", kOverTimeLimit},
      {"OverMemoryLimit", kOverMemoryLimit},
      {"MachineOutOfMemory", kMachineOutOfMemory},
      {"CannotStart", kCannotStart},
      {"CannotStartNow", kCannotStartNow},
  };
  return kNames;
}

std::vector<Host> hosts_of(const YAML::Node& row) {
  const auto host = row["host"].as<std::string>("");
  if (host == "container") return {Host::kContainer};
  if (host == "process") return {Host::kProcess};
  EXPECT_EQ(host, "") << row;
  return {Host::kContainer, Host::kProcess};
}

TEST(Endings, Table) {
  const YAML::Node rows = YAML::LoadFile(source_path("tests/plan/endings/endings.yaml"));
  ASSERT_GT(rows.size(), 30u);
  std::set<std::string> used;
  for (const YAML::Node& row : rows) {
    for (const Host host : hosts_of(row)) {
      Exit exit{.host = host};
      if (row["exit"]) exit.code = row["exit"].as<int>();
      if (row["signal"]) exit.signal = row["signal"].as<int>();
      if (row["condition"]) {
        used.insert(row["condition"].as<std::string>());
        exit.condition = conditions().at(row["condition"].as<std::string>());
      }
      exit.has_peers = row["peers"].as<bool>(false);
      exit.final_result = row["final"].as<bool>(false);
      const JudgedExit judged = judge_exit(exit);
      EXPECT_EQ(api::to_string(judged.outcome), row["outcome"].as<std::string>()) << row;
      EXPECT_EQ(judged.reason, row["reason"].as<std::string>("")) << row;
    }
  }
  EXPECT_EQ(used.size(), conditions().size()) << "a condition has no row";
}

}  // namespace
}  // namespace fettle::core
