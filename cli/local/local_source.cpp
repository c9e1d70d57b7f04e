#include "cli/local/local_source.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.h"
#include "cli/common/asked.h"
#include "cli/terminal/text.h"
#include "core/conditions.h"
#include "core/control/clock.h"
#include "runtime/local/log/trial_log_reader.h"
#include "runtime/local/store/deletion.h"
#include "runtime/local/store/missing_study.h"
#include "runtime/local/store/pruning.h"
#include "runtime/local/store/scaling.h"
#include "runtime/local/store/sqlite_store.h"
#include "runtime/local/store/study_lock.h"
#include "runtime/local/worker/worker_list.h"

namespace fettle::cli {
namespace {

constexpr std::int64_t kMostEvents = 1000;
constexpr std::int64_t kFileClockMs = 50;
constexpr auto kFollowInterval = std::chrono::milliseconds(200);
// Two signals may count as one if they come faster than a runner looks for them.
constexpr auto kBetweenSignals = std::chrono::milliseconds(300);

TimelineEntry entry_of(const local::StoredEvent& event) {
  TimelineEntry entry;
  entry.at_ms = event.at_ms;
  entry.warning = event.warning;
  entry.text = event.name + ' ' + event.reason + ": " + printable(event.message);
  entry.data = Json::object({{"event", event.reason},
                             {"timeMs", event.at_ms},
                             {"about", event.name},
                             {"warning", event.warning},
                             {"message", event.message}});
  return entry;
}

// Returns when the study's records last changed.
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

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// .fettle is private to its user (store/private_root.h): to others it must not look empty.
Status check_readable(const std::string& root) {
  if (::access(root.c_str(), R_OK | X_OK) == 0 || errno != EACCES) return success();
  return io_error(root + " cannot be read: " + system_message(errno) +
                  "; it is kept from other users until its own opens it (chmod)");
}

// The state of a followed run.
enum class Life { kRuns, kEnded, kAbandoned };

// Abandoned: fettle run and its supervisor are gone, and no record tells how the run ended. The
// lock is checked before the outcome, which the last of them writes before it releases the lock.
Life life_of(const local::Layout& layout, const std::string& trial, std::int64_t run) {
  const bool held = local::StudyLock::is_held(layout.lock());
  if (exists(layout.outcome_file(trial, run))) return Life::kEnded;
  if (!held) return Life::kAbandoned;
  const std::vector<std::int64_t> runs = local::recorded_runs(layout, trial);
  // A later run begins only after this one has ended; its outcome was lost with its supervisor.
  return runs.empty() || runs.back() > run ? Life::kAbandoned : Life::kRuns;
}

Status follow_run(const local::Layout& layout, const std::string& trial, std::int64_t run,
                  const LogPrinter& print, const std::stop_token& stop) {
  local::TrialLogReader reader(layout.log_file(trial, run));
  for (;;) {
    // Read before the log, so that output at the end of a run is not missed.
    const Life life = life_of(layout, trial, run);
    FETTLE_TRY(reader.read(life != Life::kRuns, print));  // true: no more output will come
    if (life == Life::kEnded || stop.stop_requested()) return success();
    if (life == Life::kAbandoned) {
      return Error{ErrorCode::kUnavailable,
                   "run " + std::to_string(run) + " of " + trial +
                       " was cut off: fettle run and its supervisor were killed; this is all that "
                       "it printed until then"};
    }
    std::this_thread::sleep_for(kFollowInterval);
  }
}

std::string known_runs(const std::vector<std::int64_t>& runs) {
  std::string text;
  for (const std::int64_t run : runs) text += (text.empty() ? "" : ", ") + std::to_string(run);
  return text;
}

// Returns the process that runs the study. kInvalid, in words: nothing to stop. kUnavailable: out
// of reach.
Result<pid_t> runner_of(const local::Layout& layout, const RunView& view) {
  const std::string study = "study " + layout.study;
  const std::string state = state_of(view);
  const pid_t runner = local::StudyLock::holder(layout.lock());
  if (runner == local::StudyLock::kElsewhere) {
    return Error{ErrorCode::kUnavailable,
                 study + " runs on another machine, which shares this directory; stop it there"};
  }
  if (runner != 0) return runner;  // 0: no fettle run holds the lock
  if (local::StudyLock::is_held(layout.lock())) {
    return Error{ErrorCode::kUnavailable, study + " is stopping already"};
  }
  return invalid(study + " is not running: it is " + state);
}

// Size and time of a file's last change, and which file it is; "-" if it does not exist.
std::string stamp_of_file(const std::string& path, std::int64_t now_ms) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return "-";
  const std::int64_t changed_ms =
      std::int64_t{file.st_mtim.tv_sec} * 1000 + file.st_mtim.tv_nsec / 1'000'000;
  std::string stamp = std::to_string(file.st_ino) + ' ' + std::to_string(file.st_size) + ' ' +
                      std::to_string(file.st_mtim.tv_sec) + '.' +
                      std::to_string(file.st_mtim.tv_nsec);
  // The clock of files ticks slowly: a file that has just changed may change unseen.
  if (std::abs(now_ms - changed_ms) < kFileClockMs) stamp += " at " + std::to_string(now_ms);
  return stamp;
}

ino_t inode_of(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

}  // namespace

struct LocalSource::Kept {
  std::string path;
  ino_t inode = 0;
  std::unique_ptr<local::SqliteStore> store;
};

LocalSource::LocalSource(std::string root) : root_(std::move(root)) {}
LocalSource::~LocalSource() = default;

LogHint log_files_of(const local::Layout& layout) {
  return
      [layout](const std::string& trial, std::int64_t run) { return layout.log_file(trial, run); };
}

// Searches the folders above, as git does for its own. An explicit -C is taken as it is.
std::string LocalSource::elsewhere() const {
  if (root_ != ".fettle") return "";
  std::error_code code;
  std::string up = "..";
  const std::filesystem::path here = std::filesystem::current_path(code);
  const auto depth = std::distance(here.begin(), here.end());
  for (std::ptrdiff_t i = 1; i < depth; ++i, up += "/..") {
    if (local::recorded_studies(up + "/.fettle").empty()) continue;
    return "; there are some in " + up + "/.fettle (-C " + up + ")";
  }
  return "";
}

Result<std::vector<std::string>> LocalSource::names() {
  FETTLE_TRY(check_readable(root_));
  return local::recorded_studies(root_);
}

// Skips a study whose store cannot be read, unless it is the only one.
Result<std::string> LocalSource::newest() {
  FETTLE_ASSIGN(const std::vector<std::string> names, names());
  std::pair<std::int64_t, std::string> newest{-1, names.empty() ? "" : names.front()};
  for (const std::string& name : names) {
    const auto store = local::SqliteStore::open(local::make_layout(root_, name).database(),
                                                local::SqliteStore::Mode::kReadOnly);
    if (!store.ok()) continue;
    const auto study = (*store)->get_study({"", name});
    if (study.ok()) newest = std::max(newest, {study->metadata.created_ms, name});
  }
  return newest.second;
}

std::string LocalSource::stamp(const std::string& study) {
  const local::Layout layout = local::make_layout(root_, study);
  const std::int64_t now_ms = control::SystemClock().now_ms();
  return stamp_of_file(layout.database(), now_ms) + ' ' +
         stamp_of_file(layout.database() + "-wal", now_ms) + ' ' +
         std::to_string(local::StudyLock::holder(layout.lock()));
}

Error LocalSource::no_such(const std::string& study) {
  std::vector<std::string> others = local::recorded_studies(root_);
  std::erase(others, study);
  const std::string hint = "-C says where to look" + (others.empty() ? elsewhere() : "");
  return no_such_study(study, place(), others, hint);
}

// A file that has taken the place of another one is opened anew.
Result<local::SqliteStore*> LocalSource::store_of(const local::Layout& layout) {
  const std::string path = layout.database();
  const ino_t inode = inode_of(path);
  if (kept_ != nullptr && kept_->path == path && kept_->inode == inode && inode != 0) {
    return kept_->store.get();
  }
  kept_.reset();
  FETTLE_ASSIGN(auto store, local::SqliteStore::open(path, local::SqliteStore::Mode::kReadOnly));
  for (const std::string& warning : store->warnings()) {
    if (said_.insert(warning).second) std::cerr << "fettle: " << printable(warning) << '\n';
  }
  kept_ = std::make_unique<Kept>(Kept{path, inode, std::move(store)});
  return kept_->store.get();
}

Result<SeenStudy> LocalSource::read(const std::string& name, Detail detail) {
  FETTLE_TRY(check_readable(root_));
  const local::Layout layout = local::make_layout(root_, name);
  SeenStudy seen{{}, log_files_of(layout), control::SystemClock().now_ms()};
  const auto store = store_of(layout);
  if (!store.ok() && store.error().code == ErrorCode::kNotFound) return no_such(name);
  if (!store.ok()) return store.error();
  const control::Key key{"", name};
  auto study = (*store)->get_study(key);
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) {
    FETTLE_TRY(local::check_has_study(**store, layout));
    return not_found("study " + printable(name) + " has not begun: " + layout.database() +
                     " is empty; fettle run begins it");
  }
  if (!study.ok()) return study.error();
  FETTLE_ASSIGN(seen.view.trials, (*store)->list_trials(key));
  if (detail == Detail::kWithEvents) {
    FETTLE_ASSIGN(const auto events, (*store)->list_events(key, kMostEvents));
    for (const auto& event : events) seen.view.timeline.push_back(entry_of(event));
  }
  seen.view.study = *std::move(study);
  seen.view.interrupted =
      state_of(seen.view.study) == "running" && local::StudyLock::holder(layout.lock()) == 0;
  seen.view.now_ms = seen.view.interrupted ? last_sign_of_life(seen.view) : seen.now_ms;
  bring_up_to_date(seen.view);
  seen.view.workers = local::describe(local::read_workers(layout));
  return seen;
}

Status LocalSource::print_log(const std::string& trial, std::optional<std::int64_t> wanted,
                              bool follow, const LogPrinter& print) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study_of(*this, trial));
  const auto until_its_end = follow ? std::optional(std::stop_token()) : std::nullopt;
  return print_run(seen, trial, wanted, until_its_end, print);
}

Status LocalSource::follow_log(const std::string& trial, const LogPrinter& print,
                               std::stop_token stop) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study_of(*this, trial));
  return print_run(seen, trial, std::nullopt, std::move(stop), print);
}

Status LocalSource::print_newest_log(const SeenStudy& seen, const std::string& trial,
                                     const LogPrinter& print) {
  return print_run(seen, trial, std::nullopt, std::nullopt, print);
}

Status LocalSource::print_run(const SeenStudy& seen, const std::string& trial,
                              std::optional<std::int64_t> wanted,
                              std::optional<std::stop_token> follow,
                              const LogPrinter& print) const {
  const local::Layout layout = local::make_layout(root_, seen.view.study.metadata.name);
  const std::vector<std::int64_t> runs = local::recorded_runs(layout, trial);
  const api::Trial* known = find_trial(seen.view.trials, trial);
  const bool has_run = known != nullptr && newest_run(*known) != nullptr;
  if (runs.empty() && has_run) {
    return not_found("the logs of " + trial + " were removed: of a study that has ended " +
                     std::to_string(local::kMostRunBytes >> 30) + " GiB of logs are kept");
  }
  if (runs.empty()) return not_found(trial + " has not run yet");
  const std::int64_t run = wanted.value_or(runs.back());
  if (std::ranges::find(runs, run) == runs.end()) {
    return not_found(trial + " has no run " + std::to_string(run) +
                     "; there are: " + known_runs(runs));
  }
  const std::string path = layout.log_file(trial, run);
  if (!exists(path)) {
    return io_error(path +
                    " is not there; the run may have printed nothing, or its log was removed");
  }
  if (follow) return follow_run(layout, trial, run, print, *follow);
  const bool ended = exists(layout.outcome_file(trial, run));
  return local::TrialLogReader(path).read(ended, print);  // not ended: prints the log so far
}

Status LocalSource::scale(const std::string& trial, std::int64_t workers) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study_of(*this, trial));
  return local::request_workers(local::make_layout(root_, seen.view.study.metadata.name),
                                {trial, workers});
}

// A runner stops gently at the first signal and kills at the second. Not SIGINT, which a shell
// without a terminal ignores for its jobs in the background.
Result<std::string> LocalSource::stop(const std::string& name, bool now) {
  FETTLE_ASSIGN(const SeenStudy seen, read(name, Detail::kObjects));
  const local::Layout layout = local::make_layout(root_, name);
  FETTLE_ASSIGN(const pid_t runner, runner_of(layout, seen.view));
  for (int signals = now ? 2 : 1; signals > 0; --signals) {
    if (::kill(runner, SIGTERM) != 0 && errno != ESRCH) {  // ESRCH: it has ended meanwhile
      return io_error("cannot signal process " + std::to_string(runner) + ", which runs study " +
                      name + ": " + system_message(errno));
    }
    if (signals > 1) std::this_thread::sleep_for(kBetweenSignals);
  }
  while (local::StudyLock::is_held(layout.lock())) std::this_thread::sleep_for(kFollowInterval);
  FETTLE_ASSIGN(const SeenStudy ended, read(name, Detail::kObjects));
  if (core::is_finished(ended.view.study.status)) {
    return "study " + name + " ended by itself before it stopped: it has " + state_of(ended.view);
  }
  const std::string resume = is_asked(ended.view.study.spec)
                                 ? "its program resumes it with fettle suggest --study " + name
                                 : "fettle run FILE resumes it";
  return "study " + name + " has stopped and nothing is lost; " + resume;
}

Status LocalSource::remove(const std::string& name) {
  FETTLE_TRY(check_readable(root_));
  const local::Layout layout = local::make_layout(root_, name);
  if (!exists(layout.database())) return no_such(name);
  if (local::StudyLock::is_held(layout.lock())) {
    return Error{ErrorCode::kUnavailable,
                 "study " + name + " is running; stop it first: fettle stop " + name};
  }
  kept_.reset();
  return local::delete_study(layout);
}

}  // namespace fettle::cli
