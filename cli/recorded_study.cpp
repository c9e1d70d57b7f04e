#include "cli/recorded_study.h"

#include <algorithm>
#include <utility>

#include "cli/text.h"
#include "control/clock.h"
#include "runtime/local/sqlite_store.h"
#include "runtime/local/study_lock.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostEvents = 1000;
constexpr std::size_t kMostNamed = 10;

Happening happening_of(const local::StoredEvent& event) {
  Happening happening;
  happening.at_ms = event.at_ms;
  happening.warning = event.warning;
  happening.text = event.name + ' ' + event.reason + ": " + printable(event.message);
  happening.data = Json::object({{"event", event.reason},
                                 {"timeMs", event.at_ms},
                                 {"about", event.name},
                                 {"warning", event.warning},
                                 {"message", event.message}});
  return happening;
}

// When something was last written about the study.
std::int64_t last_sign_of_life(const RunView& view) {
  std::int64_t at_ms = view.study.status.updated_ms;
  for (const api::TrialPtr& trial : view.trials) {
    if (trial->status.report) at_ms = std::max(at_ms, trial->status.report->at_ms);
    if (const api::RunRecord* run = newest_run(*trial)) {
      at_ms = std::max({at_ms, run->running_ms, run->ended_ms});
    }
  }
  return at_ms;
}

}  // namespace

Error no_such_study(const std::string& root, const std::string& name) {
  const std::vector<std::string> studies = local::recorded_studies(root);
  std::string message = "no study '" + printable(name) + "' in " + root;
  if (studies.empty()) return not_found(message + ", nor any other; -C says where to look");
  message += "; there are: ";
  for (std::size_t i = 0; i < studies.size() && i < kMostNamed; ++i) {
    message += (i > 0 ? ", " : "") + studies[i];
  }
  return not_found(message + (studies.size() > kMostNamed ? ", ..." : ""));
}

Result<RecordedStudy> read_recorded_study(const std::string& root, const std::string& name) {
  RecordedStudy recorded{local::make_layout(root, name), {}, control::SystemClock().now_ms()};
  auto store =
      local::SqliteStore::open(recorded.layout.database(), local::SqliteStore::Mode::kReadOnly);
  if (!store.ok() && store.error().code == ErrorCode::kNotFound) return no_such_study(root, name);
  if (!store.ok()) return store.error();
  const control::Key key{"", name};
  auto study = (*store)->get_study(key);
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) return no_such_study(root, name);
  if (!study.ok()) return study.error();
  FETTLE_ASSIGN(recorded.view.trials, (*store)->list_trials(key));
  FETTLE_ASSIGN(const auto events, (*store)->list_events(key, kMostEvents));
  for (const auto& event : events) recorded.view.happenings.push_back(happening_of(event));
  recorded.view.study = *std::move(study);
  recorded.view.interrupted = state_of(recorded.view.study) == "running" &&
                              local::StudyLock::holder(recorded.layout.lock()) == 0;
  recorded.view.now_ms =
      recorded.view.interrupted ? last_sign_of_life(recorded.view) : recorded.now_ms;
  bring_up_to_date(recorded.view);
  return recorded;
}

}  // namespace fettle::cli
