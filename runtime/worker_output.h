// WorkerOutput: splits the standard output of a worker into frames and the text between them, by
// the worker protocol (docs/worker-protocol.md).
//
// Only bytes that may still become a frame are held back, at most one frame. Text is handed on as
// it comes, so a frame may follow half a line. No IO; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fettle::runtime {

struct WorkerFrame {
  enum class Word { kReady, kBegin, kLine, kEnd, kRefuse };
  Word word = Word::kReady;
  std::string run{};             // not of kReady
  std::int64_t version = 0;      // kReady
  std::int64_t slots = 0;        // kReady
  bool takes_arguments = false;  // kReady: runs may differ in their arguments
  int exit_code = 0;             // kEnd
  std::string text{};            // kLine: a JSON line. kRefuse: the reason
  bool operator==(const WorkerFrame&) const = default;
};

// Parses the words behind the nonce: "end digits-3-r0 143". Absent: they are no frame.
std::optional<WorkerFrame> parse_worker_frame(std::string_view words);

class WorkerOutput {
 public:
  using TextSink = std::function<void(std::string_view text)>;
  using FrameSink = std::function<void(const WorkerFrame& frame)>;

  explicit WorkerOutput(const std::string& nonce);

  // Hands on all text and frames that are complete, in order.
  void feed(std::string_view bytes, const TextSink& text, const FrameSink& frame);
  // The output has ended: hands on bytes that were held back.
  void finish(const TextSink& text);

  // Frames with our nonce that are too long or cannot be parsed. They are dropped.
  std::int64_t malformed() const { return malformed_; }

 private:
  // Takes what can be told from held_, which begins with RS. Returns false if more is needed.
  bool take_frame(const TextSink& text, const FrameSink& frame);

  const std::string opening_;  // RS, the nonce and a space
  std::string held_;           // "" or begins with RS
  std::int64_t malformed_ = 0;
};

}  // namespace fettle::runtime
