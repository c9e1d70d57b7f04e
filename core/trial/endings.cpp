#include "core/trial/endings.h"

#include <signal.h>
#include <string.h>

#include <string_view>

#include "api/trainer/trainer_config.h"
#include "base/check.h"

namespace fettle::core {

using api::Outcome;

namespace {

enum class How {
  kAny,
  kSuccess,       // exit code 0
  kFinalSuccess,  // exit code 0 and a final result
  kStopped,       // exit code 143, the worker contract's "stopped gently"
  kMissesPeers,   // exit code 75 of one of several workers
  kKilled,        // SIGKILL, or exit code 137
  kKilledCode,    // exit code 137
  kOutside,       // a signal that programs do not send themselves
  kCrash,         // any other signal
};

struct Rule {
  std::optional<Host> host;               // absent: either
  std::optional<EndCondition> condition;  // absent: any
  How how;
  Outcome outcome;
  std::string_view reason;  // {code}, {signal} and {description} are filled in from the exit
};

using enum EndCondition;
constexpr std::optional<Host> kEither;
constexpr std::optional<EndCondition> kWhatever;

// The first row that fits counts. So success comes before a stop that was asked for, evidence from
// the system before the meaning of an exit code, and the unexplained exit code last.
//
// Exit code 0 of a container is a success even after we asked for a stop: whether the trial was
// done is decided by its report, in run_outcome.h. A local process that was asked to stop often
// exits with 0, too; here its report is known, so only a final result makes it a success.
constexpr Rule kRules[] = {
    {Host::kContainer, kWhatever, How::kSuccess, Outcome::kSucceeded, ""},
    {Host::kProcess, kWhatever, How::kFinalSuccess, Outcome::kSucceeded, ""},

    {kEither, kStopAsked, How::kAny, Outcome::kStopped, "stopped"},
    {kEither, kRunnerInterrupted, How::kAny, Outcome::kDisrupted,
     "stopped because fettle run was interrupted"},
    {kEither, kRunnerDied, How::kAny, Outcome::kDisrupted, "stopped because fettle run had died"},

    {kEither, kPodDisrupted, How::kAny, Outcome::kDisrupted, "its pod was disrupted"},
    {kEither, kPodDeleted, How::kAny, Outcome::kDisrupted, "its pod was deleted"},
    {kEither, kPodRefused, How::kAny, Outcome::kDisrupted, "its node refused or lost the pod"},
    {kEither, kPodNeverBegan, How::kAny, Outcome::kFailed,
     "its pod failed before the trial began; does an init container fail?"},
    {kEither, kNodeLost, How::kAny, Outcome::kDisrupted, "its node is lost"},
    {kEither, kResultLost, How::kAny, Outcome::kDisrupted,
     "its pod is gone, and with it how it ended"},
    {kEither, kGuardKilled, How::kAny, Outcome::kDisrupted,
     "the process that guards it was killed from outside"},

    {kEither, kOverTimeLimit, How::kAny, Outcome::kTimedOut,
     "ran longer than its template's activeDeadlineSeconds"},
    {kEither, kOverMemoryLimit, How::kAny, Outcome::kOutOfMemory,
     "used more memory than its limit (resources.limits.memory)"},
    {kEither, kMachineOutOfMemory, How::kKilled, Outcome::kOutOfMemory,
     "killed by the kernel, because memory ran out"},
    {kEither, kCannotStart, How::kAny, Outcome::kFailed, "cannot start"},
    {kEither, kCannotStartNow, How::kAny, Outcome::kDisrupted, "cannot start now"},

    {kEither, kWhatever, How::kSuccess, Outcome::kSucceeded, ""},
    {kEither, kWhatever, How::kStopped, Outcome::kDisrupted,
     "exit code {code}, as if another process had sent it SIGTERM"},
    {kEither, kWhatever, How::kMissesPeers, Outcome::kDisrupted,
     "exit code {code}: another worker did not come or was lost"},
    {Host::kContainer, kWhatever, How::kKilledCode, Outcome::kDisrupted,
     "exit code {code}: killed by SIGKILL, but not for its own memory limit; perhaps its node ran "
     "out of memory"},
    {kEither, kWhatever, How::kOutside, Outcome::kDisrupted, "killed from outside by {signal}"},
    {kEither, kWhatever, How::kCrash, Outcome::kFailed, "crashed with {signal} ({description})"},
    {kEither, kWhatever, How::kAny, Outcome::kFailed, "exit code {code}"},
};

bool is_from_outside(int signal) {
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool fits(How how, const Exit& exit) {
  switch (how) {
    case How::kAny:
      return true;
    case How::kSuccess:
      return exit.code == 0;
    case How::kFinalSuccess:
      return exit.code == 0 && exit.final_result;
    case How::kStopped:
      return exit.code == kStoppedBySigterm;
    case How::kMissesPeers:
      return exit.code == api::kWorkerMissesOthers && exit.has_peers;
    case How::kKilled:
      return exit.code == kKilledBySigkill || exit.signal == SIGKILL;
    case How::kKilledCode:
      return exit.code == kKilledBySigkill;
    case How::kOutside:
      return exit.signal && is_from_outside(*exit.signal);
    case How::kCrash:
      return exit.signal.has_value();
  }
  return false;
}

bool fits(const Rule& rule, const Exit& exit) {
  if (rule.host && *rule.host != exit.host) return false;
  if (rule.condition && *rule.condition != exit.condition) return false;
  return fits(rule.how, exit);
}

std::string name_of(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

std::string description_of(int signal) {
  const char* const text = ::sigdescr_np(signal);
  return text == nullptr ? "unknown" : text;
}

void replace(std::string& text, std::string_view placeholder, const std::string& value) {
  const std::size_t at = text.find(placeholder);
  if (at != std::string::npos) text.replace(at, placeholder.size(), value);
}

}  // namespace

JudgedExit judge_exit(const Exit& exit) {
  for (const Rule& rule : kRules) {
    if (!fits(rule, exit)) continue;
    // Exit code 143 without other evidence: the program may exit with it by itself.
    const bool presumed = rule.how == How::kStopped && !rule.condition;
    JudgedExit out{rule.outcome, std::string(rule.reason), presumed};
    replace(out.reason, "{code}", exit.code ? std::to_string(*exit.code) : "unknown");
    if (exit.signal) {
      replace(out.reason, "{signal}", name_of(*exit.signal));
      replace(out.reason, "{description}", description_of(*exit.signal));
    }
    return out;
  }
  CHECK(false, "the last rule fits every exit");
  return {};
}

}  // namespace fettle::core
