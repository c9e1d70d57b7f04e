#include "kube/transport/line_splitter.h"

namespace fettle::kube {

LineSplitter::Verdict LineSplitter::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (begun_.size() + piece.size() > longest_) return Verdict::kTooLong;
    if (end == std::string_view::npos) {
      begun_ += piece;
      return Verdict::kContinue;
    }
    bytes.remove_prefix(end + 1);
    // A line that lies in one piece is handed on where it lies.
    const bool more = begun_.empty() ? on_line_(piece) : on_line_(begun_ += piece);
    begun_.clear();
    if (!more) return Verdict::kStopped;
  }
  return Verdict::kContinue;
}

LineSplitter::Verdict LineSplitter::finish() {
  if (begun_.empty()) return Verdict::kContinue;
  const std::string last = std::move(begun_);
  begun_.clear();
  return on_line_(last) ? Verdict::kContinue : Verdict::kStopped;
}

}  // namespace fettle::kube
