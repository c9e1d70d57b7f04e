#include "trainer/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "trainer/data/bytes.h"

namespace fettle::trainer {

namespace {

// update-120.epoch-4.checkpoint, or update-130.checkpoint within an epoch.
constexpr std::string_view kPrefix = "update-";
constexpr std::string_view kEpoch = ".epoch-";
constexpr std::string_view kSuffix = ".checkpoint";
constexpr std::string_view kTemporary = ".tmp";  // after the suffix: not yet a checkpoint
constexpr std::size_t kMaxBytes = std::size_t{32} << 30;

std::string name_of(const Checkpoint& checkpoint) {
  std::string name(kPrefix);
  name += std::to_string(checkpoint.updates);
  if (checkpoint.position.offset == 0) {
    name += std::string(kEpoch) + std::to_string(checkpoint.position.epoch);
  }
  return name + std::string(kSuffix);
}

// Reads a number off the front; returns false if there is no number.
bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_later(const Position& a, const Position& b) {
  return std::pair(a.epoch, a.offset) > std::pair(b.epoch, b.offset);
}

// Maps the file: a string of it would be a second copy of the arrays.
Result<Checkpoint> load(const std::string& path) {
  FETTLE_ASSIGN(const Bytes file, map_file(path));
  if (file.size() > kMaxBytes) {
    return invalid(path + " is larger than " + std::to_string(kMaxBytes) + " bytes");
  }
  const auto view = file.view();
  return decode_checkpoint({reinterpret_cast<const char*>(view.data()), view.size()}, path);
}

// Returns false with errno set.
bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Writes the arrays from where they lie, and flushes them to disk.
Status write_parts(const std::string& path, const CheckpointParts& parts) {
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  bool written = file >= 0 && write_all(file, parts.head);
  for (const std::string_view array : parts.arrays) written = written && write_all(file, array);
  written = written && ::fsync(file) == 0;
  int code = written ? 0 : errno;
  if (file >= 0 && ::close(file) != 0 && code == 0) code = errno;
  if (code == 0) return success();
  return Error{is_no_room(code) ? ErrorCode::kUnavailable : ErrorCode::kIo,
               "cannot write " + path + ": " + system_message(code)};
}

// kUnavailable would mean that another worker was lost (collective.h).
Error failed_to_save(const Error& error) {
  if (error.code != ErrorCode::kUnavailable) return error;
  return io_error(error.message +
                  "; make room there, or keep fewer checkpoints. What was trained since the last "
                  "checkpoint is lost");
}

}  // namespace

std::vector<CheckpointStore::File> CheckpointStore::list() const {
  std::vector<File> files;
  if (directory_.empty()) return files;
  for (const auto& entry : entries_of(directory_)) {
    const std::string name = entry.path().filename().string();
    std::string_view rest = name;
    File file;
    if (!take(rest, kPrefix) || !take_number(rest, file.updates)) continue;
    if (take(rest, kEpoch)) file.whole_epoch = take_number(rest, file.epoch);
    if (rest != kSuffix) continue;  // also temporary files of a process that was killed
    file.path = entry.path().string();
    files.push_back(std::move(file));
  }
  // Also by epoch: one whose steps were all skipped (fp16) has no more updates than the one before.
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.updates, a.epoch) > std::pair(b.updates, b.epoch);
  });
  return files;
}

Result<std::string> CheckpointStore::save(const Checkpoint& checkpoint) const {
  if (directory_.empty()) return std::string();
  if (Status made = make_directories(directory_); !made.ok()) return failed_to_save(made.error());
  const std::string path = directory_ + "/" + name_of(checkpoint);
  const std::string unnamed = path + std::string(kTemporary) + (fence_ ? fence_->name() : "");
  FETTLE_TRY(may_write());  // else minutes of writing may be for nothing
  Status written = write_parts(unnamed, encode_in_parts(checkpoint));
  if (written.ok()) written = give_name(unnamed, path);
  if (!written.ok()) {
    std::error_code ignored;
    std::filesystem::remove(unnamed, ignored);
    // A new owner may have removed the half-written file: report that instead.
    FETTLE_TRY(may_write());
    return failed_to_save(written.error());
  }
  remove_superseded(/*newest=*/path);
  return path;
}

// Checks the fence as late as possible: only the rename follows.
Status CheckpointStore::give_name(const std::string& unnamed, const std::string& path) const {
  FETTLE_TRY(may_write());
  if (::rename(unnamed.c_str(), path.c_str()) != 0) {
    return io_error("cannot write " + path + ": " + system_message(errno));
  }
  // The new name is durable when its directory is.
  const int fd = ::open(directory_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool durable = fd >= 0 && ::fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  return durable ? success() : io_error("cannot write " + path + ": " + system_message(code));
}

bool CheckpointStore::is_at_rung(const File& file) const {
  return file.whole_epoch && std::binary_search(kept_.rungs.begin(), kept_.rungs.end(), file.epoch);
}

void CheckpointStore::remove_superseded(const std::string& newest) const {
  std::error_code ignored;  // a file that cannot be removed costs only space
  std::vector<File> files = list();
  const auto entries = entries_of(directory_);
  // Checked after listing: a later owner's files appear only after it has taken over.
  if (!may_write().ok()) return;
  // The newest may not sort first: others may have as many updates, a damaged one more.
  std::stable_partition(files.begin(), files.end(),
                        [&newest](const File& file) { return file.path == newest; });
  std::int64_t at_rungs = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool kept_for_others = is_at_rung(files[i]) && ++at_rungs <= kept_.at_rungs;
    const bool is_new = i < static_cast<std::size_t>(kept_.newest);
    if (!is_new && !kept_for_others) std::filesystem::remove(files[i].path, ignored);
  }
  // Removes leftovers of a process that was killed while it wrote; this process is the only writer.
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with(kPrefix);
    if (ours && name.find(std::string(kSuffix) + std::string(kTemporary)) != std::string::npos) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

Result<CheckpointStore::Found> CheckpointStore::newest() const {
  Found found;
  for (const File& file : list()) {
    // The name of a checkpoint within an epoch does not tell the epoch: at equal updates the
    // positions inside decide.
    const bool may_be_later =
        !found.checkpoint || (!file.whole_epoch && file.updates == found.checkpoint->updates);
    if (!may_be_later) continue;
    auto loaded = load(file.path);
    if (!loaded.ok()) {
      found.skipped.push_back(loaded.error().message);
    } else if (!found.checkpoint || is_later(loaded->position, found.checkpoint->position)) {
      found.checkpoint = std::move(loaded).value();
      found.path = file.path;
    }
  }
  if (found.checkpoint || found.skipped.empty()) return found;
  std::string message = "none of the checkpoints in " + directory_ + " can be read:";
  for (const std::string& reason : found.skipped) message += "\n  " + reason;
  return invalid(message + "\n  remove the directory to start from the beginning");
}

Result<Checkpoint> CheckpointStore::at_epoch(std::int64_t epoch) const {
  for (const File& file : list()) {
    if (file.whole_epoch && file.epoch == epoch) return load(file.path);
  }
  return not_found("there is no checkpoint of step " + std::to_string(epoch) + " in " + directory_);
}

}  // namespace fettle::trainer
