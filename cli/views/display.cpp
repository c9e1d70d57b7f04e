#include "cli/views/display.h"

#include <iostream>
#include <utility>

#include "cli/terminal/terminal.h"
#include "cli/views/expected_best.h"
#include "cli/views/screen.h"
#include "cli/views/summary.h"

namespace fettle::cli {
namespace {

RunView with_expectation(RunView view) {
  expect_best(view);
  return view;
}

// Returns the end of a text display.
std::string ending_text(const RunView& view, const LogHint& log, const std::string& program,
                        const FinalMessage& final_message) {
  std::string text = render_summary(with_expectation(view), log, program, style_of_stdout());
  if (!final_message.text.empty()) text += '\n' + final_message.text + '\n';
  return text;
}

class LiveDisplay final : public Display {
 public:
  LiveDisplay(LogHint log, std::string program)
      : log_(std::move(log)), program_(std::move(program)), style_(style_of_stdout()) {}

  void show(const RunView& view, const std::vector<TimelineEntry>&) override {
    const TerminalSize room = screen_.room();
    RunView noted = view;
    noted.notice = notice_;
    screen_.draw(render_screen(noted, room.columns, room.rows, style_));
  }

  void say(const std::string& message) override { notice_ = message; }

  void finish(const RunView& view, const FinalMessage& final_message) override {
    screen_.erase();
    write_stdout(ending_text(view, log_, program_, final_message));
  }

 private:
  const LogHint log_;
  const std::string program_;
  const Style style_;
  LiveScreen screen_;
  std::string notice_;
};

class LineDisplay final : public Display {
 public:
  LineDisplay(LogHint log, std::string program)
      : log_(std::move(log)), program_(std::move(program)) {}

  void show(const RunView& view, const std::vector<TimelineEntry>& news) override {
    std::string text;
    for (const TimelineEntry& entry : news) {
      if (entry.ends_study) continue;  // the summary begins with this entry
      text += render_entry(entry, view.study.status.started_ms) + '\n';
    }
    write_stdout(text);
  }

  void say(const std::string& message) override { std::cerr << "fettle: " << message << '\n'; }

  void finish(const RunView& view, const FinalMessage& final_message) override {
    write_stdout('\n' + ending_text(view, log_, program_, final_message));
  }

 private:
  const LogHint log_;
  const std::string program_;
};

class JsonDisplay final : public Display {
 public:
  explicit JsonDisplay(LogHint log) : log_(std::move(log)) {}

  void show(const RunView&, const std::vector<TimelineEntry>& news) override {
    std::string text;
    for (const TimelineEntry& entry : news) text += entry.data.dump() + '\n';
    write_stdout(text);
  }

  void say(const std::string& message) override {
    write_stdout(Json::object({{"event", "runner"}, {"message", message}}).dump() + '\n');
  }

  void finish(const RunView& view, const FinalMessage& final_message) override {
    Json result = summary_json(with_expectation(view), log_);
    if (!final_message.resume.empty()) result.set("resume", final_message.resume);
    write_stdout(Json::object({{"result", std::move(result)}}).dump() + '\n');
  }

 private:
  const LogHint log_;
};

}  // namespace

std::unique_ptr<Display> make_display(Output output, const LogHint& log,
                                      const std::string& program) {
  if (output == Output::kJson) return std::make_unique<JsonDisplay>(log);
  if (stdout_is_live()) return std::make_unique<LiveDisplay>(log, program);
  return std::make_unique<LineDisplay>(log, program);
}

}  // namespace fettle::cli
