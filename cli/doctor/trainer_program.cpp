#include "cli/doctor/trainer_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "runtime/local/session.h"

namespace fettle::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, Close>;

std::string content_of(std::FILE* file) {
  if (std::fseek(file, 0, SEEK_SET) != 0) return {};
  std::string text;
  std::array<char, 4096> block{};
  for (std::size_t got = 0; (got = std::fread(block.data(), 1, block.size(), file)) > 0;) {
    text.append(block.data(), got);
  }
  return text;
}

// Returns the exit code of the program, or minus the number of the signal that ended it.
Result<int> run_to_end(const std::vector<std::string>& command, const std::string& directory,
                       int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  if (!directory.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return io_error("cannot start " + command[0] + ": " + system_message(failed));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

Result<Json> ask_trainer(const std::vector<std::string>& arguments, const std::string& directory) {
  std::vector<std::string> command = {local::find_trainer()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const TemporaryFile out(std::tmpfile());
  const TemporaryFile err(std::tmpfile());
  if (!out || !err) return io_error("cannot make a temporary file: " + system_message(errno));
  FETTLE_ASSIGN(const int code,
                run_to_end(command, directory, ::fileno(out.get()), ::fileno(err.get())));
  if (code != 0) {
    std::string said = content_of(err.get());
    while (!said.empty() && said.back() == '\n') said.pop_back();
    if (said.empty()) said = command[0] + " ended with " + std::to_string(code);
    return invalid(said);
  }
  auto answer = parse_json(content_of(out.get()));
  if (!answer.ok()) return io_error(command[0] + " printed no JSON: " + answer.error().message);
  return answer;
}

}  // namespace fettle::cli
