// Several Sessions on one machine see each other by the files that they share.
#include "runtime/local/run/claims.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;

class ClaimsTest : public testing::Test {
 protected:
  ClaimsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-claims-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    room_.gpus = {{"GPU-A", "0"}, {"GPU-B", "1"}};
    room_.cores = 4;
  }
  ~ClaimsTest() override { std::filesystem::remove_all(root_); }

  std::string directory() const { return root_ + "/machine"; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory()), {}));
  }
  std::string refusal(Claims& claims, const std::string& run, const Need& need) {
    return claims.take(run, need).shortage.text();
  }

  std::string root_;
  Room room_;
};

TEST_F(ClaimsTest, TwoStudiesShareTheGpus) {
  Claims one("one", room_, directory());
  Claims two("two", room_, directory());
  EXPECT_EQ(one.problem(), "");
  EXPECT_EQ(one.take("one-0-r0", {1, 1, 0}).gpus.front().id, "GPU-A");
  EXPECT_EQ(two.take("two-0-r0", {1, 1, 0}).gpus.front().id, "GPU-B");
  EXPECT_EQ(refusal(two, "two-1-r0", {1, 1, 0}),
            "it needs 1 GPU, and 0 of 2 are free (study one: 1, study two: 1)");
  one.release("one-0-r0");
  // The waiting run goes first.
  EXPECT_THAT(refusal(one, "one-1-r0", {1, 1, 0}), HasSubstr("0 of 2 are free"));
  EXPECT_EQ(two.take("two-1-r0", {1, 1, 0}).gpus.front().id, "GPU-A");
}

TEST_F(ClaimsTest, TheCoresOfAllStudiesAreCounted) {
  Claims one("one", room_, directory());
  Claims two("two", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {0, 3, 0}).ok());
  EXPECT_EQ(refusal(two, "two-0-r0", {0, 2, 0}),
            "it needs 2 cores, and 1 of 4 are free (study one: 3)");
  EXPECT_EQ(refusal(two, "two-0-r0", {0, 1, 0}), "");
}

TEST_F(ClaimsTest, OnlyWaitingRunsOfOtherSessionsAreNoticed) {
  Claims one("one", room_, directory());
  Claims two("two", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {0, 4, 0}).ok());
  EXPECT_FALSE(one.take("one-1-r0", {0, 1, 0}).ok());
  EXPECT_FALSE(one.others_wait()) << "its own run waits";
  EXPECT_TRUE(two.others_wait());
  EXPECT_FALSE(two.take("two-0-r0", {0, 1, 0}).ok());
  EXPECT_TRUE(one.others_wait());
  two.release("two-0-r0");
  EXPECT_FALSE(one.others_wait());
}

TEST_F(ClaimsTest, AClaimKeepsItsResourcesUnderANewName) {
  Claims one("one", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {0, 4, 0}).ok());
  const std::string file = one.file("one-0-r0");
  one.rename("one-0-r0", "worker-r1");
  EXPECT_EQ(one.file("worker-r1"), file);
  one.release("one-0-r0");
  EXPECT_FALSE(one.take("one-1-r0", {0, 1, 0}).ok()) << "the worker has all cores";
  one.release("worker-r1");
  EXPECT_TRUE(one.take("one-1-r0", {0, 1, 0}).ok());
}

// As when its runner was killed: the process that holds the file counts.
TEST_F(ClaimsTest, AClaimLivesAsLongAsSomebodyHoldsIt) {
  Claims two("two", room_, directory());
  int guard = -1;
  {
    Claims one("one", room_, directory());
    ASSERT_TRUE(one.take("one-0-r0", {2, 1, 0}).ok());
    const std::string file = one.file("one-0-r0");
    guard = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::flock(guard, LOCK_SH | LOCK_NB), 0) << "the runner's own lock is shared";
    one.hand_over("one-0-r0");
    EXPECT_THAT(refusal(two, "two-0-r0", {1, 1, 0}), HasSubstr("study one: 2"));
    // A runner that is killed does not tidy up.
    ASSERT_EQ(::link(file.c_str(), (file + ".kept").c_str()), 0);
    ASSERT_EQ(::rename((file + ".kept").c_str(), (directory() + "/kept.claim").c_str()), 0);
  }
  EXPECT_THAT(refusal(two, "two-0-r0", {1, 1, 0}), HasSubstr("study one: 2"));
  ::close(guard);
  EXPECT_EQ(refusal(two, "two-0-r0", {1, 1, 0}), "");
  EXPECT_EQ(files(), 1U) << "what no process holds is removed";
}

TEST_F(ClaimsTest, OneThatWaitsAndSaysNothingIsPassed) {
  Claims one("one", room_, directory());
  Claims two("two", room_, directory());
  Claims three("three", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {2, 1, 0}).ok());
  ASSERT_NE(refusal(two, "two-0-r0", {2, 1, 0}), "");
  one.release("one-0-r0");
  EXPECT_NE(refusal(three, "three-0-r0", {1, 1, 0}), "");
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, two.file("two-0-r0").c_str(), long_ago, 0), 0);
  EXPECT_EQ(refusal(three, "three-0-r0", {1, 1, 0}), "");
  two.renew();
  const auto claims = read_claims(directory());
  EXPECT_EQ(claims.size(), 2U);
}

TEST_F(ClaimsTest, ARunGrowsOnlyWhileNobodyWaits) {
  Claims one("one", room_, directory());
  Claims two("two", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {1, 1, 0}).ok());
  EXPECT_NE(refusal(two, "two-0-r0", {2, 1, 0}), "");
  EXPECT_FALSE(one.add("one-0-r0", {1, 1, 0}).ok());
  two.release("two-0-r0");
  EXPECT_EQ(one.add("one-0-r0", {1, 1, 0}).gpus.front().id, "GPU-B");
  EXPECT_THAT(refusal(two, "two-0-r0", {1, 1, 0}), HasSubstr("(study one: 2)"));
}

TEST_F(ClaimsTest, FilesOfOthersMayHoldAnything) {
  Claims one("one", room_, directory());
  const auto put = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file(directory() + "/" + name, text).ok());
    const int fd = ::open((directory() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::flock(fd, LOCK_SH), 0);
    return fd;
  };
  const int held[] = {put("1.claim", "not JSON"), put("2.claim", "[]"),
                      put("3.claim", R"({"granted": 1, "gpus": 7, "cores": -1e300})"),
                      put("4.claim", R"({"granted": true, "cpus": ["x"], "cores": "two"})")};
  ASSERT_EQ(::mkfifo((directory() + "/5.claim").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (directory() + "/6.claim").c_str()), 0);
  EXPECT_EQ(refusal(one, "one-0-r0", {2, 4, 0}), "");
  for (const int fd : held) ::close(fd);
}

// The writer of a claim chooses its text, but not the owner of the file.
TEST_F(ClaimsTest, AClaimIsOfTheUserWhoOwnsItsFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Claims one("one", room_, directory());
  const std::string file = directory() + "/a.claim";
  ASSERT_TRUE(write_file(file, R"({"study": "x", "user": "root", "granted": true, "cores": 1e300,
                                  "memory": 9000000000000000})")
                  .ok());
  ASSERT_EQ(::chown(file.c_str(), 64321, 64321), 0);
  const int held = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_SH), 0);
  room_.cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF));
  Claims two("two", room_, directory());
  const std::string said = refusal(two, "two-0-r0", {0, 1, 0});
  EXPECT_THAT(said, HasSubstr("(study x of 64321: "));
  EXPECT_THAT(said, HasSubstr(", file a.claim)"));
  const auto claims = read_claims(directory());
  ASSERT_EQ(claims.size(), 2U);
  for (const Claim& claim : claims) EXPECT_LE(claim.need.cores, room_.cores) << claim.study;
  ::close(held);
}

// They neither crowd out the claims of others nor delay a run.
TEST_F(ClaimsTest, OfOneUserABoundedNumberOfFilesIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  Claims one("one", room_, directory());
  ASSERT_TRUE(one.take("one-0-r0", {1, 1, 0}).ok());
  std::vector<int> held;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur < 2'000) GTEST_SKIP() << "too few open files";
  for (int i = 0; i < 1'500; ++i) {
    const std::string file = directory() + "/" + std::to_string(i) + ".claim";
    ASSERT_TRUE(write_file(file, R"({"study": "x", "granted": true})").ok());
    ASSERT_EQ(::chown(file.c_str(), 64321, 64321), 0);
    held.push_back(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(held.back(), LOCK_SH), 0);
  }
  const auto claims = read_claims(directory());
  EXPECT_EQ(claims.size(), 1'024U + 1U);
  EXPECT_EQ(std::ranges::count(claims, "one", &Claim::study), 1);
  for (const int fd : held) ::close(fd);
}

TEST_F(ClaimsTest, ADirectoryInWhichClaimsCanBeTakenAwayIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::mkdir(directory().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  ASSERT_EQ(::chown(directory().c_str(), 64321, 64321), 0);
  EXPECT_THAT(Claims("one", room_, directory()).problem(),
              HasSubstr("belongs to user 64321 and has no sticky bit"));
  ASSERT_EQ(::chmod(directory().c_str(), 01777), 0);
  EXPECT_EQ(Claims("one", room_, directory()).problem(), "");
  // The owner's own directory gets the sticky bit.
  ASSERT_EQ(::chown(directory().c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  EXPECT_EQ(Claims("one", room_, directory()).problem(), "");
  struct stat about {};
  ASSERT_EQ(::stat(directory().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 01777U);
}

TEST_F(ClaimsTest, WithoutADirectoryASessionCountsItsOwn) {
  ASSERT_TRUE(write_file(root_ + "/file", "").ok());
  Claims one("one", room_, root_ + "/file");
  EXPECT_THAT(one.problem(), HasSubstr("Not a directory"));
  EXPECT_EQ(refusal(one, "one-0-r0", {1, 1, 0}), "");
  EXPECT_EQ(refusal(one, "one-1-r0", {1, 1, 0}), "");
  EXPECT_NE(refusal(one, "one-2-r0", {1, 1, 0}), "");
  EXPECT_EQ(one.file("one-0-r0"), "");
}

TEST_F(ClaimsTest, TheDirectoryIsOpenToAllUsers) {
  const Claims one("one", room_, directory());
  struct stat about {};
  ASSERT_EQ(::stat(directory().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 01777U);
}

}  // namespace
}  // namespace fettle::local
