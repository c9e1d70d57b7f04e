// Notes on trials: whose they are, and that a log is cut and cleaned.
#include "cli/report/trial_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Has logs and nothing else.
class FakeLogs final : public StudySource {
 public:
  std::string place() const override { return "nowhere"; }
  Result<std::vector<std::string>> names() override { return std::vector<std::string>{}; }
  Result<std::string> newest() override { return absent(); }
  Result<SeenStudy> read(const std::string&, Detail) override { return absent(); }
  Status print_log(const std::string& trial, std::optional<std::int64_t>, bool follow,
                   const LogPrinter& print) override {
    EXPECT_FALSE(follow);
    const auto found = logs.find(trial);
    if (found == logs.end()) return absent();
    for (const std::string& piece : found->second) print(piece);
    return success();
  }
  Status follow_log(const std::string&, const LogPrinter&, std::stop_token) override {
    return absent();
  }
  Status scale(const std::string&, std::int64_t) override { return absent(); }
  Result<std::string> stop(const std::string&, bool) override { return absent(); }
  Status remove(const std::string&) override { return absent(); }

  std::map<std::string, std::vector<std::string>> logs;

 private:
  static Error absent() { return Error{ErrorCode::kNotFound, "its log was removed"}; }
};

SeenStudy seen_in_the_middle() {
  return {view_in_the_middle(),
          [](const std::string& trial, std::int64_t run) {
            return trial + "." + std::to_string(run) + ".log";
          },
          kStartMs};
}

TEST(TrialNotes, AreOfTheBestThenOfFailures) {
  EXPECT_THAT(trials_of_interest(view_in_the_middle()), ElementsAre("digits-0", "digits-2"));
}

TEST(TrialNotes, AreOfOneTrialForEachCauseOfFailure) {
  RunView view = view_in_the_middle();
  for (std::int64_t i = 0; i < 50; ++i) {
    api::Trial failed = **std::ranges::find_if(view.trials, [](const api::TrialPtr& trial) {
      return trial->status.phase == api::TrialPhase::kFailed;
    });
    failed.metadata.name = "other-" + std::to_string(i);
    view.trials.push_back(std::make_shared<const api::Trial>(failed));
  }
  EXPECT_THAT(trials_of_interest(view), ElementsAre("digits-0", "digits-2"));
}

TEST(TrialNotes, SayWhyAndShowTheLog) {
  FakeLogs source;
  source.logs["digits-0"] = {"\x1b[31mred\x1b[0m\n", "\x1b]0;title\x07", "a \u202e b\n"};
  const Json notes = trial_notes(source, seen_in_the_middle(), Logs::kEnds);
  const Json& best = *notes.find("digits-0");
  EXPECT_EQ(*best.find("log"), Json("red\na ? b\n"));
  EXPECT_EQ(*best.find("where"), Json("digits-0.0.log"));
  EXPECT_THAT(best.find("why")->as_string(), HasSubstr("chosen    by "));
  EXPECT_EQ(best.find("missing"), nullptr);
  const Json& failed = *notes.find("digits-2");
  EXPECT_EQ(*failed.find("missing"), Json("its log was removed"));
  EXPECT_EQ(failed.find("log"), nullptr);
}

TEST(TrialNotes, LeaveLogsOut) {
  FakeLogs source;
  source.logs["digits-0"] = {"password: 1234\n"};
  const Json notes = trial_notes(source, seen_in_the_middle(), Logs::kNone);
  const Json& best = *notes.find("digits-0");
  EXPECT_NE(best.find("why"), nullptr);
  for (const char* key : {"log", "where", "missing"}) EXPECT_EQ(best.find(key), nullptr) << key;
}

TEST(TrialNotes, KeepTheLastWholeLines) {
  FakeLogs source;
  for (int i = 0; i < 20000; ++i) source.logs["digits-0"].push_back(std::to_string(i) + " é\n");
  const Json notes = trial_notes(source, seen_in_the_middle(), Logs::kEnds);
  const std::string log = notes.find("digits-0")->find("log")->as_string();
  EXPECT_LE(log.size(), kLogTailBytes);
  EXPECT_GT(log.size(), kLogTailBytes / 2);
  EXPECT_THAT(log, StartsWith("1"));  // the beginning of a line
  EXPECT_THAT(log, EndsWith("19999 é\n"));
  EXPECT_THAT(log, Not(HasSubstr("?")));
}

}  // namespace
}  // namespace fettle::cli
