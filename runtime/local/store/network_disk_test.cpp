// A Study on NFS: locks as on an NFS client, and a database without shared memory.
//
// The system calls whose answers depend on the file system are replaced in this program while
// `on_nfs` is set: flock() is then a record lock of the open file (flock(2)), and statfs() reports
// NFS.
#include "runtime/local/store/network_disk.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/local/store/sqlite_store.h"
#include "runtime/local/store/study_lock.h"

namespace {

bool on_nfs = false;
constexpr long kNfs = 0x6969;

}  // namespace

extern "C" int flock(int fd, int operation) {
  if (!on_nfs) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  struct flock range {};
  range.l_type = (operation & LOCK_UN) != 0 ? F_UNLCK : F_WRLCK;
  range.l_whence = SEEK_SET;
  const int done = ::fcntl(fd, (operation & LOCK_NB) != 0 ? F_OFD_SETLK : F_OFD_SETLKW, &range);
  if (done != 0 && errno == EACCES) errno = EWOULDBLOCK;
  return done;
}

extern "C" int statfs(const char* path, struct statfs* about) {
  const int done = static_cast<int>(::syscall(SYS_statfs, path, about));
  if (done == 0 && on_nfs) about->f_type = kNfs;
  return done;
}

namespace fettle::local {
namespace {

using testing::HasSubstr;

class OnNfs : public testing::Test {
 protected:
  OnNfs() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    on_nfs = true;
  }
  ~OnNfs() override {
    on_nfs = false;
    std::filesystem::remove_all(directory_);
  }
  std::string directory_;
};

TEST_F(OnNfs, IsRecognised) {
  EXPECT_EQ(network_file_system(directory_), "NFS");
  EXPECT_EQ(network_file_system(directory_ + "/nothing"), "");
  on_nfs = false;
  EXPECT_EQ(network_file_system(directory_), "");
}

TEST_F(OnNfs, AStudyCanBeLockedAndItsRunnerIsKnown) {
  const std::string path = directory_ + "/s.lock";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = StudyLock::acquire(path);
    if (!lock.ok()) ::_exit(1);
    ::pause();
  }
  for (int i = 0; i < 24'000 && StudyLock::holder(path) != child; ++i) ::usleep(5000);
  EXPECT_EQ(StudyLock::holder(path), child);
  const auto second = StudyLock::acquire(path);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(StudyLock::holder(path), 0);
  EXPECT_TRUE(StudyLock::acquire(path).ok());
}

TEST_F(OnNfs, TheStoreHasNoWriteAheadLogAndSaysSo) {
  const std::string path = directory_ + "/s.db";
  {
    on_nfs = false;  // the Study was begun on a local disk
    ASSERT_TRUE(SqliteStore::open(path, SqliteStore::Mode::kReadWrite).ok());
    on_nfs = true;
  }
  const auto store = SqliteStore::open(path, SqliteStore::Mode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_EQ((*store)->warnings().size(), 1U);
  EXPECT_THAT((*store)->warnings()[0], HasSubstr("network file system (NFS)"));
  EXPECT_THAT((*store)->warnings()[0], HasSubstr("-C DIR"));
  EXPECT_FALSE(std::filesystem::exists(path + "-wal"));
  EXPECT_TRUE(SqliteStore::open(path, SqliteStore::Mode::kReadOnly).ok());
}

// A reader reports the changes that it cannot see.
TEST(FrozenStore, SaysThatItsNewestChangesAreMissing) {
  std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
  const std::string directory = ::mkdtemp(name.data());
  const std::string copy = directory + "/copy";
  std::filesystem::create_directory(copy);
  {
    const auto writer = SqliteStore::open(directory + "/s.db", SqliteStore::Mode::kReadWrite);
    ASSERT_TRUE(writer.ok());
    for (const char* file : {"/s.db", "/s.db-wal"}) {
      std::filesystem::copy_file(directory + file, copy + file);
    }
  }
  ASSERT_GT(std::filesystem::file_size(copy + "/s.db-wal"), 0U);
  const char* const where = copy.c_str();
  const bool mounted = ::mount(where, where, nullptr, MS_BIND, nullptr) == 0;
  if (mounted) ::mount(nullptr, where, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr);
  if (!mounted && ::geteuid() != 0) ::chmod(where, 0555);
  const auto reader = SqliteStore::open(copy + "/s.db", SqliteStore::Mode::kReadOnly);
  if (mounted) ::umount2(where, MNT_DETACH);
  if (!mounted) ::chmod(where, 0755);
  std::filesystem::remove_all(directory);
  if (!mounted && ::geteuid() == 0) GTEST_SKIP() << "root writes everywhere and cannot mount here";
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  ASSERT_EQ((*reader)->warnings().size(), 1U);
  EXPECT_THAT((*reader)->warnings()[0], HasSubstr("s.db-wal holds the newest changes"));
}

}  // namespace
}  // namespace fettle::local
