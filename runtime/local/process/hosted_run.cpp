#include "runtime/local/process/hosted_run.h"

#include <sys/wait.h>

#include <utility>

#include "base/file.h"
#include "base/machine/oom.h"
#include "base/machine/usable.h"
#include "runtime/local/process/outcome_file.h"
#include "runtime/local/process/run_end.h"
#include "runtime/sentences.h"

namespace fettle::local {
namespace {

using runtime::add_sentence;

constexpr std::int64_t kOomIntervalMs = 5000;
constexpr int kLastLines = 5;

// The kernel's recent kills for lack of memory, sampled and shared by all runs. A process with much
// memory takes seconds to end, so "recent" means a few seconds.
class OomWatch {
 public:
  void sample(std::int64_t now_ms) {
    if (now_ms < sampled_ms_ + kOomIntervalMs) return;
    const std::int64_t kills = machine::oom_kills();
    // No samples were taken while nothing ran, and processes killed then were not ours.
    before_ = now_ms > sampled_ms_ + 2 * kOomIntervalMs ? kills : newest_;
    newest_ = kills;
    sampled_ms_ = now_ms;
  }
  // Kills in the last 5 to 10 s in which something ran.
  std::int64_t recent_kills() const {
    return sampled_ms_ == 0 ? 0 : machine::oom_kills() - before_;
  }

 private:
  std::int64_t before_ = 0;
  std::int64_t newest_ = 0;
  std::int64_t sampled_ms_ = 0;
};

OomWatch& oom_watch() {
  static OomWatch watch;
  return watch;
}

// The last line of a killed program, which a shell reports as 137, may end within a number.
bool exited_with_zero(const ProcessEnd& end) {
  const int status = end.report.wait_status;
  return end.reported && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

HostedRun::HostedRun(const SupervisorCommand& command, std::int64_t now_ms)
    : command_(command), started_ms_(now_ms), output_(command) {
  sample_oom_kills(now_ms);  // so that recent_kills() ignores earlier kills
}

RunOutcome HostedRun::finish(const ProcessEnd& process, const std::string& remark,
                             std::int64_t now_ms) {
  const OutputMetrics& metrics = output_.metrics();
  output_.finish(exited_with_zero(process), now_ms);  // first: it may read the last line
  RunEnd end;
  end.command = command_;
  end.process = process;
  end.has_metrics = metrics.has_report();
  end.final_result = metrics.report().final_result;
  end.oom_kills = oom_watch().recent_kills();
  end.machine_memory = machine::usable_memory();
  end.last_lines = output_.log().last_lines(kLastLines);
  end.log_error = output_.log().error();
  return record(explain(end), remark, now_ms);
}

RunOutcome HostedRun::end_as(api::Outcome outcome, const std::string& reason, std::int64_t now_ms) {
  output_.finish(/*is_whole=*/false, now_ms);
  RunOutcome ended;
  ended.outcome = outcome;
  ended.message = reason;
  return record(std::move(ended), "", now_ms);
}

RunOutcome HostedRun::record(RunOutcome outcome, const std::string& remark, std::int64_t now_ms) {
  const OutputMetrics& metrics = output_.metrics();
  outcome.pod_uid = command_.pod_uid;
  outcome.started_ms = started_ms_;
  outcome.ended_ms = now_ms;
  if (metrics.has_report()) outcome.report = metrics.report();
  outcome.silence = metrics.silence();
  // Remarks on the output warn that a result may not be the expected one; any other outcome has its
  // own reason.
  const bool succeeded = outcome.outcome == api::Outcome::kSucceeded;
  if (succeeded) add_sentence(outcome.message, metrics.remarks());
  if (!remark.empty()) add_sentence(outcome.message, remark);
  const Status written = write_outcome_file(command_.run_directory, outcome);
  if (!written.ok()) add_sentence(outcome.message, written.error().message);
  return outcome;
}

void sample_oom_kills(std::int64_t now_ms) { oom_watch().sample(now_ms); }

}  // namespace fettle::local
