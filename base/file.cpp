#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

namespace fettle {
namespace {

Error system_error(int code) {
  return {is_no_room(code) ? ErrorCode::kUnavailable : ErrorCode::kIo, system_message(code)};
}

Error failed(const std::string& what, const std::string& path, int code) {
  return {code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
          what + " " + path + ": " + system_message(code)};
}

Status write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return success();
}

Status write_new(const std::string& path, std::string_view content, Durability durability) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return system_error(errno);
  Status written = write_all(fd, content);
  if (written.ok() && durability == Durability::kPower && ::fsync(fd) != 0) {
    written = system_error(errno);
  }
  if (::close(fd) != 0 && written.ok()) written = system_error(errno);
  return written;
}

// A rename is on disk only after its directory is flushed.
Status sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const int fd = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(errno);
  const bool synced = ::fsync(fd) == 0;
  const int code = errno;
  ::close(fd);
  if (!synced) return system_error(code);
  return success();
}

}  // namespace

std::string system_message(int code) { return std::system_category().message(code); }

bool is_no_room(int code) { return code == ENOSPC || code == EDQUOT; }

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("cannot open", path, errno);
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const int code = errno;  // before close() changes it
      ::close(fd);
      if (got < 0) return failed("cannot read", path, code);
      return content;
    }
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > most) {
      ::close(fd);
      return invalid(path + " is larger than " + std::to_string(most) + " bytes");
    }
  }
}

Status write_file(const std::string& path, std::string_view content, Durability durability) {
  // Each call has its own name, so that two calls that write the same file do not share it.
  static std::atomic<std::uint64_t> calls = 0;
  const std::string temporary =
      path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(++calls);
  Status written = write_new(temporary, content, durability);
  if (written.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = system_error(errno);
  }
  if (written.ok() && durability == Durability::kPower) written = sync_directory_of(path);
  if (written.ok()) return success();
  ::unlink(temporary.c_str());  // fails if only the flush after the rename failed
  return Error(written.error()).in("cannot write " + path);
}

Status make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return system_error(code.value()).in("cannot make the directory " + path);
  return success();
}

}  // namespace fettle
