#include "trainer/program/assignments.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"

namespace fettle::trainer {
namespace {

constexpr char kStop = 's';
constexpr char kFinish = 'f';

}  // namespace

std::string Assignment::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Status Assignments::start(int fd) {
  fd_ = fd;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (::pipe2(wake_, O_CLOEXEC) != 0) {
    return io_error("cannot make a pipe: " + system_message(errno));
  }
  FETTLE_ASSIGN(thread_, start_thread([this] { read(); }));
  return success();
}

std::optional<Assignment> Assignments::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
  if (waiting_.empty()) return std::nullopt;
  Assignment next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

bool Assignments::is_stopped(const std::string& run) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return all_stop_ || stopped_.contains(run);
}

void Assignments::forget(const std::string& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  stopped_.erase(run);
}

void Assignments::stop_all() const { (void)!::write(wake_[1], &kStop, 1); }

void Assignments::finish() const { (void)!::write(wake_[1], &kFinish, 1); }

Assignments::~Assignments() {
  if (!thread_.joinable()) return;
  is_ending_ = true;
  finish();
  thread_.join();
}

// After the end of the descriptor, runs that it gave out before are still trained, and may still be
// stopped by a signal.
void Assignments::read() {
  bool can_read = true;
  while (!is_ending_) {
    pollfd polls[2] = {{wake_[0], POLLIN, 0}, {can_read ? fd_ : -1, POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0) continue;  // EINTR
    char byte = 0;
    if (polls[0].revents != 0 && ::read(wake_[0], &byte, 1) == 1) {
      end(/*drops=*/true, /*stops=*/byte == kStop);
    }
    if (polls[1].revents == 0 || read_some(fd_)) continue;
    can_read = false;
    end(/*drops=*/false, /*stops=*/false);
  }
}

void Assignments::end(bool drops, bool stops) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ended_ = true;
  all_stop_ = all_stop_ || stops;
  if (drops) waiting_.clear();
  changed_.notify_all();
}

// False: no more can be read.
bool Assignments::read_some(int fd) {
  char buffer[64 << 10];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  unread_.append(buffer, static_cast<std::size_t>(got));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = unread_.find('\n', begin)) != std::string::npos;) {
    take(std::string_view(unread_).substr(begin, end - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
  return got > 0 && unread_.size() <= kLongestAssignment;
}

// Lines that hold neither a run nor a stop are for later versions.
void Assignments::take(std::string_view line) {
  const Result<Json> document = parse_json(std::string(line));
  if (!document.ok() || !document->is_object()) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (ended_) return;
  if (const Json* const stop = document->find("stop"); stop != nullptr && stop->is_string()) {
    stopped_.insert(stop->as_string());
  }
  const Json* const run = document->find("run");
  if (run == nullptr || !run->is_string()) return;
  Assignment assignment{run->as_string(), {}};
  if (const Json* const environment = document->find("environment");
      environment != nullptr && environment->is_object()) {
    for (const auto& [name, value] : environment->as_object()) {
      if (value.is_string()) assignment.environment[name] = value.as_string();
    }
  }
  waiting_.push_back(std::move(assignment));
  changed_.notify_one();
}

}  // namespace fettle::trainer
