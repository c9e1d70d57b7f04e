#include "cli/cluster/cluster_source.h"

#include <algorithm>
#include <utility>

#include "cli/cluster/cluster_log.h"
#include "cli/cluster/cluster_objects.h"
#include "cli/terminal/text.h"
#include "cli/views/live_view.h"
#include "core/control/clock.h"
#include "core/names.h"
#include "kube/objects/json_path.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostEvents = 1000;

// Returns when an Event (events.k8s.io/v1) was last seen.
std::int64_t time_of(const Json& event) {
  return std::max({kube::time_at(event, {"series", "lastObservedTime"}),
                   kube::time_at(event, {"eventTime"}),
                   kube::time_at(event, {"metadata", "creationTimestamp"})});
}

TimelineEntry entry_of(const Json& event) {
  const std::string about = kube::text_at(event, {"regarding", "name"});
  const std::string reason = kube::text_at(event, {"reason"});
  const std::string note = kube::text_at(event, {"note"});
  const std::int64_t times = kube::integer_at(event, {"series", "count"});
  TimelineEntry entry;
  entry.at_ms = time_of(event);
  entry.warning = kube::text_at(event, {"type"}) == "Warning";
  entry.text = printable(about) + ' ' + printable(reason) + ": " + printable(note);
  if (times > 1) entry.text += " (" + std::to_string(times) + " times)";
  entry.data = Json::object({{"event", reason},
                             {"timeMs", entry.at_ms},
                             {"about", about},
                             {"warning", entry.warning},
                             {"message", note}});
  return entry;
}

bool is_about(const Json& event, const RunView& view) {
  const std::string kind = kube::text_at(event, {"regarding", "kind"});
  const std::string name = kube::text_at(event, {"regarding", "name"});
  if (kind == "Study") return name == view.study.metadata.name;
  return kind == "Trial" && find_trial(view.trials, name) != nullptr;
}

}  // namespace

LogHint log_command_of(const std::string& program) {
  return [program](const std::string& trial, std::int64_t run) {
    return program + " logs " + trial + " --run " + std::to_string(run);
  };
}

Result<std::unique_ptr<StudySource>> open_cluster_source(const Target& place) {
  FETTLE_ASSIGN(Cluster cluster, reach_cluster(place));
  return std::unique_ptr<StudySource>(std::make_unique<ClusterSource>(std::move(cluster)));
}

ClusterSource::ClusterSource(Cluster cluster)
    : cluster_(std::move(cluster)), client_(*cluster_.transport, client_options()) {}

Result<std::vector<std::string>> ClusterSource::names() {
  FETTLE_ASSIGN(const std::vector<StudyMark> all, marks());
  std::vector<std::string> names;
  for (const StudyMark& mark : all) names.push_back(mark.name);
  return names;
}

// The operator writes a Study's status when its trials change, at most once a second.
Result<std::vector<StudyMark>> ClusterSource::marks() {
  const auto studies = client_.list(kube::kStudies, cluster_.ns);
  if (!studies.ok()) return explain_missing_resource(studies.error());
  std::vector<StudyMark> marks;
  for (const Json& study : *studies) {
    marks.push_back({kube::text_at(study, {"metadata", "name"}),
                     kube::text_at(study, {"metadata", "uid"}) + ' ' +
                         kube::text_at(study, {"metadata", "resourceVersion"})});
  }
  std::ranges::sort(marks, {}, &StudyMark::name);
  return marks;
}

Result<std::string> ClusterSource::newest() {
  FETTLE_ASSIGN(const std::vector<Json> studies, client_.list(kube::kStudies, cluster_.ns));
  std::pair<std::string, std::string> newest;
  for (const Json& study : studies) {
    // Timestamps of one format sort as text.
    newest = std::max(newest, {kube::text_at(study, {"metadata", "creationTimestamp"}),
                               kube::text_at(study, {"metadata", "name"})});
  }
  return newest.second;
}

Result<SeenStudy> ClusterSource::read(const std::string& name, Detail detail) {
  SeenStudy seen{{}, log_command_of(cluster_.program), control::SystemClock().now_ms()};
  seen.view.now_ms = seen.now_ms;
  const auto study = client_.get(kube::kStudies, {cluster_.ns, name});
  if (!study.ok() && study.error().code == ErrorCode::kNotFound) {
    FETTLE_ASSIGN(const std::vector<std::string> others, names());
    return no_such_study(name, place(), others, "-n says where to look");
  }
  if (!study.ok()) return study.error();
  FETTLE_ASSIGN(seen.view.study, read_study_object(*study));
  FETTLE_ASSIGN(const std::vector<Json> trials,
                client_.list(kube::kTrials, cluster_.ns, {core::kStudyLabel + ("=" + name), ""}));
  for (const Json& trial : trials) {
    FETTLE_ASSIGN(api::Trial read, read_trial_object(trial));
    if (!core::belongs_to(read, seen.view.study)) continue;
    seen.view.trials.push_back(std::make_shared<const api::Trial>(std::move(read)));
  }
  sort_by_index(seen.view.trials);
  if (detail == Detail::kWithEvents) {
    FETTLE_ASSIGN(seen.view.timeline, read_events(seen.view));
  }
  bring_up_to_date(seen.view);
  return seen;
}

// Events are only for people: without the right to read them, the rest is shown.
Result<std::vector<TimelineEntry>> ClusterSource::read_events(const RunView& view) {
  std::vector<TimelineEntry> timeline;
  const auto events = client_.list(kube::kEvents, cluster_.ns);
  if (!events.ok() && events.error().code == ErrorCode::kForbidden) return timeline;
  if (!events.ok()) return events.error();
  for (const Json& event : *events) {
    if (is_about(event, view)) timeline.push_back(entry_of(event));
  }
  std::ranges::stable_sort(timeline, {}, &TimelineEntry::at_ms);
  if (timeline.size() > kMostEvents) {
    timeline.erase(timeline.begin(), timeline.end() - static_cast<std::ptrdiff_t>(kMostEvents));
  }
  return timeline;
}

Status ClusterSource::scale(const std::string& trial, std::int64_t workers) {
  const Json patch = Json::object({{"spec", Json::object({{"workers", workers}})}});
  const auto written = client_.patch(kube::kTrials, {cluster_.ns, trial}, "", patch);
  return written.ok() ? success() : Status(written.error());
}

// Pods have the grace period of their templates, whoever stops them.
Result<std::string> ClusterSource::stop(const std::string& study, bool now) {
  if (now) {
    return invalid("--now: on a cluster the grace period is that of the trials' pods; " +
                   cluster_.kubectl + " delete pod --now ends one at once");
  }
  FETTLE_ASSIGN(const SeenStudy seen, read(study, Detail::kObjects));
  if (study_state_of(seen.view.study, seen.view.trials) == StudyState::kFinished) {
    return invalid("study " + study + " is not running: it has " + state_of(seen.view));
  }
  const Json patch = Json::object({{"spec", Json::object({{"suspend", true}})}});
  const auto written = client_.patch(kube::kStudies, {cluster_.ns, study}, "", patch);
  if (!written.ok()) return written.error();
  return "study " + study +
         " is suspended: its trials stop within their grace period, and nothing is lost; " +
         cluster_.kubectl + " patch study " + study +
         " --type merge -p '{\"spec\":{\"suspend\":false}}' resumes it";
}

Status ClusterSource::remove(const std::string& study) {
  FETTLE_ASSIGN(const SeenStudy seen, read(study, Detail::kObjects));
  const bool rests = study_state_of(seen.view.study, seen.view.trials) != StudyState::kActive;
  if (!rests) {
    return Error{ErrorCode::kUnavailable, "study " + study + " is running; stop it first: " +
                                              cluster_.program + " stop " + study};
  }
  return client_.remove(kube::kStudies, {cluster_.ns, study},
                        {.uid = seen.view.study.metadata.uid, .resource_version = {}});
}

Status ClusterSource::print_log(const std::string& trial, std::optional<std::int64_t> run,
                                bool follow, const LogPrinter& print) {
  return print_pod_log(client_, {cluster_.ns, trial}, {run, follow, {}}, print);
}

Status ClusterSource::follow_log(const std::string& trial, const LogPrinter& print,
                                 std::stop_token stop) {
  return print_pod_log(client_, {cluster_.ns, trial}, {{}, /*follow=*/true, std::move(stop)},
                       print);
}

}  // namespace fettle::cli
