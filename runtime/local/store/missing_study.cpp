#include "runtime/local/store/missing_study.h"

#include <algorithm>
#include <string>

#include "base/directory.h"
#include "runtime/local/store/sqlite_store.h"

namespace fettle::local {
namespace {

constexpr const char* kWayOut =
    "; restore it from a copy, or start the Study anew with fettle run --fresh";

// Any trial that has a directory of a run; "" = no trial has.
std::string trial_with_runs(const Layout& layout) {
  for (const auto& entry : entries_of(layout.study_directory())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(layout.study + "-") && !recorded_runs(layout, name).empty()) return name;
  }
  return "";
}

}  // namespace

Status check_has_study(SqliteStore& store, const Layout& layout) {
  const control::Key key{"", layout.study};
  const auto study = store.get_study(key);
  if (study.ok()) return success();
  if (study.error().code != ErrorCode::kNotFound) return study.error();
  FETTLE_ASSIGN(const auto trials, store.list_trials(key));
  if (!trials.empty()) {
    return io_error(layout.database() + " holds " + std::to_string(trials.size()) +
                    " trials and not their Study" + kWayOut);
  }
  const std::string trial = trial_with_runs(layout);
  if (trial.empty()) return success();  // a new Study
  return io_error(layout.database() + " is empty although trials have run (" +
                  layout.trial_directory(trial) + ")" + kWayOut);
}

}  // namespace fettle::local
