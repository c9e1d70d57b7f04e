// LineSplitter: splits a stream of bytes, which arrives in pieces of any size, into lines.
//
// Buffers at most one unfinished line of at most `longest` bytes. No IO; used by one
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace fettle::kube {

class LineSplitter {
 public:
  enum class Verdict {
    kContinue,
    kStopped,  // `on_line` returned false
    kTooLong,  // a line has more than `longest` bytes
  };

  // `on_line` gets each line without its newline, and returns whether it wants more.
  LineSplitter(const std::function<bool(std::string_view)>& on_line, std::size_t longest)
      : on_line_(on_line), longest_(longest) {}

  Verdict take(std::string_view bytes);
  // The stream ended normally: the rest is the last line.
  Verdict finish();

 private:
  const std::function<bool(std::string_view)>& on_line_;
  const std::size_t longest_;
  std::string begun_;  // an unfinished line
};

}  // namespace fettle::kube
