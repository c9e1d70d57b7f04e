#include "cli/adopt.h"

#include <filesystem>
#include <system_error>

#include "api/changes.h"
#include "base/file.h"
#include "runtime/local/sqlite_store.h"

namespace fettle::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostMovedAside = 10'000;

std::string refusal(const std::string& name, const std::vector<api::FieldError>& errors) {
  std::string text = "study " + name + " has trials already and cannot be changed like that:\n";
  for (const api::FieldError& error : errors) {
    text += "  " + error.path + ": " + error.message + '\n';
  }
  return text + "Or begin anew with --fresh: what there is is moved aside, not deleted.";
}

// A directory that does not exist yet, made.
Result<std::string> make_aside(const local::Layout& layout) {
  const std::string parent = layout.root + "/.old";
  FETTLE_TRY(make_directories(parent));
  for (int i = 1; i <= kMostMovedAside; ++i) {
    const std::string path = parent + '/' + layout.study + '-' + std::to_string(i);
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    if (error) return io_error(path + ": " + error.message());
  }
  return io_error(parent + " holds " + std::to_string(kMostMovedAside) +
                  " old studies of that name; delete some");
}

Status move_into(const std::string& path, const std::string& directory) {
  std::error_code error;
  if (!fs::exists(path, error)) return success();
  fs::rename(path, directory + '/' + fs::path(path).filename().string(), error);
  if (error) return io_error(path + " cannot be moved to " + directory + ": " + error.message());
  return success();
}

}  // namespace

Result<api::Study> adopt_study(control::Store& store, const api::Study& wanted) {
  const control::Key key{wanted.metadata.ns, wanted.metadata.name};
  auto stored = store.get_study(key);
  if (!stored.ok() && stored.error().code == ErrorCode::kNotFound) {
    return store.create_study(wanted);
  }
  if (!stored.ok()) return stored.error();
  if (stored->spec == wanted.spec) return stored;
  FETTLE_ASSIGN(const auto trials, store.list_trials(key));
  const auto errors = trials.empty() ? std::vector<api::FieldError>{}
                                     : api::forbidden_changes(stored->spec, wanted.spec);
  if (!errors.empty()) return invalid(refusal(wanted.metadata.name, errors));
  api::Study changed = *stored;
  changed.spec = wanted.spec;
  return store.update_study_spec(changed);
}

Result<std::string> move_aside(const local::Layout& layout, const local::StudyLockOptions& lock) {
  std::error_code error;
  if (!fs::exists(layout.database(), error)) return std::string();
  FETTLE_ASSIGN(const auto held, local::StudyLock::acquire(layout.lock(), lock));
  FETTLE_ASSIGN(const std::string aside, make_aside(layout));
  // Opening and closing folds the log into the file. One that is damaged is moved as it is.
  (void)local::SqliteStore::open(layout.database(), local::SqliteStore::Mode::kReadWrite);
  // The file first: a crash on the way leaves no study whose trials and checkpoints have gone.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    FETTLE_TRY(move_into(layout.database() + suffix, aside));
  }
  FETTLE_TRY(move_into(layout.study_directory(), aside));
  return aside;
}

}  // namespace fettle::cli
