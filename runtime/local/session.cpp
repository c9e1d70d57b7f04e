#include "runtime/local/session.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "api/fields/quantity.h"
#include "base/file.h"
#include "base/machine/open_files.h"
#include "runtime/local/process/supervisor_client.h"
#include "runtime/local/store/private_root.h"

namespace fettle::local {
namespace {

constexpr std::int64_t kMinReportedSkewMs = 60'000;  // clocks often differ by less

}  // namespace

std::string find_trainer() {
  const char* const chosen = std::getenv("FETTLE_TRAINER");
  std::error_code code;
  if (chosen != nullptr && *chosen != '\0') {
    const std::string path = chosen;
    const bool is_path = path.find('/') != std::string::npos;  // else looked up in PATH
    return is_path ? std::filesystem::absolute(path, code).string() : path;
  }
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path beside = self.parent_path() / "fettle-trainer";
  if (!code && std::filesystem::exists(beside, code)) return beside.string();
  return "fettle-trainer";  // from PATH; if it is not there either, the run says so
}

namespace {

// Sets times in the future back, and reports every fault of the store.
Status repair_clock_skew(SqliteStore& store, const SessionOptions& options) {
  std::vector<std::string> words = store.warnings();
  FETTLE_ASSIGN(const std::int64_t ahead_ms, store.clamp_future_times());
  if (ahead_ms > kMinReportedSkewMs) {
    words.push_back("times of this Study lay up to " + api::format_duration(ahead_ms / 1000.0) +
                    " in the future: a clock was fast then, or is slow now. They are set back to "
                    "the present");
  }
  if (!options.say) return success();
  for (const std::string& sentence : words) options.say(sentence);
  return success();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  const Layout layout = make_layout(options.root, options.study);
  Status made = make_private_root(layout.root);
  // Any other error already names its way out.
  if (!made.ok() && made.error().code != ErrorCode::kIo) return made.error();
  if (made.ok()) made = make_directories(layout.study_directory());
  if (!made.ok()) {
    return io_error(made.error().message +
                    "; fettle keeps a Study's state there, so run it in a directory that can be "
                    "written");
  }
  FETTLE_ASSIGN(StudyLock lock,
                StudyLock::acquire(layout.lock(), {options.lock_wait_ms, options.say}));
  std::unique_ptr<Session> session(new Session(layout, std::move(lock)));
  // The supervisor first: it is forked while this process is small.
  FETTLE_ASSIGN(
      auto supervisor,
      SupervisorClient::start(options.executable, layout.study_directory(), session->lock_.fd()));
  FETTLE_ASSIGN(session->store_, SqliteStore::open(layout.database(), SqliteStore::Mode::kReadWrite,
                                                   session->clock_));
  FETTLE_TRY(repair_clock_skew(*session->store_, options));
  const std::string trainer = options.trainer.empty() ? find_trainer() : options.trainer;
  // Each run that waits has a file open. The supervisor was started before: it gives trials the
  // limit that it found.
  machine::raise_open_files();
  auto claims =
      std::make_unique<Claims>(options.study, options.room ? *options.room : this_machine(),
                               options.claims.value_or(claims_directory()));
  const FindMetricOptions find_metric_options =
      [store = session->store_.get()](
          const api::Trial& trial) -> std::optional<runtime::MetricLinesOptions> {
    const Result<api::Study> study = store->get_study({trial.metadata.ns, trial.spec.study});
    if (!study.ok()) return std::nullopt;
    return runtime::metric_options(*study);
  };
  session->runs_ = std::make_unique<ProcessRuns>(
      ProcessRunsOptions{layout, trainer, options.directory, find_metric_options},
      std::move(supervisor), std::move(claims));
  // A thread that serves the runs may not have started.
  const std::string failure = session->runs_->failure();
  if (!failure.empty()) return Error{ErrorCode::kUnavailable, failure};
  return session;
}

Session::~Session() = default;

}  // namespace fettle::local
