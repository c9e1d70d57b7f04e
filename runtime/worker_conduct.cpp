#include "runtime/worker_conduct.h"

namespace fettle::runtime {
namespace {

constexpr std::int64_t kMostObjections = 16;
// A worker begins a run at once if it has a free slot. After this time it never will.
constexpr std::int64_t kMostDeafMs = 10'000;
// A worker that has closed a stream may be about to end.
constexpr std::int64_t kMostClosedMs = 2'000;
// A run of several begins once a GPU library has compiled its plans and its parent is there.
constexpr std::int64_t kMostPreparingMs = 600'000;

}  // namespace

void WorkerConduct::object(const std::string& what) {
  ++objections_;
  objection_ = what;
}

bool WorkerConduct::becomes_unfit(const Signs& signs, std::int64_t now_ms) {
  if (!fault_.empty()) return false;
  fault_ = fault_of(signs, now_ms);
  blames_ = objections_ > kMostObjections || signs.is_mute;
  return !fault_.empty();
}

std::string WorkerConduct::fault_of(const Signs& signs, std::int64_t now_ms) {
  if (objections_ > kMostObjections) {
    return "it does not speak the worker protocol: " + objection_;
  }
  const bool is_silent = signs.is_mute || signs.keeps_run_waiting;
  if (!is_silent) silent_since_ms_ = 0;
  if (!is_silent) return "";
  if (silent_since_ms_ == 0) silent_since_ms_ = now_ms;
  const bool is_cut_off = signs.is_mute || signs.is_lost;
  const std::int64_t most = is_cut_off             ? kMostClosedMs
                            : signs.prepares_first ? kMostPreparingMs
                                                   : kMostDeafMs;
  if (now_ms < silent_since_ms_ + most) return "";
  if (signs.is_mute) return "it closed its standard output";
  if (signs.is_lost) return "it closed its assignments";
  return "it did not begin a run within " + std::to_string(most / 1000) + " s";
}

}  // namespace fettle::runtime
