// LineBuffer: the lines of a stream of bytes, which come in pieces of any size.
//
// Holds what was added and not taken yet. What a terminal would show of a program's output is
// another matter: runtime/output_lines.h. No IO; not synchronised.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fettle {

class LineBuffer {
 public:
  // Lines of more than `longest` bytes are not taken.
  explicit LineBuffer(std::size_t longest) : longest_(longest) {}

  void add(std::string_view bytes);
  // The next line, without its newline; valid until the next call. Nothing: its end is not there
  // yet, or it is too long.
  std::optional<std::string_view> take();
  // Whether the next line has more than `longest` bytes: then no other one follows.
  bool is_too_long() const { return end_of_line() - begin_ > longest_; }
  // What came after the last line that was taken.
  std::string_view rest() const { return std::string_view(bytes_).substr(begin_); }
  void clear();

 private:
  // The position of the newline, or of the end of the bytes.
  std::size_t end_of_line() const;

  const std::size_t longest_;
  std::string bytes_;
  std::size_t begin_ = 0;             // of the next line
  mutable std::size_t searched_ = 0;  // there is no newline before it
};

}  // namespace fettle
