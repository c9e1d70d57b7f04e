#include "trainer/checkpoint/checkpoint_fence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/directory.h"
#include "base/file.h"

namespace fettle::trainer {
namespace {

constexpr std::string_view kPrefix = "owner-";
// Another process took the number in between; this many times only if something is wrong.
constexpr int kMostTries = 100;
constexpr std::size_t kLongestOwner = 4096;

bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string CheckpointFence::path_of(const std::string& directory, const Claim& claim) {
  return directory + "/" + std::string(kPrefix) + std::to_string(claim.run) + "-" +
         std::to_string(claim.number);
}

// Returns {0, 0}, which no process can have, if the directory has no claim.
CheckpointFence::Claim CheckpointFence::highest_in(const std::string& directory) {
  Claim highest;
  for (const auto& entry : entries_of(directory)) {
    const std::string name = entry.path().filename().string();
    std::string_view rest = name;
    Claim claim;
    if (!rest.starts_with(kPrefix)) continue;
    rest.remove_prefix(kPrefix.size());
    if (!take_number(rest, claim.run) || !rest.starts_with('-')) continue;
    rest.remove_prefix(1);
    if (!take_number(rest, claim.number) || !rest.empty()) continue;
    highest = std::max(highest, claim);
  }
  return highest;
}

// Returns false if another process has created the file.
Result<bool> CheckpointFence::create(const std::string& path, const std::string& owner) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0 && errno == EEXIST) return false;
  const std::string line = owner.substr(0, kLongestOwner - 1) + "\n";
  const bool written =
      fd >= 0 && ::write(fd, line.data(), line.size()) == std::ssize(line) && ::fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (!written) return io_error("cannot write " + path + ": " + system_message(code));
  return true;
}

Error CheckpointFence::taken(const std::string& directory, const Claim& by) {
  auto owner = read_file(path_of(directory, by), kLongestOwner);
  std::string words = owner.ok() ? *owner : "";
  while (words.ends_with('\n')) words.pop_back();
  return {ErrorCode::kConflict, "the checkpoints in " + directory + " belong to run " +
                                    std::to_string(by.run) + " of the trial now" +
                                    (words.empty() ? "" : " (" + words + ")") +
                                    "; this process must not write there"};
}

Result<CheckpointFence> CheckpointFence::claim(const std::string& directory, std::int64_t run,
                                               const std::string& owner) {
  FETTLE_TRY(make_directories(directory));
  for (int tries = 0; tries < kMostTries; ++tries) {
    const Claim highest = highest_in(directory);
    if (highest.run > run) return taken(directory, highest);
    const Claim mine{run, highest.run == run ? highest.number + 1 : 1};
    FETTLE_ASSIGN(const bool created, create(path_of(directory, mine), owner));
    if (!created) continue;
    CheckpointFence fence(directory, mine);
    // The directory was read before the file was created: a higher claim may have appeared since.
    if (!fence.check().ok()) continue;
    fence.remove_older();
    return fence;
  }
  return taken(directory, highest_in(directory));
}

Status CheckpointFence::check() const {
  const Claim highest = highest_in(directory_);
  if (highest > mine_) return taken(directory_, highest);
  // The directory was removed (and perhaps claimed anew from number 1 on), or cannot be read.
  const std::string mine = path_of(directory_, mine_);
  if (::access(mine.c_str(), F_OK) == 0) return success();
  if (errno != ENOENT) return io_error("cannot read " + mine + ": " + system_message(errno));
  return Error{ErrorCode::kConflict, mine +
                                         ", by which this process owned its checkpoints, is gone; "
                                         "it must not write there any more"};
}

void CheckpointFence::remove_older() const {
  for (Claim older{mine_.run, mine_.number - 1}; older.number > 0; --older.number) {
    if (::unlink(path_of(directory_, older).c_str()) != 0) return;  // all lower numbers are gone
  }
}

}  // namespace fettle::trainer
