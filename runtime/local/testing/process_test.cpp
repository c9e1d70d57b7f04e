#include "runtime/local/testing/process_test.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/file.h"

namespace fettle::local {

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

api::Study shell_study(const std::string& script) {
  api::Study study;
  study.metadata.name = "s";
  study.metadata.uid = "study-uid";
  study.spec.objectives = {{"loss", api::Direction::kMinimize, {}, api::Take::kLast}};
  study.spec.trial.grace_period = 0.3;
  Json container = Json::object({{"name", "trainer"}});
  // As in a Study, "$$" stands for "$" (expand.h).
  std::string escaped;
  for (const char c : script) escaped += c == '$' ? "$$" : std::string(1, c);
  container.set("command", Json(Json::Array{"/bin/sh", "-c", escaped}));
  study.spec.trial.pod_template = Json::object(
      {{"spec", Json::object({{"containers", Json(Json::Array{std::move(container)})}})}});
  return study;
}

api::Trial shell_trial(std::int64_t index) {
  api::Trial trial;
  trial.metadata.name = "s-" + std::to_string(index);
  trial.metadata.uid = "trial-uid-" + std::to_string(index);
  trial.spec.study = "s";
  trial.spec.index = index;
  api::RunRecord record;
  record.run = 1;
  trial.status.runs = {record};
  return trial;
}

SessionOptions session_options(const std::string& root, const std::string& study) {
  SessionOptions options;
  options.root = root;
  options.study = study;
  options.lock_wait_ms = 240'000;
  options.room = Room{};
  options.room->cores = 1000;
  options.claims = root + "/machine";
  return options;
}

Result<std::unique_ptr<Session>> open_session(const std::string& root) {
  return Session::open(session_options(root));
}

std::vector<pid_t> pids_in(const std::string& path) {
  std::vector<pid_t> pids;
  std::ifstream file(path);
  for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  return pids;
}

bool is_alive(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat.ok()) return false;
  const std::size_t close = stat->rfind(')');
  return close != std::string::npos && stat->substr(close, 4).find('Z') == std::string::npos;
}

int run_victim(const std::string& root) {
  auto session = open_session(root);
  if (!session.ok()) return 3;
  // Three processes: one ignores SIGTERM, one is in its own session, and one is forked twice with
  // an empty environment.
  const api::Study study =
      shell_study("trap '' TERM; echo $$ >> " + root + "/pids; setsid sleep 100 & echo $! >> " +
                  root + "/pids; (env -i sleep 100 & echo $! >> " + root +
                  "/pids); echo '{\"step\": 1, \"loss\": 0.5}'; echo >> " + root +
                  "/ready; sleep 100; sleep 100");
  if (!(*session)->runs().start(study, shell_trial(), 1).ok()) return 3;
  ::pause();
  return 0;
}

}  // namespace fettle::local
