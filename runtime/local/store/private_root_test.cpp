// The access to .fettle, and the directories that are refused.
#include "runtime/local/store/private_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace fettle::local {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PrivateRoot : public testing::Test {
 protected:
  PrivateRoot() {
    std::string name = testing::TempDir() + "fettle-root-XXXXXX";
    place_ = ::mkdtemp(name.data());
  }
  ~PrivateRoot() override { fs::remove_all(place_); }

  static unsigned mode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }

  std::string place_;
  const mode_t umask_ = ::umask(022);
  // Restores the umask of the test program.
  struct Restore {
    mode_t mask;
    ~Restore() { ::umask(mask); }
  } restore_{umask_};
};

TEST_F(PrivateRoot, IsMadeForItsUserAloneBelowParentsThatAreAsUsual) {
  ASSERT_TRUE(make_private_root(place_ + "/study/.fettle").ok());
  EXPECT_EQ(mode_of(place_ + "/study"), 0755U);
  EXPECT_EQ(mode_of(place_ + "/study/.fettle"), 0700U);
}

TEST_F(PrivateRoot, KeepsTheModeThatItsUserGaveIt) {
  const std::string root = place_ + "/.fettle";
  fs::create_directory(root);
  ASSERT_EQ(::chmod(root.c_str(), 0750), 0);
  ASSERT_TRUE(make_private_root(root).ok());
  EXPECT_EQ(mode_of(root), 0750U);
}

TEST_F(PrivateRoot, MayBeALinkOfTheUsersOwn) {
  fs::create_directory(place_ + "/disk");
  fs::create_symlink(place_ + "/disk", place_ + "/.fettle");
  EXPECT_TRUE(make_private_root(place_ + "/.fettle").ok());
}

TEST_F(PrivateRoot, OfAnotherUserIsRefused) {
  const std::string root = place_ + "/.fettle";
  fs::create_directory(root);
  if (::chown(root.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give it away";
  const Status made = make_private_root(root);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr(".fettle belongs to user nobody"));
  EXPECT_THAT(made.error().message, HasSubstr("-C"));
}

TEST_F(PrivateRoot, BehindALinkOfAnotherUserIsRefused) {
  const std::string root = place_ + "/.fettle";
  fs::create_directory(place_ + "/mine");
  fs::create_symlink(place_ + "/mine", root);
  if (::lchown(root.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give it away";
  EXPECT_FALSE(make_private_root(root).ok());
}

TEST_F(PrivateRoot, ThatIsAFileIsRefused) {
  const std::string root = place_ + "/.fettle";
  fs::copy_file("/etc/hostname", root);
  const Status made = make_private_root(root);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("is no directory"));
}

TEST_F(PrivateRoot, ALinkToNowhereIsCalledThat) {
  const std::string link = place_ + "/.fettle";
  ASSERT_EQ(::symlink("/no/such/place", link.c_str()), 0);
  const Status made = make_private_root(link);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("is a link to /no/such/place, which is not there"));
}

}  // namespace
}  // namespace fettle::local
