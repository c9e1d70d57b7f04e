#include "cli/e2e/workshop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "base/test_paths.h"

namespace fettle::e2e {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void redirect(const std::string& path, int flags, int fd) {
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0 || ::dup2(file, fd) < 0) ::_exit(127);
}

// Runs between fork and exec.
[[noreturn]] void become_fettle(const std::string& directory, const std::string& files,
                                const std::vector<int>& ignored, std::vector<char*> words) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  for (const int signal : ignored) ::signal(signal, SIG_IGN);
  if (::chdir(directory.c_str()) != 0) ::_exit(127);
  ::setpgid(0, 0);
  redirect(files + ".in", O_RDONLY, STDIN_FILENO);
  redirect(files + ".out", O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(files + ".err", O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(127);
}

std::string indented(const std::string& text, const std::string& margin) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += margin + line + '\n';
  return out;
}

}  // namespace

std::string StudyText::yaml() const {
  const std::string more = goal.empty() ? "" : ", " + goal;
  return "apiVersion: fettle.dev/v1alpha1\n"
         "kind: Study\n"
         "metadata: {name: " +
         name +
         "}\n"
         "spec:\n"
         "  objectives: [{metric: value, direction: Maximize" +
         more +
         "}]\n"
         "  parameters: [{name: x, type: Double, min: 0, max: 1}]\n"
         "  resource: {unit: step, min: 1, max: " +
         std::to_string(steps) + "}\n  " + search +
         "\n"
         "  budget: " +
         budget +
         "\n"
         "  trial:\n" +
         trial +
         "    template:\n"
         "      spec:\n"
         "        containers:\n"
         "        - name: trial\n"
         "          command: [/bin/sh, -c]\n"
         "          resources: " +
         resources +
         "\n"
         "          args:\n"
         "          - |\n" +
         indented(script, "            ");
}

Workshop::Workshop() {
  std::string name = (fs::temp_directory_path() / "fettle-e2e-XXXXXX").string();
  CHECK(::mkdtemp(name.data()) != nullptr, "no temporary directory");
  directory_ = name;
  // Separates these trials from other tests' use of the machine.
  ::setenv("FETTLE_MACHINE_DIR", path("machine").c_str(), 1);
}

Workshop::~Workshop() {
  for (const pid_t pid : started_) {
    if (pid == 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  for (const pid_t pid : trial_processes()) ::kill(pid, SIGKILL);
  wait_until_no_trial_runs();
  std::error_code ignored;
  fs::permissions(directory_, fs::perms::owner_all, ignored);
  fs::remove_all(directory_, ignored);
}

void Workshop::write(const std::string& name, const std::string& content) const {
  fs::create_directories(fs::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << content;
}

std::string Workshop::read(const std::string& name) const { return slurp(path(name)); }

bool Workshop::exists(const std::string& name) const { return fs::exists(path(name)); }

std::size_t Workshop::count_lines(const std::string& name) const {
  const std::string text = read(name);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

Finished Workshop::fettle(const std::vector<std::string>& arguments, const std::string& input) {
  return finish(start(arguments, input));
}

pid_t Workshop::start(const std::vector<std::string>& arguments, const std::string& input) {
  std::vector<std::string> words = {program_path("fettle")};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string files = files_of(started_.size());
  std::ofstream(files + ".in", std::ios::binary) << input;
  const pid_t pid = ::fork();
  CHECK(pid >= 0, "no process");
  if (pid == 0) become_fettle(directory_, files, ignored_, pointers);
  started_.push_back(pid);
  return pid;
}

Finished Workshop::finish(pid_t pid) {
  const std::size_t command = command_of(pid);
  int status = 0;
  const bool ended = wait_until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; });
  if (!ended) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
  }
  const std::string files = files_of(command);
  Finished finished{-1, slurp(files + ".out"), slurp(files + ".err")};
  if (ended) finished.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  started_[command] = 0;  // keeps the numbers of the files
  return finished;
}

std::string Workshop::files_of(std::size_t command) const {
  return path(".child-" + std::to_string(command));
}

std::size_t Workshop::command_of(pid_t pid) const {
  const auto at = std::ranges::find(started_, pid);
  CHECK(at != started_.end(), "not started here");
  return static_cast<std::size_t>(at - started_.begin());
}

pid_t Workshop::run_until_begun(const StudyText& study, std::size_t lines) {
  write("study.yaml", study.yaml());
  const pid_t runner = start({"run", "study.yaml"});
  EXPECT_TRUE(wait_for_lines("began", lines)) << read("began");
  return runner;
}

Finished Workshop::interrupt(pid_t pid, int signal) {
  ::kill(pid, signal);
  return finish(pid);
}

bool Workshop::wait_until(const std::function<bool()>& holds) const {
  const auto deadline = Clock::now() + std::chrono::seconds(kPatience);
  while (!holds()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool Workshop::wait_for_lines(const std::string& name, std::size_t lines) const {
  return wait_until([&] { return count_lines(name) >= lines; });
}

bool Workshop::wait_until_no_trial_runs() const {
  return wait_until([this] { return trial_processes().empty(); });
}

bool Workshop::wait_until_said(pid_t pid, const std::string& text) const {
  const std::string out = files_of(command_of(pid)) + ".out";
  return wait_until([&] { return slurp(out).find(text) != std::string::npos; });
}

Json Workshop::trials(const std::string& study) {
  const auto parsed = parse_json(fettle({"trials", study, "--output", "json"}).out);
  return parsed.ok() ? *parsed : Json::array();
}

std::size_t Workshop::count_phase(const std::string& phase, const std::string& study) {
  std::size_t count = 0;
  const Json list = trials(study);
  for (const Json& trial : list.as_array()) {
    const Json* found = trial.find("status")->find("phase");
    if (found != nullptr && *found == Json(phase)) ++count;
  }
  return count;
}

std::vector<pid_t> Workshop::descendants(pid_t pid) const {
  std::vector<pid_t> found = {pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string tasks = "/proc/" + std::to_string(found[i]) + "/task";
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(tasks, ignored)) {
      std::istringstream children(slurp(entry.path().string() + "/children"));
      for (pid_t child = 0; children >> child;) found.push_back(child);
    }
  }
  found.erase(found.begin());
  return found;
}

std::vector<pid_t> Workshop::trial_processes() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = slurp(entry.path().string() + "/environ");
    if (environment.find("FETTLE_TRIAL=" + directory_) == std::string::npos) continue;
    found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

Json result_of(const Finished& finished) {
  std::string last;
  std::istringstream in(finished.out);
  for (std::string line; std::getline(in, line);) last = line;
  const auto parsed = parse_json(last);
  const Json* result = parsed.ok() ? parsed->find("result") : nullptr;
  return result == nullptr ? Json::object() : *result;
}

std::string idx_file(const std::vector<int>& dimensions) {
  std::string file = {0, 0, 8, static_cast<char>(dimensions.size())};
  int bytes = 1;
  for (const int size : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>((size >> shift) & 255);
    bytes *= size;
  }
  for (int i = 0; i < bytes; ++i) file += static_cast<char>(i % 3);
  return file;
}

}  // namespace fettle::e2e
