// The store keeps what it acknowledged, refuses stale writes, and names the faults of its file.
#include "runtime/local/store/sqlite_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "runtime/local/testing/store_test.h"

namespace {

int syncs = 0;  // calls that sync files to the disk, including SQLite's

}  // namespace

extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace fettle::local {
namespace {

using testing::HasSubstr;

using SqliteStoreTest = StoreTest;
using Mode = SqliteStore::Mode;

TEST_F(SqliteStoreTest, WhatCouldNotBeReadBackIsRefused) {
  api::Study wrong = study();
  wrong.spec.budget.parallelism = 1'000'000;
  const auto refused = open()->create_study(wrong);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.budget.parallelism"));
  const auto store = open();
  ASSERT_TRUE(store->create_study(study()).ok());
  api::Trial created = store->create_trial(trial(0)).value();
  created.status.report.emplace().checkpoint = std::string("a\0b", 3);
  EXPECT_FALSE(store->update_trial_status(created).ok());
  EXPECT_EQ(open()->list_trials({"", "s"})->size(), 1U);
}

TEST_F(SqliteStoreTest, OnlyCreatesAreSyncedToTheDisk) {
  const auto store = open();
  ASSERT_TRUE(store->create_study(study()).ok());
  const int before = syncs;
  api::Trial created = store->create_trial(trial(0)).value();
  EXPECT_GT(syncs, before);
  const int after = syncs;
  created.status.phase = api::TrialPhase::kRunning;
  ASSERT_TRUE(store->update_trial_status(created).ok());
  EXPECT_EQ(syncs, after);
}

TEST_F(SqliteStoreTest, NewObjectsAreStampedFromTheClockItIsGiven) {
  struct FixedClock final : control::Clock {
    std::int64_t now_ms() override { return 1'700'000'000'000; }
  };
  const auto store =
      SqliteStore::open(path_, Mode::kReadWrite, std::make_shared<FixedClock>()).value();
  EXPECT_EQ(store->create_study(study())->metadata.created_ms, 1'700'000'000'000);
}

TEST_F(SqliteStoreTest, WhatWasAcknowledgedIsThereAfterReopening) {
  api::Study written_study;
  api::Trial written;
  {
    const auto store = open();
    written_study = store->create_study(study()).value();
    for (const std::int64_t index : {10, 9, 2}) (void)store->create_trial(trial(index)).value();
    written = *store->get_trial({"", "s-2"}).value();
    written.status.phase = api::TrialPhase::kRunning;
    written.status.facts.push_back({1, api::FactKind::kRung, 3, {0.5, std::nullopt}, false, 7});
    written = store->update_trial_status(written).value();
  }
  const auto store = open();
  EXPECT_EQ(store->get_study({"", "s"}).value(), written_study);
  EXPECT_EQ(*store->get_trial({"", "s-2"}).value(), written);
  std::vector<std::int64_t> indices;
  const std::vector<api::TrialPtr> listed = store->list_trials({"", "s"}).value();
  for (const api::TrialPtr& one : listed) indices.push_back(one->spec.index);
  EXPECT_EQ(indices, (std::vector<std::int64_t>{2, 9, 10}));
}

TEST_F(SqliteStoreTest, AStudyIsKeptWhateverItsTimeToLive) {
  const auto store = open();
  api::Study created = study();
  created.spec.ttl_after_finished = 0;
  const Result<api::Study> stored = store->create_study(created);
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(store->delete_study(*stored).ok());
  EXPECT_TRUE(store->get_study({stored->metadata.ns, "s"}).ok());
}

TEST_F(SqliteStoreTest, CreatedObjectsGetAnIdentity) {
  const auto store = open();
  const api::Study a = store->create_study(study()).value();
  const api::Trial b = store->create_trial(trial(0)).value();
  EXPECT_EQ(a.metadata.uid.size(), 36u);
  EXPECT_NE(a.metadata.uid, b.metadata.uid);
  EXPECT_EQ(a.metadata.generation, 1);
  EXPECT_GT(a.metadata.created_ms, 1'600'000'000'000);
  EXPECT_EQ(store->create_trial(trial(0)).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(store->get_trial({"", "s-7"}).error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteStoreTest, StaleWritesConflict) {
  const auto store = open();
  const api::Trial first = store->create_trial(trial(0)).value();
  api::Trial next = first;
  next.status.phase = api::TrialPhase::kRunning;
  EXPECT_TRUE(store->update_trial_status(next).ok());
  next.spec.until_step = 9;
  EXPECT_EQ(store->update_trial_spec(next).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->get_trial({"", "s-0"}).value()->spec.until_step, 1);
}

TEST_F(SqliteStoreTest, SpecAndStatusAreWrittenApart) {
  const auto store = open();
  api::Trial both = store->create_trial(trial(0)).value();
  both.spec.until_step = 9;
  both.status.phase = api::TrialPhase::kRunning;
  const api::Trial after = store->update_trial_spec(both).value();
  EXPECT_EQ(after.spec.until_step, 9);
  EXPECT_EQ(after.status.phase, api::TrialPhase::kPending);
  EXPECT_EQ(after.metadata.generation, 2);
  both.metadata = after.metadata;
  both.spec.until_step = 27;
  const api::Trial last = store->update_trial_status(both).value();
  EXPECT_EQ(last.spec.until_step, 9);
  EXPECT_EQ(last.status.phase, api::TrialPhase::kRunning);
  EXPECT_EQ(last.metadata.generation, 2);
}

TEST_F(SqliteStoreTest, VersionsGrowAndAWriteOfNothingIsNone) {
  const auto store = open();
  int notices = 0;
  store->watch([&](const control::Change&) { ++notices; });
  const api::Trial a = store->create_trial(trial(0)).value();
  const api::Trial b = store->create_trial(trial(1)).value();
  EXPECT_LT(std::stoll(a.metadata.resource_version), std::stoll(b.metadata.resource_version));
  EXPECT_EQ(store->update_trial_status(a).value().metadata.resource_version,
            a.metadata.resource_version);
  EXPECT_EQ(notices, 2);
}

TEST_F(SqliteStoreTest, AReaderSeesWhatTheRunnerWrites) {
  const auto writer = open();
  (void)writer->create_study(study()).value();
  const auto reader = open(Mode::kReadOnly);
  EXPECT_EQ(reader->list_studies().value().size(), 1u);
  (void)writer->create_trial(trial(0)).value();
  EXPECT_EQ(reader->list_trials({"", "s"}).value().size(), 1u);
  EXPECT_THAT(reader->create_trial(trial(1)).error().message, HasSubstr("for reading only"));
}

TEST_F(SqliteStoreTest, AReaderReadsTheNewVersionOfWhatItHas) {
  const auto writer = open();
  (void)writer->create_study(study()).value();
  api::Trial changing = writer->create_trial(trial(0)).value();
  const api::Trial resting = writer->create_trial(trial(1)).value();
  const auto reader = open(Mode::kReadOnly);
  const auto before = reader->list_trials({"", "s"}).value();
  changing.status.phase = api::TrialPhase::kRunning;
  ASSERT_TRUE(writer->update_trial_status(changing).ok());
  const auto after = reader->list_trials({"", "s"}).value();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[0]->status.phase, api::TrialPhase::kRunning);
  EXPECT_EQ(after[1], before[1]) << "a trial that has not changed was read again";
}

TEST_F(SqliteStoreTest, TheFileIsWholeThoughAReaderStillHasItOpen) {
  auto writer = open();
  (void)writer->create_study(study()).value();
  const auto reader = open(Mode::kReadOnly);
  (void)writer->create_trial(trial(0)).value();
  ASSERT_EQ(reader->list_trials({"", "s"}).value().size(), 1U);
  writer.reset();
  std::filesystem::copy(path_, directory_ + "/copy.db");
  const auto copy = SqliteStore::open(directory_ + "/copy.db", Mode::kReadOnly);
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ((*copy)->list_trials({"", "s"}).value().size(), 1U);
}

TEST_F(SqliteStoreTest, AReaderForgetsWhatIsNoLongerInTheFile) {
  {
    const auto writer = open();
    (void)writer->create_study(study()).value();
    for (int i = 0; i < 3; ++i) (void)writer->create_trial(trial(i)).value();
  }
  const auto reader = open(Mode::kReadOnly);
  ASSERT_EQ(reader->list_trials({"", "s"}).value().size(), 3U);
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &file), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(file, "DELETE FROM objects WHERE name = 's-2'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(file);
  EXPECT_EQ(reader->list_trials({"", "s"}).value().size(), 2U);
}

TEST_F(SqliteStoreTest, AnotherStudyIsReadFromTheStoreBesideThisOne) {
  {
    const auto other = SqliteStore::open(directory_ + "/pilot.db", Mode::kReadWrite).value();
    api::Study pilot = study();
    pilot.metadata.name = "pilot";
    ASSERT_TRUE(other->create_study(pilot).ok());
    api::Trial first = trial(0);
    first.spec.study = "pilot";
    ASSERT_TRUE(other->create_trial(first).ok());
  }
  const auto store = open();
  const auto read = store->read_other({"", "pilot"});
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->study.metadata.name, "pilot");
  EXPECT_EQ(read->trials.size(), 1U);
  const auto missing = store->read_other({"", "nothing"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "there is no study nothing in " + directory_);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/nothing.db"));
}

TEST_F(SqliteStoreTest, EventsComeBackInOrderAndBounded) {
  const auto store = open();
  for (int i = 0; i < 5; ++i) {
    store->record_event({control::Kind::kTrial, {"", "s-0"}, "s"}, i % 2 == 1, "Started",
                        "number " + std::to_string(i), 100 + i);
  }
  store->record_event({control::Kind::kStudy, {"", "other"}, "other"}, false, "Started", "", 1);
  const auto events = store->list_events({"", "s"}, 3).value();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].message, "number 2");
  EXPECT_EQ(events[2].at_ms, 104);
  EXPECT_TRUE(events[1].warning);
}

TEST_F(SqliteStoreTest, ThereIsNothingToRead) {
  const auto store = SqliteStore::open(path_, Mode::kReadOnly);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteStoreTest, AFileThatIsNoDatabase) {
  ASSERT_TRUE(write_file(path_, std::string(5000, 'x')).ok());
  const auto store = SqliteStore::open(path_, Mode::kReadWrite);
  EXPECT_EQ(store.error().code, ErrorCode::kIo);
  EXPECT_THAT(store.error().message, HasSubstr("s.db is no SQLite database"));
  EXPECT_EQ(read_file(path_).value(), std::string(5000, 'x'));
}

TEST_F(SqliteStoreTest, ADirectoryInItsPlace) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  for (const auto mode : {Mode::kReadWrite, Mode::kReadOnly}) {
    const auto store = SqliteStore::open(path_, mode);
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(store.error().message, HasSubstr("s.db is a directory"));
  }
}

TEST_F(SqliteStoreTest, ADatabaseThatIsDamaged) {
  {
    const auto store = open();
    for (int i = 0; i < 100; ++i) (void)store->create_trial(trial(i)).value();
  }
  std::string bytes = read_file(path_).value();
  ASSERT_GT(bytes.size(), 8192u);
  std::fill(bytes.begin() + 4096, bytes.end(), '\xff');
  ASSERT_TRUE(write_file(path_, bytes).ok());
  const auto store = SqliteStore::open(path_, Mode::kReadWrite);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message, HasSubstr("is damaged"));
}

TEST_F(SqliteStoreTest, AStoreOfANewerVersion) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "PRAGMA user_version=7", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  const auto store = SqliteStore::open(path_, Mode::kReadWrite);
  EXPECT_THAT(store.error().message, HasSubstr("written by a newer fettle (schema 7"));
}

TEST_F(SqliteStoreTest, APlaceThatCannotBeWritten) {
  const auto store = SqliteStore::open("/proc/s.db", Mode::kReadWrite);
  EXPECT_EQ(store.error().code, ErrorCode::kIo);
  EXPECT_THAT(store.error().message, HasSubstr("/proc/s.db"));
}

// Runs in its own process, because the limit applies to the whole process.
int fill_up(const std::string& path, const api::Study& study, const api::Trial& first) {
  auto opened = SqliteStore::open(path, Mode::kReadWrite);
  if (!opened.ok() || !(*opened)->create_study(study).ok()) return 1;
  ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit = {512 << 10, 512 << 10};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  for (std::int64_t i = 0; i < 10'000; ++i) {
    api::Trial trial = first;
    trial.metadata.name = "s-" + std::to_string(i);
    trial.spec.index = i;
    trial.spec.parameters.set("pad", std::string(1000, 'x'));
    const auto created = (*opened)->create_trial(trial);
    if (created.ok()) continue;
    // Refused and explained, and not stored in part; reading still works.
    const bool good =
        created.error().code == ErrorCode::kIo &&
        created.error().message.find("nothing that was recorded is lost") != std::string::npos &&
        !(*opened)->get_trial({"", trial.metadata.name}).ok() &&
        (*opened)->list_trials({"", "s"})->size() == static_cast<std::size_t>(i);
    return good ? 0 : 2;
  }
  return 3;
}

TEST_F(SqliteStoreTest, AFullDiskIsSaidAndLosesNothing) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(fill_up(path_, study(), trial(0)));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto store = open();
  const std::vector<api::TrialPtr> kept = store->list_trials({"", "s"}).value();
  ASSERT_GT(kept.size(), 20u);
  EXPECT_EQ(kept.back()->spec.index, static_cast<std::int64_t>(kept.size()) - 1);
  EXPECT_TRUE(store->create_trial(trial(20'000)).ok());
}

TEST_F(SqliteStoreTest, ReadingFromAReadOnlyFileSystem) {
  {
    const auto store = open();
    (void)store->create_study(study()).value();
  }
  if (::mount(directory_.c_str(), directory_.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "only root can mount";
  }
  ASSERT_EQ(
      ::mount(nullptr, directory_.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  const auto reader = SqliteStore::open(path_, Mode::kReadOnly);
  const auto of_two_slashes = SqliteStore::open("/" + path_, Mode::kReadOnly);
  const auto writer = SqliteStore::open(path_, Mode::kReadWrite);
  ::umount2(directory_.c_str(), MNT_DETACH);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ((*reader)->list_studies().value().size(), 1u);
  EXPECT_TRUE(of_two_slashes.ok()) << of_two_slashes.error().message;
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
  EXPECT_THAT(writer.error().message, HasSubstr("can its directory be read and written?"));
}

}  // namespace
}  // namespace fettle::local
