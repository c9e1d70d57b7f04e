#include "tests/matrix/calls/played_cluster.h"

#include <algorithm>
#include <utility>

#include "api/fields/timestamp.h"
#include "api/trial/report.h"
#include "api/trial/trial_json.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/pod_group.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::matrix {
namespace {

using kube::array_at;
using kube::boolean_at;
using kube::integer_at;
using kube::text_at;
using kube::value_at;

constexpr std::int64_t kStartMs = 2'000;      // from its creation until a pod runs
constexpr std::int64_t kGraceMs = 2'000;      // from SIGTERM until a program has ended
constexpr std::int64_t kTellMs = 20'000;      // how long a trainer tries to deliver its result
constexpr std::int64_t kAdmissionMs = 8'000;  // of Kueue; its message is read after 5 s

std::string annotation(const Json& object, const char* name) {
  return text_at(object, {"metadata", "annotations", name});
}

bool is_being_deleted(const Json& object) {
  return !text_at(object, {"metadata", "deletionTimestamp"}).empty();
}

bool has_ended(const Json& job) {
  for (const Json& condition : array_at(job, {"status", "conditions"})) {
    const std::string type = text_at(condition, {"type"});
    if (type == "Complete" || type == "Failed") return true;
  }
  return false;
}

Json container_state(const std::string& name, const char* state, Json details) {
  return Json(Json::Array{
      Json::object({{"name", name}, {"state", Json::object({{state, std::move(details)}})}})});
}

Json condition(const char* type, const char* status, const char* reason, std::string message,
               Json since) {
  return Json::object({{"type", type},
                       {"status", status},
                       {"reason", reason},
                       {"message", std::move(message)},
                       {"lastTransitionTime", std::move(since)}});
}

const kube::Resource kVolcanoGroups = kubernetes::pod_group_resources("volcano").front();

}  // namespace

PlayedCluster::PlayedCluster(kube::FakeApiServer& server, VirtualTime& time, kube::Client& trainers,
                             ClusterScript script)
    : server_(server), time_(time), trainers_(trainers), script_(std::move(script)) {}

Json PlayedCluster::now_text() const { return api::format_timestamp(time_.now_ms()); }

// Falls with each step, to a value that depends on the parameters.
double PlayedCluster::loss_of(const Json& parameters, std::int64_t step) {
  const Json* rate = parameters.find("rate");
  const double base = rate != nullptr && rate->is_number() ? rate->as_double() : 1;
  return base + 1.0 / static_cast<double>(step);
}

int PlayedCluster::pods_of(const std::string& trial) const {
  return static_cast<int>(std::ranges::count_if(
      programs_, [&](const auto& one) { return one.second.trial == trial && !one.second.ended; }));
}

std::int64_t PlayedCluster::steps_of(const std::string& trial) const {
  const auto found = checkpoints_.find(trial);
  return found == checkpoints_.end() ? 0 : found->second;
}

void PlayedCluster::tick() {
  for (const Json& job : server_.list(kube::kJobs)) {
    if (!text_at(job, {"metadata", "labels", kubernetes::kTrialLabel}).empty()) play_job(job);
  }
  for (auto& [uid, program] : programs_) play(program);
  std::erase_if(programs_, [&](const auto& one) {
    return server_.get(kube::kPods, {one.second.ns, one.second.pod}).is_null();
  });
  if (server_.version() == collected_version_) return;
  server_.collect_garbage();
  collected_version_ = server_.version();
}

// ---- Job controller and Kueue ------------------------------------------------------------------

void PlayedCluster::play_job(const Json& job) {
  const std::string uid = text_at(job, {"metadata", "uid"});
  const std::string name = text_at(job, {"metadata", "name"});
  if (has_ended(job)) return;
  std::map<std::int64_t, Program*> ranks;
  for (auto& [pod, program] : programs_) {
    if (program.job == name) ranks[program.rank] = &program;
  }
  const bool suspended = boolean_at(job, {"spec", "suspend"});
  const bool queued = !text_at(job, {"metadata", "labels", kubernetes::kQueueLabel}).empty();
  if (suspended && queued && !is_being_deleted(job)) {
    const auto [admitted, is_new] = admitted_ms_.try_emplace(uid, time_.now_ms() + kAdmissionMs);
    if (time_.now_ms() < admitted->second) return;
    server_.merge(kube::kJobs, kube::key_of(job),
                  Json::object({{"spec", Json::object({{"suspend", false}})}}));
    return;
  }
  const std::int64_t completions = integer_at(job, {"spec", "completions"}, 1);
  for (auto& [rank, program] : ranks) {
    if (suspended || is_being_deleted(job) || rank >= completions) doom(*program);
  }
  if (suspended || is_being_deleted(job)) return;
  if (failed_jobs_.contains(name)) return finish_job(job, false, "a pod was deleted");
  std::int64_t good = 0;
  for (std::int64_t rank = 0; rank < completions; ++rank) {
    const auto found = ranks.find(rank);
    if (found == ranks.end()) {
      create_pod(job, rank);
      continue;
    }
    const Json pod = server_.get(kube::kPods, {found->second->ns, found->second->pod});
    const std::string phase = text_at(pod, {"status", "phase"});
    if (phase == "Failed") return finish_job(job, false, "a pod failed");
    if (phase == "Succeeded") ++good;
  }
  if (good == completions) finish_job(job, true, "all pods ended");
}

void PlayedCluster::create_pod(const Json& job, std::int64_t rank) {
  const std::string name = text_at(job, {"metadata", "name"});
  Json metadata = *value_at(job, {"spec", "template", "metadata"});
  metadata.set("name", name + "-" + std::to_string(rank) + "-x");
  metadata.set("namespace", text_at(job, {"metadata", "namespace"}));
  api::Metadata owner;
  owner.name = name;
  owner.uid = text_at(job, {"metadata", "uid"});
  metadata.set("ownerReferences", kube::owner_references(kube::kJobs, owner));
  metadata.find("labels")->set(kube::kRankLabel, std::to_string(rank));
  const Json pod =
      server_.set(kube::kPods, Json::object({{"apiVersion", "v1"},
                                             {"kind", "Pod"},
                                             {"metadata", std::move(metadata)},
                                             {"spec", *value_at(job, {"spec", "template", "spec"})},
                                             {"status", Json::object({{"phase", "Pending"}})}}));
  Program program;
  program.ns = text_at(pod, {"metadata", "namespace"});
  program.pod = text_at(pod, {"metadata", "name"});
  program.job = name;
  program.trial = text_at(job, {"metadata", "labels", kubernetes::kTrialLabel});
  program.container = annotation(job, kubernetes::kContainerAnnotation);
  if (program.container.empty()) program.container = "trainer";
  program.rank = rank;
  program.until_step = std::stoll("0" + annotation(job, kubernetes::kUntilStepAnnotation));
  program.born_ms = time_.now_ms();
  program.step = checkpoints_[program.trial];
  programs_[text_at(pod, {"metadata", "uid"})] = std::move(program);
}

// Sends SIGTERM, and deletes the pod.
void PlayedCluster::doom(Program& program) {
  if (program.ends_ms != 0) return;
  program.ends_ms = time_.now_ms() + kGraceMs;
  if (server_.get(kube::kPods, {program.ns, program.pod}).is_null()) return;
  const Json deleted =
      Json::object({{"deletionTimestamp", api::format_timestamp(time_.now_ms() + 30'000)},
                    {"deletionGracePeriodSeconds", 30}});
  server_.merge(kube::kPods, {program.ns, program.pod}, Json::object({{"metadata", deleted}}));
}

void PlayedCluster::finish_job(const Json& job, bool good, const std::string& why) {
  const Json::Array conditions{condition(good ? "Complete" : "Failed", "True",
                                         good ? "Complete" : "BackoffLimitExceeded", why,
                                         now_text())};
  server_.merge(kube::kJobs, kube::key_of(job),
                Json::object({{"status", Json::object({{"conditions", Json(conditions)}})}}));
  const std::string name = text_at(job, {"metadata", "name"});
  for (auto& [uid, program] : programs_) {
    if (program.job == name && !program.ended) doom(program);
  }
}

// ---- Scheduler and kubelet ---------------------------------------------------------------------

std::string PlayedCluster::obstacle(const Json& pod) const {
  const std::string ns = text_at(pod, {"metadata", "namespace"});
  for (const Json& volume : array_at(pod, {"spec", "volumes"})) {
    const std::string claim = text_at(volume, {"persistentVolumeClaim", "claimName"});
    if (claim.empty() || !server_.get(kube::kClaims, {ns, claim}).is_null()) continue;
    return "persistentvolumeclaim \"" + claim + "\" not found";
  }
  for (const Json& claim : array_at(pod, {"spec", "resourceClaims"})) {
    const std::string from = text_at(claim, {"resourceClaimTemplateName"});
    const std::string shared = text_at(claim, {"resourceClaimName"});
    const bool there = from.empty()
                           ? !server_.get(kube::kResourceClaims, {ns, shared}).is_null()
                           : !server_.get(kube::kResourceClaimTemplates, {ns, from}).is_null();
    if (!there) return "resourceclaim \"" + from + shared + "\" not found";
  }
  const std::string group =
      text_at(pod, {"metadata", "annotations", "scheduling.k8s.io/group-name"});
  if (!group.empty() && server_.get(kVolcanoGroups, {ns, group}).is_null()) {
    return "podgroup \"" + group + "\" not found";
  }
  return "";
}

void PlayedCluster::play(Program& program) {
  const Json pod = server_.get(kube::kPods, {program.ns, program.pod});
  if (pod.is_null()) return;
  const std::int64_t now_ms = time_.now_ms();
  if (program.ended) {
    if (program.ends_ms != 0) server_.remove(kube::kPods, {program.ns, program.pod});
    return;
  }
  if (program.ends_ms != 0 && now_ms >= program.ends_ms) {
    checkpoints_[program.trial] = std::max(checkpoints_[program.trial], program.step);
    return exit(program, 143);
  }
  if (program.ends_ms != 0) return;
  if (program.began_ms == 0) return start(program, pod);
  const bool lost = program.job == script_.loses_worker_of && program.rank == 1 &&
                    now_ms > program.began_ms + 2 * kStepSeconds * 1'000;
  if (lost) {
    script_.loses_worker_of.clear();
    failed_jobs_.insert(program.job);
    server_.remove(kube::kPods, {program.ns, program.pod});
    return;
  }
  train(program);
}

void PlayedCluster::start(Program& program, const Json& pod) {
  if (time_.now_ms() < program.born_ms + kStartMs) return;
  const kube::ObjectKey key{program.ns, program.pod};
  const std::string why = obstacle(pod);
  if (!why.empty()) {
    if (pod.dump().find("Unschedulable") != std::string::npos) return;
    const Json::Array conditions{
        condition("PodScheduled", "False", "Unschedulable", why, now_text())};
    server_.merge(kube::kPods, key,
                  Json::object({{"status", Json::object({{"conditions", Json(conditions)}})}}));
    return;
  }
  program.began_ms = time_.now_ms();
  const Json::Array conditions{condition("PodScheduled", "True", "", "", now_text())};
  const Json status = Json::object(
      {{"phase", "Running"},
       {"conditions", Json(conditions)},
       {"startTime", now_text()},
       {"containerStatuses",
        container_state(program.container, "running", Json::object({{"startedAt", now_text()}}))}});
  server_.merge(
      kube::kPods, key,
      Json::object({{"spec", Json::object({{"nodeName", "node-1"}})}, {"status", status}}));
}

// ---- Programs ----------------------------------------------------------------------------------

bool PlayedCluster::can_train(const Program& program) {
  const Json job = server_.get(kube::kJobs, {program.ns, program.job});
  const std::string service = text_at(job, {"spec", "template", "spec", "subdomain"});
  if (!service.empty() && server_.get(kube::kServices, {program.ns, service}).is_null()) {
    return false;
  }
  const std::int64_t workers = integer_at(job, {"spec", "completions"}, 1);
  return workers <= std::ranges::count_if(programs_, [&](const auto& one) {
           return one.second.job == program.job && one.second.began_ms != 0;
         });
}

// Worker 0 acts for all workers; the others end with it.
void PlayedCluster::train(Program& program) {
  const std::int64_t now_ms = time_.now_ms();
  if (program.rank != 0) {
    for (const auto& [uid, other] : programs_) {
      if (other.job == program.job && other.rank == 0 && other.ended) return exit(program, 0);
    }
    return;
  }
  if (program.tells_until_ms != 0) {
    const bool told = script_.prints || script_.ends_unheard || deliver(program);
    if (told || now_ms >= program.tells_until_ms) exit(program, program.stop_heard ? 143 : 0);
    return;
  }
  if (program.next_ms == 0) {
    if (can_train(program)) program.next_ms = now_ms + kStepSeconds * 1'000;
    return;
  }
  if (program.undelivered) (void)deliver(program);
  if (program.stop_heard) program.tells_until_ms = now_ms + kTellMs;
  if (now_ms < program.next_ms || program.stop_heard) return;
  program.next_ms = now_ms + kStepSeconds * 1'000;
  program.step = std::min(program.step + 1, program.until_step);
  checkpoints_[program.trial] = std::max(checkpoints_[program.trial], program.step);
  print_or_report(program);
  if (program.step >= program.until_step) program.tells_until_ms = now_ms + kTellMs;
}

void PlayedCluster::print_or_report(Program& program) {
  const Json trial = server_.get(kube::kTrials, {program.ns, program.trial});
  if (trial.is_null()) return;
  const bool final_result = program.step >= program.until_step;
  const double loss = loss_of(*value_at(trial, {"spec", "parameters"}), program.step);
  if (script_.prints) {
    const Json line = Json::object({{"step", program.step}, {"loss", loss}});
    server_.append_log({program.ns, program.pod}, program.container, line.dump());
    return;
  }
  api::CurveNeeds needs;
  for (std::int64_t step = 1; step <= program.until_step; ++step) needs.rungs.push_back(step);
  api::ReportLine line;
  line.step = program.step;
  line.metrics["loss"] = loss;
  line.final_result = final_result;
  api::add_line(program.report, std::move(line), needs, time_.now_ms());
  program.undelivered = !(final_result && script_.ends_unheard);
  if (program.undelivered) (void)deliver(program);
}

bool PlayedCluster::deliver(Program& program) {
  if (!program.undelivered) return true;
  const kube::ObjectKey key{program.ns, program.trial};
  if (!program.read_earlier) {
    const auto read = trainers_.patch(kube::kTrials, key, "status", Json::object());
    if (!read.ok()) return false;
    program.read_earlier = true;
  }
  const Json object =
      Json::object({{"apiVersion", kube::api_version(kube::kTrials)},
                    {"kind", kube::kTrials.kind},
                    {"metadata", Json::object({{"name", key.name}, {"namespace", key.ns}})},
                    {"status", Json::object({{"report", api::write_report(program.report)}})}});
  const auto written = trainers_.apply(kube::kTrials, key, "status", object, api::kReportManager);
  if (!written.ok()) return false;
  program.undelivered = false;
  const Json* stop = value_at(written->object, {"spec", "stop"});
  if ((stop != nullptr && !stop->is_null()) || boolean_at(written->object, {"spec", "suspend"})) {
    program.stop_heard = true;
  }
  return true;
}

void PlayedCluster::exit(Program& program, int code) {
  program.ended = true;
  server_.end_log({program.ns, program.pod}, program.container);
  Json details = Json::object({{"exitCode", code},
                               {"reason", code == 0 ? "Completed" : "Error"},
                               {"startedAt", api::format_timestamp(program.began_ms)},
                               {"finishedAt", now_text()}});
  const bool speaks = !script_.prints && program.rank == 0 && !program.report.metrics.empty();
  if (speaks) {
    details.set("message", Json::object({{"step", program.report.step},
                                         {"loss", program.report.metrics.at("loss")},
                                         {"final", program.report.final_result}})
                               .dump());
  }
  server_.merge(
      kube::kPods, {program.ns, program.pod},
      Json::object({{"status", Json::object({{"phase", code == 0 ? "Succeeded" : "Failed"},
                                             {"containerStatuses",
                                              container_state(program.container, "terminated",
                                                              std::move(details))}})}}));
}

}  // namespace fettle::matrix
