#include "trainer/program/assignments.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/trial/worker_protocol.h"
#include "base/file.h"
#include "base/thread.h"

namespace fettle::trainer {
namespace {

constexpr char kStop = 's';
constexpr char kLeave = 'l';

// Names are words of frames.
bool is_name(std::string_view run) {
  const auto is_letter = [](char one) { return static_cast<unsigned char>(one) > ' '; };
  return !run.empty() && run.size() <= api::kLongestWorkerRun &&
         std::ranges::all_of(run, is_letter);
}

// The run that the member names; "" if it names none.
std::string name_in(const Json& document, const char* member) {
  const Json* const run = document.find(member);
  if (run == nullptr || !run->is_string()) return "";
  return is_name(run->as_string()) ? run->as_string() : "";
}

}  // namespace

std::string Assignment::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

Status Assignments::start(int fd) {
  fd_ = fd;
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || ::pipe2(wake_, O_CLOEXEC) != 0) {
    return io_error("cannot read assignments from file descriptor " + std::to_string(fd) + ": " +
                    system_message(errno));
  }
  FETTLE_ASSIGN(thread_, start_thread([this] { read(); }));
  return success();
}

Assignments::~Assignments() {
  if (thread_.joinable()) {
    (void)!::write(wake_[1], &kLeave, 1);
    thread_.join();
  }
  for (const int end : wake_) {
    if (end >= 0) ::close(end);
  }
}

Assignments::Next Assignments::next(Assignment& run,
                                    std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_over = [this] { return ended_ || !waiting_.empty(); };
  if (!patience) {
    changed_.wait(lock, is_over);
  } else if (!changed_.wait_for(lock, *patience, is_over)) {
    return Next::kNoneYet;
  }
  if (waiting_.empty()) return Next::kNoMore;
  run = std::move(waiting_.front());
  waiting_.pop_front();
  return Next::kRun;
}

bool Assignments::is_stopped(const std::string& run) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return all_stop_ || stopped_.contains(run);
}

void Assignments::forget(const std::string& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  at_hand_.erase(run);
  stopped_.erase(run);
}

void Assignments::stop_all() const { (void)!::write(wake_[1], &kStop, 1); }

// After the end of the descriptor, runs at hand may still be stopped by a signal.
void Assignments::read() {
  for (bool can_read = true;;) {
    pollfd polls[2] = {{wake_[0], POLLIN, 0}, {can_read ? fd_ : -1, POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0) continue;  // EINTR
    char word = 0;
    if (polls[0].revents != 0 && ::read(wake_[0], &word, 1) == 1) {
      if (word == kLeave) return;
      can_read = false;
      end(/*stops=*/true);
    } else if (polls[1].revents != 0 && !read_some()) {
      can_read = false;
      end(/*stops=*/false);
    }
  }
}

void Assignments::end(bool stops) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ended_ = true;
  all_stop_ = all_stop_ || stops;
  changed_.notify_all();
}

// False: no more can be read.
bool Assignments::read_some() {
  char buffer[16 << 10];
  const ssize_t got = ::read(fd_, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  unread_.append(buffer, static_cast<std::size_t>(got));
  split();
  return got > 0;
}

// Takes the whole lines; a line that is too long is skipped up to its end.
void Assignments::split() {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = unread_.find('\n', begin)) != std::string::npos;) {
    if (!std::exchange(skips_, false)) take(unread_.substr(begin, end - begin));
    begin = end + 1;
  }
  unread_.erase(0, begin);
  if (skips_) unread_.clear();
  if (unread_.size() <= api::kLongestAssignment) return;
  log_too_long();
  skips_ = true;
  unread_.clear();
}

void Assignments::log_too_long() const {
  settings_.log("skipped an assignment of more than " + std::to_string(api::kLongestAssignment) +
                " bytes");
}

// Lines that hold neither a run nor a stop are for later versions.
void Assignments::take(const std::string& line) {
  if (line.size() > api::kLongestAssignment) return log_too_long();
  const Result<Json> document = parse_json(line);
  if (!document.ok() || !document->is_object()) {
    return settings_.log("skipped an assignment that is no JSON object");
  }
  if (document->find("stop") != nullptr) take_stop(name_in(*document, "stop"));
  if (document->find("run") == nullptr) return;
  const std::string run = name_in(*document, "run");
  if (run.empty()) return settings_.log("skipped an assignment whose run is no name");
  take_run(run, *document);
}

void Assignments::take_run(const std::string& run, const Json& document) {
  Assignment assignment{run, {}};
  const Json* const environment = document.find("environment");
  if (environment != nullptr && environment->is_object()) {
    for (const auto& [name, value] : environment->as_object()) {
      if (value.is_string()) assignment.environment[name] = value.as_string();
    }
  }
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (at_hand_.contains(run)) return settings_.log("was given " + run + " twice");
    if (waiting_.size() < settings_.most_waiting) {
      at_hand_.insert(run);
      waiting_.push_back(std::move(assignment));
      return changed_.notify_one();
    }
  }
  settings_.refuse(run, "as many runs wait here as may");
}

void Assignments::take_stop(const std::string& run) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!at_hand_.contains(run)) return;  // it has ended, or was never given
    const auto waits = [&run](const Assignment& one) { return one.run == run; };
    const auto found = std::ranges::find_if(waiting_, waits);
    if (found == waiting_.end() || !settings_.end_waiting) {
      stopped_.insert(run);
      return;
    }
    waiting_.erase(found);
    at_hand_.erase(run);
  }
  settings_.end_waiting(run);
}

}  // namespace fettle::trainer
