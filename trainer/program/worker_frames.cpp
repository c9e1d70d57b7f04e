#include "trainer/program/worker_frames.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "api/trial/worker_protocol.h"
#include "trainer/program/console.h"

namespace fettle::trainer {
void WorkerFrames::say(const std::string& words) {
  std::string frame = "\x1e" + nonce_ + " " + words;
  std::ranges::replace(frame, '\n', ' ');
  frame.resize(std::min(frame.size(), api::kLongestWorkerFrame - 1));
  write(frame + "\n");
}

void WorkerFrames::end_stopped(const std::string& run) {
  say("begin " + run);
  say("end " + run + " " + std::to_string(kSignalled + SIGTERM));
}

std::size_t WorkerFrames::room_for(const std::string& words) const {
  const std::size_t taken = nonce_.size() + words.size() + 3;  // RS, a space and the line feed
  return api::kLongestWorkerFrame - std::min(taken, api::kLongestWorkerFrame);
}

void WorkerFrames::print(const std::string& line) { write(line + "\n"); }

bool WorkerFrames::lost_a_line() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return lost_;
}

void WorkerFrames::write(const std::string& bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = ::write(fd_, bytes.data() + at, bytes.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) lost_ = true;
    if (written < 0) return;
    at += static_cast<std::size_t>(written);
  }
}

}  // namespace fettle::trainer
