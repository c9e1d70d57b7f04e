#include "runtime/kubernetes/testing/fake_cluster.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "api/fields/timestamp.h"
#include "api/study/study_json.h"
#include "api/yaml/study_file.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/fake_rules.h"

namespace fettle::kubernetes {
namespace {

using namespace std::chrono_literals;
using kube::text_at;

constexpr std::int64_t kTimesFaster = 20;
// Only a failing test waits this long, however busy the machine.
constexpr auto kPatience = 120s;

std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return api::format_timestamp(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string name_of(const Json& object) { return text_at(object, {"metadata", "name"}); }

Json container_status(const char* state, Json said) {
  return Json::object({{"name", "trainer"}, {"state", Json::object({{state, std::move(said)}})}});
}

Json pod_status(const char* phase, Json container) {
  return Json::object(
      {{"phase", phase}, {"containerStatuses", Json(Json::Array{std::move(container)})}});
}

kube::InformerOptions watching(const kube::Resource& resource, const std::string& selector) {
  kube::InformerOptions options;
  options.resource = resource;
  options.label_selector = selector;
  return options;
}

Json final_report(double value) {
  return Json::object({{"step", 1},
                       {"metrics", Json::object({{"loss", value}})},
                       {"final", true},
                       {"time", now_text()}});
}

constexpr const char* kHead = R"(
apiVersion: fettle.dev/v1alpha1
kind: Study
metadata: {name: digits, namespace: team}
spec:
  objectives: [{metric: loss, direction: Minimize}]
  algorithm: {name: random}
)";

constexpr const char* kParameter = "  parameters: [{name: rate, type: Double, min: 0.1, max: 1";

std::string budget(int trials) {
  return "  budget: {parallelism: 2, trials: " + std::to_string(trials) + "}\n";
}

}  // namespace

std::int64_t FastClock::now_ms() { return began_ms_ + (real_.now_ms() - began_ms_) * kTimesFaster; }

void MortalTransport::die_at_write(int n, bool after) {
  last_ = n;
  after_ = after;
}

kube::HttpResult MortalTransport::call(const kube::HttpRequest& request,
                                       std::chrono::milliseconds deadline) {
  if (dead_) return kube::HttpFailure{false, "the operator is dead"};
  const bool fatal = request.method != "GET" && writes_++ == last_;
  if (fatal) dead_ = true;
  if (fatal && !after_) return kube::HttpFailure{false, "the operator died"};
  kube::HttpResult result = server_.call(request, deadline);
  if (fatal) return kube::HttpFailure{true, "the operator died"};
  return result;
}

kube::HttpResult MortalTransport::stream(const kube::HttpRequest& request,
                                         const std::function<bool(std::string_view line)>& on_line,
                                         std::chrono::milliseconds idle, std::stop_token stop) {
  return server_.stream(request, on_line, idle, std::move(stop));
}

TestOperator::TestOperator(kube::HttpTransport& server, control::Clock& clock)
    : transport_(server),
      client_(transport_, {}),
      studies_(transport_, watching(kube::kStudies, ""), read_study_entry),
      trials_(transport_, watching(kube::kTrials, ""), read_trial_entry),
      jobs_(transport_, watching(kube::kJobs, kTrialLabel), kube::read_job),
      pods_(transport_, watching(kube::kPods, kTrialLabel), kube::read_pod),
      store_(client_, studies_.cache(), trials_.cache(), clock,
             [this](kube::Occurrence event) { events_.push_back(std::move(event)); }),
      runs_(client_, jobs_.cache(), pods_.cache(), store_, clock, {"fettle-trainer:test"}),
      manager_(store_, runs_, clock, observer_, {.resync_ms = 5'000, .max_failures = 0}) {
  studies_.start();
  trials_.start();
  jobs_.start();
  pods_.start();
  const bool synced = studies_.wait_synced(kPatience) && trials_.wait_synced(kPatience) &&
                      jobs_.wait_synced(kPatience) && pods_.wait_synced(kPatience);
  CHECK(synced, "the informers did not start");
}

TestOperator::~TestOperator() {
  studies_.stop();
  trials_.stop();
  jobs_.stop();
  pods_.stop();
}

bool TestOperator::has_event(const std::string& reason, const std::string& words) const {
  return std::ranges::any_of(events_, [&](const kube::Occurrence& event) {
    return event.reason == reason && event.note.find(words) != std::string::npos;
  });
}

bool TestOperator::step() {
  const Result<bool> worked = manager_.step();
  return worked.ok() && *worked;
}

FakeCluster::FakeCluster() {
  server.on_validation(apply_rulebook);
  server.on_admission([this](const kube::Admission& write) {
    if (write.verb != "create") return success();
    if (refuses && refuses(write)) return admit;
    const bool exists = !write.old_object.is_null();
    if (!exists && !is_dry_run(write)) ++created[write.resource + "/" + write.key.name];
    return success();
  });
}

// The Job of a template check is owned by a Trial with the uid of the Study.
bool FakeCluster::is_dry_run(const kube::Admission& write) {
  const Json::Array& owners = kube::array_at(write.object, {"metadata", "ownerReferences"});
  if (write.resource != "jobs" || owners.empty()) return false;
  return studies_.contains(text_at(owners[0], {"uid"}));
}

void FakeCluster::apply(const std::string& yaml, const std::string& uid) {
  api::LoadedFile file = api::load_study_text(yaml, "test");
  CHECK(file.diagnostics.empty(), api::to_string(file.diagnostics.front()));
  api::Study study = file.studies.at(0);
  study.metadata.generation = 1;
  study.metadata.uid = uid;
  studies_.insert(uid);
  server.set(kube::kStudies, api::write_study(study));
}

void FakeCluster::start_operator() { manager = std::make_unique<TestOperator>(server, clock); }

bool FakeCluster::run_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    tick();
    if (manager == nullptr || !manager->step()) std::this_thread::sleep_for(1ms);
    if (manager != nullptr && manager->transport().is_dead()) return false;
  }
  return true;
}

bool FakeCluster::eventually(const std::function<bool()>& holds) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

void FakeCluster::run_for(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  (void)run_until([&] { return std::chrono::steady_clock::now() > end; });
}

bool FakeCluster::come_to_rest() {
  int writes = server.writes();
  auto since = std::chrono::steady_clock::now();
  return run_until([&] {
    const auto now = std::chrono::steady_clock::now();
    if (server.writes() != writes) since = now;
    writes = server.writes();
    return now - since > 300ms;
  });
}

Json FakeCluster::trial(int index) {
  return server.get(kube::kTrials, {"team", "digits-" + std::to_string(index)});
}

bool FakeCluster::is_true(const std::string& condition) {
  const Json now = study();
  for (const Json& one : kube::array_at(now, {"status", "conditions"})) {
    if (text_at(one, {"type"}) == condition) return text_at(one, {"status"}) == "True";
  }
  return false;
}

std::string FakeCluster::message_of(const std::string& condition) {
  const Json now = study();
  for (const Json& one : kube::array_at(now, {"status", "conditions"})) {
    if (text_at(one, {"type"}) == condition) return text_at(one, {"message"});
  }
  return "";
}

// Acts as the Job controller, the kubelet and the garbage collector.
void FakeCluster::tick() {
  for (const Json& job : server.list(kube::kJobs)) {
    if (!text_at(job, {"metadata", "labels", kTrialLabel}).empty()) move_job(job);
  }
  if (collects_garbage) server.collect_garbage();
}

void FakeCluster::move_job(const Json& job) {
  const std::string name = name_of(job);
  const PodScript pod_script = script(name);
  const Json pod = server.get(kube::kPods, {"team", name + "-0-x"});
  const bool suspended = kube::boolean_at(job, {"spec", "suspend"});
  if (suspended) {
    if (!pod.is_null()) server.remove(kube::kPods, {"team", name + "-0-x"});
    return;
  }
  if (kube::integer_at(job, {"spec", "activeDeadlineSeconds"}) != 0) return end_late_job(job);
  if (pod.is_null()) return begin_pod(job, pod_script);
  if (!pod_script.waits.is_null()) return;
  const bool running = text_at(pod, {"status", "phase"}) == "Running";
  if (running && !pod_script.stays) end_pod(job, pod, pod_script);
}

// Ends a Job whose deadline has passed: the pod is removed, and the Job has failed.
void FakeCluster::end_late_job(const Json& job) {
  server.remove(kube::kPods, {"team", name_of(job) + "-0-x"});
  const Json failed =
      Json::object({{"type", "Failed"}, {"status", "True"}, {"reason", "DeadlineExceeded"}});
  const Json status = Json::object({{"conditions", Json(Json::Array{failed})}});
  server.merge(kube::kJobs, {"team", name_of(job)}, Json::object({{"status", status}}));
}

void FakeCluster::begin_pod(const Json& job, const PodScript& pod_script) {
  Json metadata = *kube::value_at(job, {"spec", "template", "metadata"});
  metadata.set("name", name_of(job) + "-0-x");
  metadata.set("namespace", "team");
  api::Metadata owner;
  owner.name = name_of(job);
  owner.uid = text_at(job, {"metadata", "uid"});
  metadata.set("ownerReferences", kube::owner_references(kube::kJobs, owner));
  metadata.find("labels")->set("batch.kubernetes.io/job-completion-index", "0");
  for (const std::string& line : pod_script.log) {
    server.append_log({"team", name_of(job) + "-0-x"}, "trainer", line);
  }
  const Json running =
      pod_status("Running", container_status("running", Json::object({{"startedAt", now_text()}})));
  server.set(kube::kPods,
             Json::object({{"apiVersion", "v1"},
                           {"kind", "Pod"},
                           {"metadata", metadata},
                           {"status", pod_script.waits.is_null() ? running : pod_script.waits}}));
}

void FakeCluster::end_pod(const Json& job, const Json& pod, const PodScript& pod_script) {
  const std::string trial = text_at(job, {"metadata", "labels", kTrialLabel});
  if (pod_script.reports) {
    if (server.get(kube::kTrials, {"team", trial}).is_null()) return;
    server.merge(
        kube::kTrials, {"team", trial},
        Json::object({{"status", Json::object({{"report", final_report(pod_script.value)}})}}));
  }
  server.end_log({"team", name_of(pod)}, "trainer");
  Json ended = Json::object({{"exitCode", pod_script.exit_code},
                             {"reason", pod_script.exit_code == 0 ? "Completed" : "Error"},
                             {"startedAt", now_text()},
                             {"finishedAt", now_text()}});
  if (pod_script.last_words) {
    ended.set("message",
              Json::object({{"step", 1}, {"loss", pod_script.value}, {"final", true}}).dump());
  }
  server.merge(
      kube::kPods, {"team", name_of(pod)},
      Json::object({{"status", pod_status(pod_script.exit_code == 0 ? "Succeeded" : "Failed",
                                          container_status("terminated", std::move(ended)))}}));
}

std::string template_study(int trials) {
  return kHead + budget(trials) + kParameter + "}]\n" +
         "  trial:\n    template: {spec: {containers: [{name: trainer, image: mine}]}}\n";
}

std::string trainer_study(int trials) {
  return kHead + budget(trials) + kParameter + R"(, sets: training.learningRate}]
  trial:
    trainer:
      data: {trainImages: /data/images.gz, trainLabels: /data/labels.gz}
      model: {layers: [{type: flatten}, {type: linear, units: 10}]}
)";
}

}  // namespace fettle::kubernetes
