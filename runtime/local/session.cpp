#include "runtime/local/session.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "runtime/local/supervisor_client.h"

namespace fettle::local {
std::string find_trainer() {
  const char* const chosen = std::getenv("FETTLE_TRAINER");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code code;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path beside = self.parent_path() / "fettle-trainer";
  if (!code && std::filesystem::exists(beside, code)) return beside.string();
  return "fettle-trainer";  // from PATH; if it is not there either, the run says so
}

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  const Layout layout = make_layout(options.root, options.study);
  if (Status made = make_directories(layout.study_directory()); !made.ok()) {
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
  const std::string trainer = options.trainer.empty() ? find_trainer() : options.trainer;
  session->runs_ = std::make_unique<ProcessRuns>(layout, trainer, std::move(supervisor));
  return session;
}

Session::~Session() = default;

}  // namespace fettle::local
