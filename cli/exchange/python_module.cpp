#include "cli/exchange/python_module.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace fettle::cli {
namespace {

// Beside an installed program, then beside a build folder of the sources.
constexpr const char* kPackages[] = {"../share/fettle/python", "../../python"};

std::string interpreter() {
  const char* const chosen = std::getenv("FETTLE_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

// The folder with this program's package `fettle`; "" if only Python itself may have one.
std::string package_folder() {
  std::error_code code;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", code);
  for (const char* const relative : kPackages) {
    const std::filesystem::path folder = self.parent_path() / relative;
    if (!std::filesystem::exists(folder / "fettle/__init__.py", code)) continue;
    return folder.lexically_normal().string();
  }
  return "";
}

std::vector<std::string> environment() {
  std::vector<std::string> out;
  std::string path = package_folder();
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    constexpr std::string_view kPath = "PYTHONPATH=";
    if (text.starts_with(kPath)) {
      const std::string_view value = text.substr(kPath.size());
      path += (path.empty() || value.empty() ? "" : ":") + std::string(value);
    } else {
      out.emplace_back(text);
    }
  }
  if (!path.empty()) out.push_back("PYTHONPATH=" + path);
  out.emplace_back("PYTHONSAFEPATH=1");  // a file optuna.py in the working directory is not Optuna
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Error cannot_start(const std::string& python, int code) {
  return {ErrorCode::kUnavailable, "cannot start " + python + ": " + system_message(code) +
                                       "; FETTLE_PYTHON names another Python (3.9 or newer)"};
}

}  // namespace

Result<PythonModule> PythonModule::start(const std::string& name,
                                         const std::vector<std::string>& arguments) {
  // A socket, because send() can be told not to raise SIGPIPE.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return io_error("cannot make a socket: " + system_message(errno));
  }
  std::vector<std::string> line = {interpreter(), "-m", name};
  line.insert(line.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  pid_t pid = 0;
  const int code = ::posix_spawnp(&pid, line[0].c_str(), &actions, nullptr,
                                  pointers_to(line).data(), pointers_to(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (code == 0) return PythonModule(pid, ends[0]);
  ::close(ends[0]);
  return cannot_start(line[0], code);
}

PythonModule::PythonModule(PythonModule&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), input_(std::exchange(other.input_, -1)) {}

PythonModule::~PythonModule() {
  if (pid_ > 0) (void)finish();
}

bool PythonModule::write_line(std::string_view document) {
  std::string bytes(document);
  bytes += '\n';
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t sent = ::send(input_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<int> PythonModule::finish() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
  int status = 0;
  const pid_t pid = std::exchange(pid_, 0);
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return io_error("cannot wait for Python: " + system_message(errno));
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Error{ErrorCode::kUnavailable,
               "Python was ended by signal " + std::to_string(WTERMSIG(status))};
}

}  // namespace fettle::cli
