#include "runtime/local/store/private_root.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace fettle::local {
namespace {

constexpr mode_t kOwnerOnly = 0700;

std::string name_of(uid_t user) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "number " + std::to_string(user);
}

Error belongs_to(const std::string& root, uid_t user) {
  return invalid(root + " belongs to user " + name_of(user) + ", and this is user " +
                 name_of(::geteuid()) +
                 "; fettle writes only into a directory of its own: name another one with -C, or "
                 "run as that user");
}

}  // namespace

Status make_private_root(const std::string& root) {
  const std::string parent = std::filesystem::path(root).parent_path().string();
  if (!parent.empty()) FETTLE_TRY(make_directories(parent));
  if (::mkdir(root.c_str(), kOwnerOnly) == 0) return success();
  if (errno != EEXIST) {
    return io_error("cannot make the directory " + root + ": " + system_message(errno));
  }
  struct stat itself {};  // it may be a link, say to a larger disk
  struct stat directory {};
  const bool there = ::lstat(root.c_str(), &itself) == 0;
  if (!there || ::stat(root.c_str(), &directory) != 0) {
    const int code = errno;
    std::error_code unread;
    const std::string target = std::filesystem::read_symlink(root, unread).string();
    if (there && S_ISLNK(itself.st_mode) && code == ENOENT) {
      return invalid(root + " is a link to " + target +
                     ", which is not there; make that directory, or remove the link");
    }
    return io_error("cannot read " + root + ": " + system_message(code));
  }
  if (!S_ISDIR(directory.st_mode)) return io_error(root + " is no directory; move it away");
  // The link as well: its owner could point it elsewhere.
  for (const uid_t owner : {itself.st_uid, directory.st_uid}) {
    if (owner != ::geteuid()) return belongs_to(root, owner);
  }
  return success();
}

}  // namespace fettle::local
