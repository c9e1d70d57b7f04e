#include "cli/cluster/follower.h"

#include <poll.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "api/fields/quantity.h"
#include "cli/cluster/cluster_objects.h"
#include "core/control/clock.h"
#include "core/names.h"

namespace fettle::cli {
namespace {

// An operator reconciles a new Study within a fraction of a second.
constexpr std::chrono::seconds kOperatorPatience{10};

kube::InformerOptions watch_of(const kube::Resource& resource, const std::string& ns,
                               std::string selector) {
  kube::InformerOptions options;
  options.resource = resource;
  options.namespaces = {ns};
  options.label_selector = std::move(selector);
  options.seed = static_cast<std::uint64_t>(::getpid());
  return options;
}

}  // namespace

Follower::Follower(const Cluster& cluster, const std::string& study, Interrupt& interrupt,
                   Display& display, std::chrono::seconds patience)
    : cluster_(cluster),
      study_(study),
      interrupt_(interrupt),
      display_(display),
      patience_(patience),
      live_(display),
      studies_(*cluster.transport, watch_of(kube::kStudies, cluster.ns, ""), read_study_object),
      trials_(*cluster.transport,
              watch_of(kube::kTrials, cluster.ns, core::kStudyLabel + ("=" + study)),
              read_trial_object) {}

Follower::~Follower() {
  studies_.stop();
  trials_.stop();
}

Result<StudyState> Follower::run() {
  studies_.start();
  trials_.start();
  for (;;) {
    pollfd polled{interrupt_.fd(), POLLIN, 0};
    ::poll(&polled, 1, kRefreshIntervalMs);
    if (interrupt_.take() > 0) return StudyState::kActive;
    FETTLE_ASSIGN(const StudyState state, refresh());
    if (state != StudyState::kActive) return state;
  }
}

Result<StudyState> Follower::refresh() {
  report_trouble();
  if (!studies_.cache().synced() || !trials_.cache().synced()) {
    if (seen_ || std::chrono::steady_clock::now() - begin_ < patience_) {
      return StudyState::kActive;
    }
    // The last message of report_trouble(), unless the first lists still arrive, page by page.
    const std::string slow = "the API server has not listed it and its trials within " +
                             api::format_duration(static_cast<double>(patience_.count()));
    return Error{ErrorCode::kUnavailable,
                 "the study cannot be followed: " + (said_.empty() ? slow : said_)};
  }
  const auto study = studies_.cache().get({cluster_.ns, study_});
  if (study == nullptr) return not_found("study " + study_ + " was deleted");
  std::vector<api::TrialPtr> trials = trials_.cache().all();
  std::erase_if(trials, [&](const auto& trial) { return !core::belongs_to(*trial, *study); });
  sort_by_index(trials);
  seen_ = true;
  live_.show(*study, trials, control::SystemClock().now_ms());
  return study_state_of(*study, trials);
}

// Warns once when the API server fails, and once when no operator runs on the cluster.
void Follower::report_trouble() {
  std::optional<std::string> trouble = studies_.last_error();
  if (!trouble) trouble = trials_.last_error();
  if (trouble) return say("the API server does not answer as it should; trying on: " + *trouble);
  const bool waits = seen_ && view().study.status.observed_generation <= 0;
  if (waits && std::chrono::steady_clock::now() - begin_ > kOperatorPatience) {
    say("no operator has reconciled the Study yet; is Fettle installed, and does it watch "
        "namespace " +
        cluster_.ns + "?");
  }
}

void Follower::say(const std::string& message) {
  if (message == said_) return;
  said_ = message;
  display_.say(message);
}

}  // namespace fettle::cli
