// LineBuffer: splits a stream of bytes, added in pieces of any size, into lines.
//
// Holds the bytes that were added and not yet taken. Terminal control sequences are not interpreted
// (runtime/output_lines.h does). No IO; not synchronised.
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
  // The next line, without its newline; valid until the next call. Absent: the line is incomplete
  // or too long.
  std::optional<std::string_view> take();
  // Whether the next line has more than `longest` bytes: then take() returns no further line.
  bool is_too_long() const { return end_of_line() - begin_ > longest_; }
  // The bytes after the last line that was taken.
  std::string_view rest() const { return std::string_view(bytes_).substr(begin_); }
  void clear();

 private:
  // The position of the newline, or of the end of the bytes.
  std::size_t end_of_line() const;

  const std::size_t longest_;
  std::string bytes_;
  std::size_t begin_ = 0;             // of the next line
  mutable std::size_t searched_ = 0;  // no newline lies before it
};

}  // namespace fettle
