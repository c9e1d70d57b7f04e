// Display: shows the progress of `fettle run`: a live screen, plain lines, or JSON lines.
//
// The main thread calls show() several times a second, with the new entries of the timeline; say()
// with messages of the runner itself; finish() once, at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "cli/views/view.h"

namespace fettle::cli {

// The final message of a run.
struct FinalMessage {
  std::string text;    // for people; "" = nothing
  std::string resume;  // the command that resumes the study; for machines
};

class Display {
 public:
  virtual ~Display() = default;
  virtual void show(const RunView& view, const std::vector<TimelineEntry>& news) = 0;
  virtual void say(const std::string& message) = 0;
  virtual void finish(const RunView& view, const FinalMessage& final_message) = 0;
};

// Makes the live screen if stdout is a terminal that supports it. `program` names fettle in hints.
std::unique_ptr<Display> make_display(Output output, const LogHint& log,
                                      const std::string& program);

}  // namespace fettle::cli
