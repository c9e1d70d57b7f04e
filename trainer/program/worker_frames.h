// WorkerFrames: the answers of a worker on standard output (docs/worker-protocol.md).
//
// Thread-safe; each frame and each line is one write.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

namespace fettle::trainer {

class WorkerFrames {
 public:
  WorkerFrames(int fd, std::string nonce) : fd_(fd), nonce_(std::move(nonce)) {}

  // "end digits-3-r0 143". Cut where it is longer than a frame may be.
  void say(const std::string& words);
  // Says that a run began and was stopped at once.
  void end_stopped(const std::string& run);
  // Bytes that may follow these words in a frame.
  std::size_t room_for(const std::string& words) const;
  // A line of the program.
  void print(const std::string& line);
  // Whether a write has failed.
  bool lost_a_line() const;

 private:
  void write(const std::string& bytes);

  const int fd_;
  const std::string nonce_;
  mutable std::mutex mutex_;
  bool lost_ = false;
};

}  // namespace fettle::trainer
