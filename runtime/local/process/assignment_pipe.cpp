#include "runtime/local/process/assignment_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/json.h"
#include "core/names.h"
#include "runtime/local/process/guard.h"

namespace fettle::local {

AssignmentPipe::AssignmentPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  read_ = ends[0];
  write_ = ends[1];
  ::fcntl(write_, F_SETFL, O_NONBLOCK);
}

AssignmentPipe::~AssignmentPipe() {
  close_fd(read_);
  close_fd(write_);
}

void AssignmentPipe::close_reading_end() { close_fd(read_); }

void AssignmentPipe::send(std::string_view line) {
  if (write_ < 0 || finished_) return;
  unsent_ += line;
  flush();
}

void AssignmentPipe::finish() {
  finished_ = true;
  flush();
}

bool AssignmentPipe::is_lost() const {
  if (write_ < 0) return !finished_;
  pollfd end{write_, POLLOUT, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

void AssignmentPipe::add_poll(std::vector<pollfd>& polls) const {
  if (write_ >= 0 && !unsent_.empty()) polls.push_back({write_, POLLOUT, 0});
}

void AssignmentPipe::flush() {
  std::size_t sent = 0;
  while (write_ >= 0 && sent < unsent_.size()) {
    const ssize_t wrote = ::write(write_, unsent_.data() + sent, unsent_.size() - sent);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) close_fd(write_);  // the worker has closed its end
    if (wrote > 0) sent += static_cast<std::size_t>(wrote);
  }
  unsent_.erase(0, sent);
  if (finished_ && unsent_.empty()) close_fd(write_);
}

std::string name_in_protocol(const RunKey& run) { return core::run_name(run.first, run.second); }

std::string assignment_line(const SupervisorCommand& command) {
  Json environment = Json::object();
  for (const auto& [name, value] : command.environment) environment.set(name, value);
  return Json::object({{"run", name_in_protocol(key_of(command))},
                       {"environment", std::move(environment)},
                       {"arguments", Json::array_of(command.arguments)}})
             .dump() +
         "\n";
}

std::string stop_line(const RunKey& run) {
  return Json::object({{"stop", name_in_protocol(run)}}).dump() + "\n";
}

}  // namespace fettle::local
