#include "cli/serve/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>

#include "base/file.h"
#include "base/http/http_server.h"
#include "cli/common/exit_code.h"
#include "cli/common/interrupt.h"
#include "cli/serve/service.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

constexpr int kTickMs = 250;

Result<std::string> random_text(std::size_t bytes) {
  std::string random(bytes, '\0');
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(bytes)) {
    return io_error("the system gives no random bytes");
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : random) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Result<std::string> token_of(const ServeSettings& settings) {
  if (settings.token_file.empty()) return random_text(16);
  FETTLE_ASSIGN(std::string token, read_file(settings.token_file));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const Status checked = check_token(token);
  if (!checked.ok()) return Error(checked.error()).in(settings.token_file);
  return token;
}

Result<std::uint16_t> listen_on_port(HttpServer& server, const HttpServer::Handler& handler,
                                     std::optional<std::uint16_t> wanted) {
  auto port = server.listen(wanted.value_or(kServePort), handler, Reach::kThisMachine);
  if (port.ok()) return port;
  if (!wanted) return server.listen(0, handler, Reach::kThisMachine);
  return Error{ErrorCode::kUnavailable,
               port.error().message + "; --port takes another one, 0 any that is free"};
}

// The browser's own output would mix with the address.
Status start_browser(const std::string& url) {
  std::string program = "xdg-open";
  std::string address = url;
  char* const arguments[] = {program.data(), address.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  }
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return success();
  return io_error("--open needs xdg-open: " + std::string(std::strerror(error)) +
                  "; open the address yourself");
}

std::string announcement(const ServeSettings& settings, std::uint16_t port,
                         const std::string& query) {
  const bool by_socket = !settings.socket.empty();
  const std::string url = "http://127.0.0.1:" + std::to_string(by_socket ? kServePort : port) +
                          '/' + (settings.token_file.empty() ? query : "");
  std::string text = "The studies " + printable(settings.place) + " are at\n\n  " + url + "\n\n";
  if (by_socket) {
    text += "once your machine forwards the port:\n\n  ssh -L " + std::to_string(kServePort) + ':' +
            shell_word(settings.socket) + " HOST\n\n";
  }
  if (!settings.token_file.empty()) {
    text += "for those who send the token in " + printable(settings.token_file) + ".\n";
  }
  return text + "Ctrl-C ends the pages, and no study.\n";
}

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void serve_until_signal(Interrupt& interrupt, Service& service) {
  while (interrupt.take() == 0) {
    service.tick(steady_ms());
    pollfd one{.fd = interrupt.fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&one, 1, kTickMs);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // the browser's starter
    }
  }
}

}  // namespace

Result<int> serve(const MakeSource& make_source, const ServeSettings& settings) {
  FETTLE_ASSIGN(const std::string token, token_of(settings));
  FETTLE_ASSIGN(const std::string mark, random_text(4));
  FETTLE_ASSIGN(const auto interrupt, Interrupt::install());
  const Access access(token, "fettle-" + mark);
  ServiceOptions options{settings.only, settings.study_poll_ms, settings.list_poll_ms,
                         std::stoull(mark, nullptr, 16) << 20};
  Service service(access, make_source, std::move(options));
  FETTLE_TRY(service.start());
  HttpServer server;
  const auto handler = [&service](const HttpRequest& request) { return service.answer(request); };
  std::uint16_t port = 0;
  if (settings.socket.empty()) {
    FETTLE_ASSIGN(port, listen_on_port(server, handler, settings.port));
  } else {
    FETTLE_TRY(server.listen(settings.socket, handler));
  }
  FETTLE_TRY(server.start());
  std::cout << announcement(settings, port, access.query()) << std::flush;
  if (settings.open) {
    FETTLE_TRY(start_browser("http://127.0.0.1:" + std::to_string(port) + '/' + access.query()));
  }
  serve_until_signal(*interrupt, service);
  server.stop();
  // Nothing is left to do: threads that still wait for an API server or fit a model end here.
  std::cout << std::flush;
  std::_Exit(kExitSucceeded);
}

}  // namespace fettle::cli
