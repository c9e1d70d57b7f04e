// Messages come back unchanged, and anything else is refused.
#include "runtime/local/process/supervisor_wire.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

TEST(SupervisorWire, CommandsComeBackAsTheyWere) {
  SupervisorCommand start;
  start.kind = SupervisorCommand::Kind::kStart;
  start.trial = "s-0";
  start.run = 3;
  start.pod_uid = "uid-r3";
  start.worker = 2;
  start.slots = 4;
  start.worker_log = "/data/workers/2.log";
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
  EXPECT_EQ(back.worker, 2);
  EXPECT_EQ(back.slots, 4);
  EXPECT_EQ(back.worker_log, start.worker_log);
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

// An outcome of another version: one field is new, and one is gone.
TEST(SupervisorWire, OutcomesOfOtherVersionsAreRead) {
  const auto document = parse_json(R"({"outcome": "Failed", "message": "exit code 3", "exitCode": 3,
                                       "startedMs": 5, "mood": "bad"})");
  const Result<RunOutcome> read = read_outcome(*document);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->exit_code, 3);
  EXPECT_EQ(read->started_ms, 5);
  EXPECT_EQ(read->ended_ms, 0);
  EXPECT_FALSE(read->report);
}

}  // namespace
}  // namespace fettle::local
