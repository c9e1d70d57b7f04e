#include "cli/cluster/cluster_run.h"

#include <iostream>
#include <utility>

#include "cli/cluster/cluster_objects.h"
#include "cli/cluster/cluster_source.h"
#include "cli/cluster/follower.h"
#include "cli/common/exit_code.h"
#include "cli/common/folder_of.h"
#include "cli/common/interrupt.h"
#include "cli/exchange/results_file.h"
#include "cli/terminal/text.h"
#include "cli/views/display.h"
#include "kube/objects/json_path.h"

namespace fettle::cli {
namespace {

// Uses the namespace of the file; another one on the command line is a mistake, as for kubectl.
Result<Cluster> cluster_for(const Target& wanted, const Json& document) {
  const std::string written = kube::text_at(document, {"metadata", "namespace"});
  if (!written.empty() && !wanted.ns.empty() && written != wanted.ns) {
    return invalid("the file says namespace: " + printable(written) + ", the command line " +
                   printable(wanted.ns) + "; leave one out");
  }
  Target place = wanted;
  if (wanted.ns.empty() && !written.empty()) {
    place.ns = written;
    place.program += " -n " + shell_word(written);
  }
  return reach_cluster(place);
}

// Puts each cause of a list, "[a, b]" in the middle of a sentence, on its own line.
std::string one_cause_a_line(std::string message) {
  const std::size_t open = message.find(": [");
  if (open == std::string::npos || message.back() != ']') return message;
  message.pop_back();
  message.replace(open, 3, ":\n  ");
  // Not at every ", ", which a cause may contain. Each cause begins with its field, in spec.
  for (std::size_t at = open; (at = message.find(", spec.", at)) != std::string::npos;) {
    message.replace(at, 2, "\n  ");
  }
  return message;
}

FinalMessage final_message_of(const RunOptions& options, const Cluster& cluster,
                              const std::string& study) {
  return {
      "No longer following; study " + study + " keeps running.\n" + next_commands(cluster, study),
      options.resume};
}

// Returns the study at its end, everything read at one time.
RunView final_view(const Cluster& cluster, const Follower& follower) {
  auto seen = ClusterSource(cluster).read(follower.view().study.metadata.name, Detail::kObjects);
  return seen.ok() ? seen->view : follower.view();
}

Result<int> follow(const RunOptions& options, const Cluster& cluster, const std::string& study) {
  const auto display =
      make_display(options.output, log_command_of(cluster.program), cluster.program);
  FETTLE_ASSIGN(const auto interrupt, Interrupt::install());
  Follower follower(cluster, study, *interrupt, *display);
  const auto state = follower.run();
  if (!state.ok()) {
    if (follower.has_seen()) display->finish(follower.view(), {});
    const int code = complain(state.error());
    // Otherwise kNotFound means wrong input; a Study that was deleted meanwhile has failed.
    const bool deleted = state.error().code == ErrorCode::kNotFound;
    return deleted ? static_cast<int>(kExitFailed) : code;
  }
  if (*state == StudyState::kActive) {
    const FinalMessage final_message = final_message_of(options, cluster, study);
    if (follower.has_seen()) display->finish(follower.view(), final_message);
    if (!follower.has_seen()) display->say(final_message.text);
    return kExitInterrupted;
  }
  const RunView view = final_view(cluster, follower);
  if (*state == StudyState::kFinished) {
    display->finish(view, {});
    return exit_code_of_study(view.study);
  }
  display->say("the study is suspended; set suspend: false in " + options.file +
               " and run it again");
  display->finish(view, {"", options.resume});
  return kExitInterrupted;
}

// A cluster does not read files: their results travel inside the Study. One that is there keeps the
// results that it began with.
Status take_results(const Cluster& cluster, const RunOptions& options, api::Study study,
                    Json& document) {
  kube::Client client(*cluster.transport, client_options());
  const auto there = client.get(kube::kStudies, {cluster.ns, study.metadata.name});
  if (there.ok()) {
    const auto stored = read_study_object(*there);
    if (stored.ok() && keep_results(*stored, study, document)) return success();
  }
  FETTLE_ASSIGN(const std::string sentence, read_results(folder_of(options.file), study, document));
  if (!sentence.empty()) std::cerr << "fettle: " << sentence << '\n';
  return success();
}

}  // namespace

std::string next_commands(const Cluster& cluster, const std::string& study) {
  return "  to watch it:   " + cluster.program + " status " + study +
         "\n  to suspend it: " + cluster.kubectl + " patch study " + study +
         R"( --type merge -p '{"spec":{"suspend":true}}')" +
         "\n  to delete it:  " + cluster.kubectl + " delete study " + study;
}

Status apply_study(const Cluster& cluster, Json document) {
  document.find("metadata")->set("namespace", cluster.ns);
  document.erase("status");
  const kube::ObjectKey key = kube::key_of(document);
  kube::Client client(*cluster.transport, client_options());
  const auto applied = client.apply(kube::kStudies, key, "", document, kManager);
  if (applied.ok()) return success();
  Error error = explain_missing_resource(applied.error());
  error.message = one_cause_a_line(std::move(error.message));
  return error;
}

Result<int> run_on_cluster(const Target& place, const RunOptions& options, api::Study study,
                           Json document) {
  if (options.fresh) {
    return invalid(
        "--fresh is for studies on this machine; on a cluster, delete the Study and run it again");
  }
  FETTLE_ASSIGN(const Cluster cluster, cluster_for(place, document));
  const std::string name = study.metadata.name;
  FETTLE_TRY(take_results(cluster, options, std::move(study), document));
  FETTLE_TRY(apply_study(cluster, std::move(document)));
  return follow(options, cluster, name);
}

}  // namespace fettle::cli
