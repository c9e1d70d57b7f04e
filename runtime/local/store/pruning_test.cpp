// The files of finished Studies that pruning removes, and those that it never does.
#include "runtime/local/store/pruning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace fettle::local {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class Pruning : public testing::Test {
 protected:
  Pruning() {
    std::string name = testing::TempDir() + "fettle-pruning-XXXXXX";
    layout_ = make_layout(::mkdtemp(name.data()), "digits");
  }
  ~Pruning() override { fs::remove_all(layout_.root); }

  // A log of 100 bytes that was written `age` hours ago.
  std::string run(const std::string& trial, std::int64_t number, int age,
                  const std::string& study = "") {
    const std::string below = study.empty() ? layout_.study_directory() : study;
    const std::string directory = below + '/' + trial + "/r" + std::to_string(number);
    fs::create_directories(directory);
    std::ofstream(directory + "/output.log") << std::string(100, 'x');
    fs::last_write_time(directory + "/output.log",
                        fs::file_time_type::clock::now() - std::chrono::hours(age));
    return directory;
  }

  Layout layout_;
};

TEST_F(Pruning, TakesTheOldestUntilTheRestIsWithinTheBound) {
  const std::string old = run("digits-0", 0, 9);
  const std::string newer = run("digits-0", 1, 3);
  const std::string oldest = run("digits-1", 0, 10);
  const std::string newest = run("digits-2", 0, 1);
  const Pruned pruned = prune_runs({layout_.study_directory()}, 299);
  EXPECT_EQ(pruned.runs, 2);
  EXPECT_EQ(pruned.bytes, 200);
  EXPECT_FALSE(fs::exists(oldest));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(newer));
  EXPECT_TRUE(fs::exists(newest));
}

TEST_F(Pruning, TakesNothingWithinTheBound) {
  run("digits-0", 0, 9);
  EXPECT_EQ(prune_runs({layout_.study_directory()}, 100).runs, 0);
}

TEST_F(Pruning, LeavesWhatIsToBeKeptAndCheckpoints) {
  const std::string best = run("digits-0", 0, 9);
  const std::string other = run("digits-1", 0, 1);
  const std::string checkpoint = run("checkpoints/uid", 0, 99);
  EXPECT_EQ(prune_runs({layout_.study_directory()}, 0, {best}).runs, 1);
  EXPECT_TRUE(fs::exists(best));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_TRUE(fs::exists(checkpoint));
}

TEST_F(Pruning, KnowsWhatWasMovedAsideUnderTheName) {
  const std::string first = layout_.root + "/.old/digits-1/digits";
  const std::string second = layout_.root + "/.old/digits-2/digits";
  const std::string other = layout_.root + "/.old/digits-pilot-1/digits-pilot";
  for (const std::string& study : {first, second, other}) run("digits-0", 0, 1, study);
  EXPECT_THAT(directories_aside(layout_), ElementsAre(first, second));
  EXPECT_EQ(prune_runs(directories_aside(layout_), 100).runs, 1);
}

TEST_F(Pruning, DoesNotMindThatThereIsNothing) {
  EXPECT_TRUE(directories_aside(layout_).empty());
  EXPECT_EQ(prune_runs({layout_.study_directory()}, 0).runs, 0);
}

}  // namespace
}  // namespace fettle::local
