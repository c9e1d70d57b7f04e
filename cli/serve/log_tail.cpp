#include "cli/serve/log_tail.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "cli/serve/feeds/events.h"
#include "cli/terminal/terminal_text.h"

namespace fettle::cli {

void LogTail::print(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t known =
      from_ > position_ ? std::min<std::uint64_t>(from_ - position_, bytes.size()) : 0;
  position_ += bytes.size();
  text_ += bytes.substr(known);
  if (text_.size() <= kMostText) return;
  std::size_t cut = text_.size() - kMostText;
  // Whole lines, where there are any.
  const std::size_t line = text_.find('\n', cut);
  if (line != std::string::npos && line + 1 < text_.size()) cut = line + 1;
  skipped_ += cut;
  text_.erase(0, cut);
}

void LogTail::end(std::string message) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(message);
}

// Characters and escape sequences that are not whole yet wait for the next line.
std::string LogTail::take() {
  const std::lock_guard lock(mutex_);
  std::string events;
  const std::size_t whole =
      end_ || text_.size() >= kMostText / 2 ? text_.size() : text_.rfind('\n') + 1;
  if (whole > 0) {
    const Json data = Json::object({{"text", log_text(std::string_view(text_).substr(0, whole))},
                                    {"skipped", static_cast<std::int64_t>(skipped_)}});
    const std::uint64_t up_to = position_ - (text_.size() - whole);
    events = event_text("log", data.dump(), std::to_string(up_to));
    text_.erase(0, whole);
    skipped_ = 0;
  }
  if (end_ && !over_) {
    events += event_text("end", Json::object({{"message", *end_}}).dump());
    over_ = true;
  }
  return events;
}

bool LogTail::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

// TerminalText leaves colours: ESC [ ... m. Carriage returns begin a line anew.
std::string log_text(std::string_view bytes) {
  TerminalText filter;
  const std::string text = filter.feed(bytes) + filter.finish();
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if (text[i] == '\r') {
      if (i + 1 < text.size() && text[i + 1] != '\n') out += '\n';
    } else if (text[i] != '\b') {
      out += text[i];
    }
  }
  return out;
}

}  // namespace fettle::cli
