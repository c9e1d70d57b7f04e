#include "base/line_buffer.h"

#include <algorithm>

namespace fettle {

void LineBuffer::add(std::string_view bytes) {
  bytes_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  bytes_ += bytes;
}

std::size_t LineBuffer::end_of_line() const {
  searched_ = std::min(bytes_.find('\n', searched_), bytes_.size());
  return searched_;
}

std::optional<std::string_view> LineBuffer::take() {
  const std::size_t end = end_of_line();
  if (end == bytes_.size() || end - begin_ > longest_) return std::nullopt;
  const std::string_view line = rest().substr(0, end - begin_);
  begin_ = searched_ = end + 1;
  return line;
}

void LineBuffer::clear() {
  bytes_.clear();
  begin_ = searched_ = 0;
}

}  // namespace fettle
