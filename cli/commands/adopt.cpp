#include "cli/commands/adopt.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "api/fields/field_errors.h"
#include "api/study/changes.h"
#include "api/study/study_json.h"
#include "base/file.h"
#include "cli/common/asked.h"
#include "runtime/local/store/private_root.h"
#include "runtime/local/store/pruning.h"
#include "runtime/local/store/sqlite_store.h"

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

// Restores defaults: fields that differ although the user did not write them, because the default
// was another one when the study began. `written` is the file's value here; nullptr if it has none.
class Defaults {
 public:
  void keep(const Json& stored, const Json* written, const api::FieldPath& path, Json& wanted) {
    if (stored == wanted) return;
    if (stored.is_object() && wanted.is_object()) {
      for (const auto& [key, value] : stored.as_object()) {
        // A member that only one of the two has is a change, and is judged as one.
        Json* const member = wanted.find(key);
        if (member != nullptr) keep(value, member_of(written, key), path.member(key), *member);
      }
    } else if (stored.is_array() && wanted.is_array()) {
      keep_items(stored, written, path, wanted);
    } else if (written == nullptr && !api::may_change(path.str())) {
      kept_.push_back(path.str() + ": " + stored.dump());
      wanted = stored;
    }
  }
  std::vector<std::string>& kept() { return kept_; }

 private:
  static const Json* member_of(const Json* map, const std::string& key) {
    const Json* const found = map != nullptr && map->is_object() ? map->find(key) : nullptr;
    return found != nullptr && found->is_null() ? nullptr : found;
  }

  // Fields can be left out only in the items of a list that the file writes. Every other difference
  // between lists is a change, like a different length.
  void keep_items(const Json& stored, const Json* written, const api::FieldPath& path,
                  Json& wanted) {
    const std::size_t size = wanted.as_array().size();
    const bool same = written != nullptr && written->is_array() &&
                      written->as_array().size() == size && stored.as_array().size() == size;
    if (!same) return;
    Json::Array items = wanted.as_array();
    for (std::size_t i = 0; i < size; ++i) {
      keep(stored.as_array()[i], &written->as_array()[i], path.item(i), items[i]);
    }
    wanted = Json(std::move(items));
  }

  std::vector<std::string> kept_;
};

Adopted keep_defaults(const api::Study& stored, const api::Study& wanted, const Json& written) {
  Json document = api::write_study(wanted);
  Json* const spec = document.find("spec");
  const Json* const said = written.find("spec");
  Defaults defaults;
  defaults.keep(api::write_study_spec(stored.spec), said, api::FieldPath("spec"), *spec);
  api::ReadStudy read = api::read_study(document);
  if (!read.errors.empty())
    return {wanted, {}};  // the mixture is invalid, so it is a change after all
  return {std::move(read.study), std::move(defaults.kept())};
}

// Makes a directory that did not exist, and returns it.
Result<std::string> make_aside(const local::Layout& layout) {
  const std::string parent = layout.root + "/.old";
  FETTLE_TRY(make_directories(parent));
  for (int i = 1; i <= kMostMovedAside; ++i) {
    const std::string path = parent + '/' + layout.study + '-' + std::to_string(i);
    std::error_code error;
    // Returns false without an error if the directory exists: the next number is tried.
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

Result<Adopted> adopt_study(control::Store& store, const api::Study& wanted, const Json& written) {
  const control::Key key{wanted.metadata.ns, wanted.metadata.name};
  auto stored = store.get_study(key);
  if (!stored.ok() && stored.error().code == ErrorCode::kNotFound) {
    FETTLE_ASSIGN(api::Study created, store.create_study(wanted));
    return Adopted{std::move(created), {}};
  }
  if (!stored.ok()) return stored.error();
  if (is_asked(stored->spec)) return invalid(why_not_run(wanted.metadata.name));
  if (stored->spec == wanted.spec) return Adopted{*std::move(stored), {}};
  FETTLE_ASSIGN(const auto trials, store.list_trials(key));
  Adopted out{wanted, {}};
  if (!trials.empty()) out = keep_defaults(*stored, wanted, written);
  const auto errors = trials.empty() ? std::vector<api::FieldError>{}
                                     : api::forbidden_changes(stored->spec, out.study.spec);
  if (!errors.empty()) return invalid(refusal(wanted.metadata.name, errors));
  api::Study changed = *stored;
  changed.spec = out.study.spec;
  FETTLE_ASSIGN(out.study, store.update_study_spec(changed));
  return out;
}

Result<std::string> move_aside(const local::Layout& layout, const local::StudyLockOptions& lock) {
  std::error_code error;
  if (!fs::exists(layout.database(), error)) return std::string();
  FETTLE_TRY(local::make_private_root(layout.root));
  FETTLE_ASSIGN(const auto held, local::StudyLock::acquire(layout.lock(), lock));
  FETTLE_ASSIGN(const std::string aside, make_aside(layout));
  // Opening and closing folds the log into the file. A damaged file is moved unchanged.
  (void)local::SqliteStore::open(layout.database(), local::SqliteStore::Mode::kReadWrite);
  // Moves the file first: a crash on the way leaves no study without its trials and checkpoints.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    FETTLE_TRY(move_into(layout.database() + suffix, aside));
  }
  FETTLE_TRY(move_into(layout.study_directory(), aside));
  (void)local::prune_runs(local::directories_aside(layout), local::kMostRunBytes);
  return aside;
}

}  // namespace fettle::cli
