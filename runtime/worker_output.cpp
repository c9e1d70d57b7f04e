#include "runtime/worker_output.h"

#include <algorithm>
#include <charconv>

#include "api/trial/worker_protocol.h"

namespace fettle::runtime {
namespace {

constexpr char kRecordSeparator = '\x1e';
constexpr int kLargestExitCode = 255;

// Removes and returns the first word; "" at the end. Words are separated by one space.
std::string_view take_word(std::string_view& words) {
  const std::size_t end = std::min(words.find(' '), words.size());
  const std::string_view word = words.substr(0, end);
  words.remove_prefix(std::min(end + 1, words.size()));
  return word;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_whole = error == std::errc() && end == word.data() + word.size() && number >= 0;
  return is_whole ? std::optional(number) : std::nullopt;
}

std::optional<WorkerFrame> parse_ready(std::string_view words) {
  const std::optional<std::int64_t> version = number_of(take_word(words));
  const std::optional<std::int64_t> slots = number_of(take_word(words));
  if (!version || !slots || *version < 1 || *slots < 1) return std::nullopt;
  if (!words.empty() && words != "arguments") return std::nullopt;
  return WorkerFrame{.word = WorkerFrame::Word::kReady,
                     .version = *version,
                     .slots = *slots,
                     .takes_arguments = !words.empty()};
}

std::optional<WorkerFrame::Word> word_of(std::string_view name) {
  if (name == "begin") return WorkerFrame::Word::kBegin;
  if (name == "line") return WorkerFrame::Word::kLine;
  if (name == "end") return WorkerFrame::Word::kEnd;
  if (name == "refuse") return WorkerFrame::Word::kRefuse;
  return std::nullopt;
}

}  // namespace

std::optional<WorkerFrame> parse_worker_frame(std::string_view words) {
  const std::string_view name = take_word(words);
  if (name == "ready") return parse_ready(words);
  const std::optional<WorkerFrame::Word> word = word_of(name);
  const std::string_view run = take_word(words);
  if (!word || run.empty() || run.size() > api::kLongestWorkerRun) return std::nullopt;
  WorkerFrame frame{.word = *word, .run = std::string(run)};
  if (*word == WorkerFrame::Word::kBegin && !words.empty()) return std::nullopt;
  if (*word == WorkerFrame::Word::kEnd) {
    const std::optional<std::int64_t> code = number_of(words);
    if (!code || *code > kLargestExitCode) return std::nullopt;
    frame.exit_code = static_cast<int>(*code);
    return frame;
  }
  frame.text = std::string(words);
  return frame;
}

WorkerOutput::WorkerOutput(const std::string& nonce) : opening_(kRecordSeparator + nonce + " ") {}

void WorkerOutput::feed(std::string_view bytes, const TextSink& text, const FrameSink& frame) {
  while (!bytes.empty()) {
    if (held_.empty()) {
      const std::size_t begin = std::min(bytes.find(kRecordSeparator), bytes.size());
      if (begin > 0) text(bytes.substr(0, begin));
      bytes.remove_prefix(begin);
    }
    const std::size_t taken = std::min(bytes.size(), api::kLongestWorkerFrame);
    held_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    while (!held_.empty() && take_frame(text, frame)) {
    }
  }
}

bool WorkerOutput::take_frame(const TextSink& text, const FrameSink& frame) {
  const std::size_t known = std::min(held_.size(), opening_.size());
  std::size_t done = 0;  // bytes of held_ that are dealt with
  if (held_.compare(0, known, opening_, 0, known) != 0) {
    text(std::string_view(held_).substr(0, 1));
    done = 1;
  } else {
    const std::size_t end = held_.find('\n', known);
    const std::size_t again = held_.find(opening_, known);
    const std::size_t ends = std::min(end, again);
    if (ends == std::string::npos && held_.size() < api::kLongestWorkerFrame) return false;
    // Too long, or cut off by the next frame: the opening is dropped, and the rest is text.
    done = known;
    std::optional<WorkerFrame> parsed;
    if (end < api::kLongestWorkerFrame && end < again) {
      parsed = parse_worker_frame(std::string_view(held_).substr(known, end - known));
      done = end + 1;
    }
    malformed_ += parsed ? 0 : 1;
    if (parsed) frame(*parsed);
  }
  // The rest, up to the next byte that may begin a frame, is text.
  const std::size_t next = std::min(held_.find(kRecordSeparator, done), held_.size());
  if (next > done) text(std::string_view(held_).substr(done, next - done));
  held_.erase(0, next);
  return true;
}

void WorkerOutput::finish(const TextSink& text) {
  if (!held_.empty()) text(held_);
  held_.clear();
}

}  // namespace fettle::runtime
