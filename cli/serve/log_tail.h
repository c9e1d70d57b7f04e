// LogTail: the output of a trial as the page that follows it gets it: its end so far, then each new
// part, in events of bounded size:
//
//   log   {"text", "skipped"}: more of the output; `skipped` bytes before it were left out. `id:`
//         is the number of bytes up to here, from which a reader resumes
//   end   {"message"}: no more comes; why, or ""
//
// Thread-safe: one thread prints, another one sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace fettle::cli {

class LogTail {
 public:
  static constexpr std::size_t kMostText = 64 << 10;  // bytes in an event

  // `from`: bytes of the output that the reader has.
  explicit LogTail(std::uint64_t from) : from_(from), position_(0) {}

  void print(std::string_view bytes);
  // No more will be printed.
  void end(std::string message);

  // Returns the events that are due; "" = none.
  std::string take();
  // Whether take() has returned the event `end`.
  bool is_over() const;

 private:
  const std::uint64_t from_;
  mutable std::mutex mutex_;
  std::uint64_t position_;  // bytes that were printed
  std::string text_;        // not sent yet, at most kMostText
  std::uint64_t skipped_ = 0;
  std::optional<std::string> end_;
  bool over_ = false;
};

// Returns the output as text for a page: without escape sequences, and as UTF-8.
std::string log_text(std::string_view bytes);

}  // namespace fettle::cli
