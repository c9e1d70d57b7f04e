// Follower: watches a Study and its Trials on a cluster, and shows them until the Study ends or a
// signal comes. It changes nothing: the Study runs without it.
//
// One thread reads and draws; informers keep copies up to date on theirs.
#pragma once

#include <chrono>
#include <string>

#include "api/study/study.h"
#include "api/trial/trial.h"
#include "base/result.h"
#include "cli/cluster/cluster.h"
#include "cli/common/interrupt.h"
#include "cli/views/display.h"
#include "cli/views/live_view.h"
#include "kube/watch/informer.h"

namespace fettle::cli {

class Follower {
 public:
  // The first lists must have arrived by then. Longer than kListDeadline (kube/watch/watch_loop.h),
  // so that a list that hangs has failed with a message.
  static constexpr std::chrono::seconds kMostPatience{40};

  Follower(const Cluster& cluster, const std::string& study, Interrupt& interrupt, Display& display,
           std::chrono::seconds patience = kMostPatience);
  ~Follower();

  // Runs until the Study has finished, or was suspended and its trials have stopped; kActive: a
  // signal came. kNotFound: the Study was deleted. kUnavailable: nothing could be read from the
  // beginning.
  Result<StudyState> run();

  // The study as last seen; valid if has_seen().
  bool has_seen() const { return seen_; }
  const RunView& view() const { return live_.view(); }

 private:
  // Shows the study; kActive also while nothing has arrived yet.
  Result<StudyState> refresh();
  void report_trouble();
  void say(const std::string& message);

  const Cluster& cluster_;
  const std::string study_;
  Interrupt& interrupt_;
  Display& display_;
  const std::chrono::seconds patience_;
  LiveView live_;
  kube::Informer<api::Study> studies_;
  kube::Informer<api::Trial> trials_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string said_;  // the last message
  bool seen_ = false;
};

}  // namespace fettle::cli
