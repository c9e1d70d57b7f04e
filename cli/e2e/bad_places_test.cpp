// Bad data files and disks: the reason is printed at the end, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

constexpr int kImages = 60;
constexpr int kSide = 4;

std::string big_endian(int value) {
  return {char(value >> 24), char(value >> 16), char(value >> 8), char(value)};
}

std::string images() {
  return big_endian(0x803) + big_endian(kImages) + big_endian(kSide) + big_endian(kSide) +
         std::string(kImages * kSide * kSide, 'x');
}

std::string labels() {
  std::string text = big_endian(0x801) + big_endian(kImages);
  for (int i = 0; i < kImages; ++i) text += char(i % 2);
  return text;
}

// One trial of the built-in trainer; its hidden layer decides how large a checkpoint is.
std::string training(int units) {
  return "apiVersion: fettle.dev/v1alpha1\n"
         "kind: Study\n"
         "metadata: {name: digits}\n"
         "spec:\n"
         "  objectives: [{metric: validation_accuracy, direction: Maximize}]\n"
         "  parameters:\n"
         "  - {name: rate, type: Double, min: 0.01, max: 0.1, sets: training.learningRate}\n"
         "  resource: {unit: epoch, min: 1, max: 2}\n"
         "  budget: {trials: 1}\n"
         "  trial:\n"
         "    retries: 0\n"
         "    trainer:\n"
         "      data: {trainImages: images, trainLabels: labels}\n"
         "      model: {layers: [{type: flatten}, {type: linear, units: " +
         std::to_string(units) +
         "}, {type: linear, units: 2}]}\n"
         "      training: {globalBatch: 10}\n";
}

struct BadData {
  std::string name;
  std::string images;  // content of the file; "" = no file
  std::string said;
};

void PrintTo(const BadData& data, std::ostream* out) { *out << data.name; }

class Data : public testing::TestWithParam<BadData> {};

TEST_P(Data, FailsTheStudyAndIsExplainedAtTheEnd) {
  Workshop shop;
  shop.write("study.yaml", training(2));
  shop.write("labels", labels());
  if (!GetParam().images.empty()) shop.write("images", GetParam().images);
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  const std::size_t at = done.out.find("What failed:");
  ASSERT_NE(at, std::string::npos) << done.out;
  EXPECT_THAT(done.out.substr(at), HasSubstr(GetParam().said));
  EXPECT_THAT(done.out.substr(at), HasSubstr("/digits-0/r0/output.log"));
}

INSTANTIATE_TEST_SUITE_P(
    Files, Data,
    testing::Values(BadData{"Missing", "", "cannot open images: No such file"},
                    BadData{"CutShort", images().substr(0, 500), "images is cut short"},
                    BadData{"OfAnotherKind", labels(), "images starts with 0x00000801"},
                    BadData{"Compressed", "\x1f\x8b\x08 and no more", "damaged or cut short"}),
    [](const auto& tested) { return tested.param.name; });

// A small disk below a workshop; only root can have one.
class SmallDisk {
 public:
  SmallDisk(const Workshop& shop, const std::string& name) : path_(shop.path(name)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=400k") == 0;
  }
  ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  bool resize(const std::string& size) const {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()) == 0;
  }
  bool make_read_only() const {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(Disk, FullOfCheckpointsFailsTheTrialInWords) {
  Workshop shop;
  shop.write("study.yaml", training(20'000));
  shop.write("images", images());
  shop.write("labels", labels());
  const SmallDisk disk(shop, ".fettle/digits/checkpoints");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("No space left on device"));
}

// Returns a study of two trials at once that wait for each other, fill the store's disk, and end
// well. An outcome leaves most of the room that its run had reserved: the second trial fills that
// of the first one, so that never two of them are free, in which a third trial could begin.
std::string disk_filling_study() {
  StudyText text;
  text.script =
      "echo begun >> begun; until [ $(wc -l < begun) -ge 2 ]; do sleep 0.02; done\n"
      "first=.fettle/digits/digits-0/r0/outcome.json\n"
      "[ $FETTLE_TRIAL_NAME != digits-1 ] || until [ -e $first ]; do sleep 0.02; done\n"
      "head -c 2000000 /dev/zero >> .fettle/filler 2> /dev/null\n"
      "echo '{\"value\": 1}'";
  text.budget = "{trials: 4, parallelism: 2}";
  return text.yaml();
}

bool have_ended(const Workshop& shop) {
  return shop.wait_until([&] {
    return shop.exists(".fettle/digits/digits-0/r0/outcome.json") &&
           shop.exists(".fettle/digits/digits-1/r0/outcome.json");
  });
}

TEST(Disk, FullOfTheStoreHoldsTheStudyUntilThereIsRoom) {
  Workshop shop;
  shop.write("study.yaml", disk_filling_study());
  const SmallDisk disk(shop, ".fettle");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  const pid_t running = shop.start({"run", "study.yaml"});
  ASSERT_TRUE(have_ended(shop));
  // Longer than a failing store was tolerated earlier.
  std::this_thread::sleep_for(std::chrono::seconds(6));
  EXPECT_EQ(shop.count_lines("begun"), 2U) << "nothing new starts";
  ASSERT_TRUE(disk.resize("20m"));
  const Finished done = shop.finish(running);
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out + done.err, HasSubstr("the disk is full"));
  EXPECT_THAT(done.out + done.err, HasSubstr("there is room on the disk again"));
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
  EXPECT_EQ(shop.count_lines("begun"), 4U) << "no trial ran twice";
}

TEST(Disk, FullWhenTrialsEndKeepsTheirResultsForTheNextRun) {
  Workshop shop;
  shop.write("study.yaml", disk_filling_study());
  const SmallDisk disk(shop, ".fettle");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  const pid_t running = shop.start({"run", "study.yaml"});
  ASSERT_TRUE(have_ended(shop));
  EXPECT_EQ(shop.interrupt(running, SIGKILL).code, 128 + SIGKILL);
  ASSERT_TRUE(disk.resize("20m"));
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
  EXPECT_EQ(shop.count_lines("begun"), 4U) << "no trial ran twice";
}

// The lines of a client of `fettle suggest` that asks for and tells the trials `first` to `last`.
std::string suggest_lines(std::size_t first, std::size_t last) {
  std::string lines = R"({"study":{"space":[{"name":"x","type":"float","low":0,"high":1}],)"
                      R"("algorithm":{"name":"random"}},"ack":true})"
                      "\n";
  for (std::size_t trial = first; trial <= last; ++trial) {
    lines += R"({"ask":1})"
             "\n"
             R"({"tell":{"value":1,"id":)" +
             std::to_string(trial) + "},\"ack\":true}\n";
  }
  return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Disk, FullUnderSuggestLosesNothingThatWasAcknowledged) {
  Workshop shop;
  const SmallDisk disk(shop, ".fettle");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  const std::vector<std::string> suggest = {"suggest", "--study", "digits"};
  const Finished full = shop.fettle(suggest, suggest_lines(0, 200));
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_THAT(full.out, HasSubstr("the disk is full"));
  EXPECT_THAT(full.out, HasSubstr("start fettle suggest --study digits again"));
  const std::size_t told = count(full.out, R"({"ok":true})");
  EXPECT_EQ(shop.count_phase("Completed"), told) << "a full disk can still be read";
  ASSERT_TRUE(disk.resize("20m"));
  const Finished more = shop.fettle(suggest, suggest_lines(told, told + 4));
  EXPECT_EQ(count(more.out, R"({"ok":true})"), 5U) << more.out;
  EXPECT_EQ(shop.count_phase("Completed"), told + 5);
}

// Logs stop first, so that the remaining space is enough for the results.
TEST(Disk, FullOfLogsStillTakesTheResults) {
  Workshop shop;
  StudyText text;
  text.script = "head -c 500000 /dev/zero | tr '\\0' x; echo; echo '{\"value\": 1}'";
  text.budget = "{trials: 1}";
  shop.write("study.yaml", text.yaml());
  const SmallDisk disk(shop, ".fettle");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.count_phase("Completed"), 1U);
}

TEST(Disk, ThatIsReadOnlyIsSaidSoAndCanStillBeLookedAt) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  const SmallDisk disk(shop, ".fettle");
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount";
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  ASSERT_TRUE(disk.make_read_only());
  const Finished done = shop.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, HasSubstr("Read-only file system"));
  EXPECT_EQ(shop.count_phase("Completed"), 4U);
}

// A power cut or a full disk leaves such a copied file.
TEST(Places, AnEmptiedDatabaseIsNotBegunAnew) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  std::filesystem::resize_file(shop.path(".fettle/digits.db"), 0);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "study.yaml"}, {"status", "digits"}, {"status"}}) {
    const Finished done = shop.fettle(arguments);
    EXPECT_EQ(done.code, 3) << arguments[0] << done.out << done.err;
    EXPECT_THAT(done.err, HasSubstr("digits.db is empty although trials have run"));
    EXPECT_THAT(done.err, HasSubstr("--fresh"));
  }
  EXPECT_EQ(shop.fettle({"run", "study.yaml", "--fresh"}).code, 0);
}

TEST(Places, AStudyWithoutItsRowIsNotBegunAnew) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(shop.path(".fettle/digits.db").c_str(), &database), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(database, "DELETE FROM objects WHERE kind='Study'", nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(database);
  for (const char* command : {"run", "status"}) {
    const Finished done =
        shop.fettle({command, command == std::string("run") ? "study.yaml" : "digits"});
    EXPECT_EQ(done.code, 3) << command << done.out << done.err;
    EXPECT_THAT(done.err, HasSubstr("digits.db holds 4 trials and not their Study"));
  }
}

// Like a Ctrl-C in the first milliseconds.
TEST(Places, ADatabaseWithoutAStudyHasNotBegun) {
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(::mkdir(shop.path(".fettle").c_str(), 0700), 0);
  shop.write(".fettle/digits.db", "");
  const Finished asked = shop.fettle({"status", "digits"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, HasSubstr("study digits has not begun: "));
  EXPECT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
}

// Runs as an ordinary user: no limit holds for root. No other test uses this user, whose processes
// count.
TEST(Places, ALimitOnProcessesIsASentence) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Workshop shop;
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(::chown(shop.directory().c_str(), 64321, 64321), 0);
  for (int most = 1; most <= 4; ++most) {
    const std::string command = "cd " + shop.directory() +
                                " && setpriv --reuid=64321 --regid=64321 --clear-groups prlimit " +
                                "--nproc=" + std::to_string(most) + " " + program_path("fettle") +
                                " run study.yaml > said 2>&1";
    shop.write("said", "");
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status)) << most;
    EXPECT_EQ(WEXITSTATUS(status), 3) << most << ": " << shop.read("said");
    EXPECT_THAT(shop.read("said"), HasSubstr("the limit on processes")) << most;
    EXPECT_THAT(shop.read("said"), HasSubstr("ulimit -u")) << most;
  }
}

}  // namespace
}  // namespace fettle::e2e
