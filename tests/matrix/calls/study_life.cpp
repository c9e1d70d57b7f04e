#include "tests/matrix/calls/study_life.h"

#include <algorithm>
#include <utility>

#include "api/study/study_json.h"
#include "api/yaml/study_file.h"
#include "core/names.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "kube/testing/fake_calls.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/fake_rules.h"

namespace fettle::matrix {
namespace {

using kube::array_at;
using kube::text_at;
using kube::value_at;

constexpr const char* kNs = "team";
constexpr std::int64_t kMostMs = 1'800'000;  // of virtual time, for one life
constexpr std::int64_t kSuspensionMs = 60'000;
constexpr int kMostSteps = 200;  // of the manager, before time passes

kube::ClientOptions client_options(VirtualTime& time) {
  kube::ClientOptions options;
  options.now = [&time] { return time.steady(); };
  options.pause = [&time](std::chrono::milliseconds ms) { time.pass(ms.count()); };
  return options;
}

kube::ClientOptions patient_options(VirtualTime& time) {
  kube::ClientOptions options = client_options(time);
  options.pause = [](std::chrono::milliseconds) {};
  return options;
}

kubernetes::JobOptions job_options(const StudyShape& shape) {
  kubernetes::JobOptions options{"fettle-trainer:test"};
  if (!shape.gpu_profiles.empty()) {
    options.gpu_profiles = kubernetes::test_profiles(shape.gpu_profiles);
  }
  return options;
}

std::string phase_of(const Json& trial) { return text_at(trial, {"status", "phase"}); }

bool is_over(const std::string& phase) {
  return phase == "Completed" || phase == "Stopped" || phase == "Failed";
}

bool is_true(const Json& study, const std::string& type) {
  for (const Json& condition : array_at(study, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) == type) return text_at(condition, {"status"}) == "True";
  }
  return false;
}

constexpr const char* kUnbegun = "Unbegun";

// Whether two ends are alike. A trial that should be stopped may instead have reached its end while
// its stop could not be decided or delivered, or never have begun.
bool ended_alike(const std::string& end, const std::string& usual) {
  if (end == usual) return true;
  const auto parameters_of = [](const std::string& text) {
    return text.substr(text.find('{'), text.find('}') - text.find('{'));
  };
  return usual.starts_with("Stopped") &&
         (end.starts_with("Completed") || end.starts_with(kUnbegun)) &&
         parameters_of(end) == parameters_of(usual);
}

// Describes the end of a trial. The step at which it was stopped depends on timing; its result does
// not.
std::string describe_trial(const Json& trial) {
  const std::string phase = is_left_unbegun(trial) ? kUnbegun : phase_of(trial);
  std::string out = phase + ' ' + value_at(trial, {"spec", "parameters"})->dump();
  if (phase == "Completed") {
    const Json* report = value_at(trial, {"status", "report"});
    out += report == nullptr ? " without a report"
                             : ' ' + report->find("metrics")->dump() + " at step " +
                                   std::to_string(kube::integer_at(*report, {"step"}));
  }
  return out;
}

}  // namespace

bool is_like(const LifeResult& result, const LifeResult& usual) {
  return result.study == usual.study &&
         std::ranges::equal(result.trials, usual.trials, [](const auto& one, const auto& other) {
           return one.first == other.first && ended_alike(one.second, other.second);
         });
}

std::string to_string(const LifeResult& result) {
  std::string out = result.study;
  for (const auto& [name, end] : result.trials) out += "\n    " + name + ": " + end;
  return out;
}

class StudyLife::CheckedRuns final : public control::Runs {
 public:
  CheckedRuns(control::Runs& runs, FaultyTransport& transport, Invariants& invariants)
      : runs_(runs), transport_(transport), invariants_(invariants) {}

  Status check(const api::Study& study) override { return runs_.check(study); }
  Status start(const api::Study& study, const api::Trial& trial, std::int64_t run) override {
    return runs_.start(study, trial, run);
  }
  Status resize(const api::Trial& trial, std::int64_t run, std::int64_t workers) override {
    return runs_.resize(trial, run, workers);
  }
  Status stop(const api::Trial& trial, std::int64_t run) override { return runs_.stop(trial, run); }
  Status remove(const api::Trial& trial, std::int64_t run) override {
    return runs_.remove(trial, run);
  }
  Result<std::vector<core::Run>> observe(const api::Trial& trial) override {
    transport_.forget();
    auto runs = runs_.observe(trial);
    const bool by_writes =
        transport_.faulty_writes() > 0 && transport_.faulty_writes() == transport_.faulty_calls();
    if (!runs.ok() && by_writes) {
      invariants_.add("(d) observe() fails because of a write: " + runs.error().message);
    }
    return runs;
  }
  core::Capacity capacity(const api::Study& study) override { return runs_.capacity(study); }
  void watch(std::function<void(const std::string& trial)> listener) override {
    runs_.watch(std::move(listener));
  }

 private:
  control::Runs& runs_;
  FaultyTransport& transport_;
  Invariants& invariants_;
};

StudyLife::StudyLife(const StudyShape& shape, const FaultPlan& plan)
    : shape_(shape),
      fault_(time_, plan),
      transport_(server_, fault_, kube::Caller::kOperator,
                 [this](std::chrono::milliseconds ms) { time_.pass(ms.count()); }),
      // A waiting trainer delays nobody else.
      trainer_transport_(server_, fault_, kube::Caller::kTrainer, [](std::chrono::milliseconds) {}),
      client_(transport_, client_options(time_)),
      trainer_client_(trainer_transport_, patient_options(time_)),
      cluster_(server_, time_, trainer_client_, shape.script),
      studies_(transport_, server_, time_, kube::kStudies, "", kubernetes::read_study_entry),
      trials_(transport_, server_, time_, kube::kTrials, "", kubernetes::read_trial_entry),
      jobs_(transport_, server_, time_, kube::kJobs, kubernetes::kTrialLabel, kube::read_job),
      pods_(transport_, server_, time_, kube::kPods, kubernetes::kTrialLabel, kube::read_pod),
      store_(client_, studies_.cache(), trials_.cache(), time_, {}),
      runs_(client_, jobs_.cache(), pods_.cache(), store_, time_, job_options(shape),
            {.readers = 0}),
      invariants_(server_, time_, fault_, transport_, cluster_, shape.name) {
  server_.use_clock([this] { return time_.now_ms(); });
  server_.on_validation(kubernetes::apply_rulebook);
  if (shape.loses_answers) {
    for (const char* path : {"/trials", "/jobs"}) {
      kube::Fault lost;
      lost.kind = kube::Fault::Kind::kResetAfter;
      lost.matches = [path](const kube::HttpRequest& request) {
        return request.method == "POST" && request.target.find("dryRun") == std::string::npos &&
               request.target.find(path) != std::string::npos;
      };
      server_.inject(lost);
    }
  }
  checked_ = std::make_unique<CheckedRuns>(runs_, transport_, invariants_);
  control::ManagerOptions options;
  options.max_failures = 0;
  options.ready = [this](const std::string& ns) {
    return studies_.cache().synced(ns) && trials_.cache().synced(ns) && jobs_.cache().synced(ns) &&
           pods_.cache().synced(ns);
  };
  options.trouble = [this](const std::string&) { return trouble(); };
  manager_ = std::make_unique<control::Manager>(store_, *checked_, time_, observer_, options);
  time_.on_second([this] { cluster_.tick(); });
  apply_studies();
}

StudyLife::~StudyLife() = default;

// Like op::Informers::trouble().
std::string StudyLife::trouble() const {
  constexpr std::int64_t kTroubleAfterMs = 30'000;
  for (const std::string& error :
       {studies_.trouble(kTroubleAfterMs), trials_.trouble(kTroubleAfterMs),
        jobs_.trouble(kTroubleAfterMs), pods_.trouble(kTroubleAfterMs)}) {
    if (!error.empty()) return error;
  }
  return "";
}

const std::set<std::string>& StudyLife::calls_without_row() const {
  return transport_.calls_without_row();
}

Json StudyLife::study() { return server_.get(kube::kStudies, {kNs, shape_.name}); }

void StudyLife::apply_studies() {
  api::LoadedFile file = api::load_study_text(shape_.yaml, shape_.name);
  CHECK(file.diagnostics.empty(), api::to_string(file.diagnostics.front()));
  int number = 0;
  for (api::Study& study : file.studies) {
    study.metadata.generation = 1;
    study.metadata.uid = "00000000-0000-0000-0000-00000000caf" + std::to_string(number++);
    server_.set(kube::kStudies, api::write_study(study));
  }
  if (shape_.yaml.find("claim: work") != std::string::npos) {
    server_.set(kube::kClaims,
                Json::object({{"metadata", Json::object({{"name", "work"}, {"namespace", kNs}})}}));
  }
  if (!shape_.has_unreadable) return;
  Json broken = study();
  broken.find("metadata")->set("name", "broken");
  broken.find("metadata")->erase("uid");
  broken.find("metadata")->erase("resourceVersion");
  broken.find("spec")->set("budget", "much");
  broken = server_.set(kube::kStudies, broken);
  api::Metadata owner;
  owner.name = "broken";
  owner.uid = text_at(broken, {"metadata", "uid"});
  server_.set(
      kube::kTrials,
      Json::object({{"metadata", Json::object({{"name", "broken-0"},
                                               {"namespace", kNs},
                                               {"ownerReferences",
                                                kube::owner_references(kube::kStudies, owner)}})},
                    {"spec", Json::object({{"study", "broken"}, {"index", "none"}})}}));
}

void StudyLife::run() {
  while (time_.since_begin_ms() < kMostMs) {
    move_phase();
    play_user();
    const bool busy = advance();
    invariants_.check();
    if (is_done()) break;
    if (!busy) time_.pass(VirtualTime::kSecond);
  }
  if (time_.since_begin_ms() >= kMostMs) {
    invariants_.add("(e) the Study does not end: " + study().dump());
  }
  read_result();
  for (const std::string& call : transport_.calls_without_row()) {
    invariants_.add("a call without a row in kube/client/calls.h: " + call);
  }
}

bool StudyLife::advance() {
  bool busy = false;
  busy = studies_.advance() || busy;
  busy = trials_.advance() || busy;
  busy = jobs_.advance() || busy;
  busy = pods_.advance() || busy;
  for (int i = 0; i < kMostSteps; ++i) {
    const std::int64_t began_ms = time_.now_ms();
    const Result<bool> worked = manager_->step();
    if (!worked.ok() || !*worked) break;
    busy = true;
    if (time_.now_ms() == began_ms) continue;
    // While a worker waits for an answer, the readers of logs continue, and a Study may end and go.
    (void)runs_.read_next_log();
    if (goes_when_over()) read_result();
  }
  // One at a time: a read may take half a minute, and the operator has other threads for it than
  // workers.
  if (runs_.read_next_log()) busy = true;
  return busy;
}

// The middle begins when the first trial is over or, if the Study is deleted then, has trained; the
// end when no further trial will begin.
void StudyLife::move_phase() {
  const Phase before = fault_.phase();
  if (before == Phase::kEnd) return;
  std::int64_t over = 0;
  bool has_trained = false;
  for (const Json& trial : server_.list(kube::kTrials)) {
    if (text_at(trial, {"spec", "study"}) != shape_.name) continue;
    has_trained = has_trained || cluster_.steps_of(text_at(trial, {"metadata", "name"})) > 1;
    if (is_over(phase_of(trial))) ++over;
  }
  const Json now = study();
  const std::int64_t budget = kube::integer_at(now, {"spec", "budget", "trials"});
  Phase next = before;
  if (over > 0 || (shape_.loses_study && has_trained)) next = Phase::kMiddle;
  if (now.is_null() || over + 1 >= budget || is_true(now, "Succeeded")) next = Phase::kEnd;
  if (next == before) return;
  fault_.enter(next);
  const kube::ApiCall* row = fault_.plan().row;
  if (row == nullptr || row->verb != "watch" || next != fault_.plan().phase) return;
  // A watch fails in its middle, too, not only when it begins.
  if (row->resource == "fettle.dev/studies") studies_.cut();
  if (row->resource == "fettle.dev/trials") trials_.cut();
  if (row->resource == "batch/jobs") jobs_.cut();
  if (row->resource == "pods") pods_.cut();
}

void StudyLife::play_user() {
  const bool is_middle = fault_.phase() != Phase::kBefore;
  if (shape_.loses_study && is_middle && !is_orphaned_) {
    is_orphaned_ = true;
    for (const Json& trial : server_.list(kube::kTrials)) {
      if (text_at(trial, {"spec", "study"}) != shape_.name) continue;
      const Json none = Json::object({{"ownerReferences", Json()}});
      server_.merge(kube::kTrials, kube::key_of(trial), Json::object({{"metadata", none}}));
    }
    server_.remove(kube::kStudies, {kNs, shape_.name});
  }
  if (!shape_.is_suspended) return;
  const auto suspend = [&](bool value) {
    const Json now = study();
    const std::int64_t generation = kube::integer_at(now, {"metadata", "generation"});
    server_.merge(kube::kStudies, {kNs, shape_.name},
                  Json::object({{"metadata", Json::object({{"generation", generation + 1}})},
                                {"spec", Json::object({{"suspend", value}})}}));
  };
  if (suspended_ms_ == 0 && time_.since_begin_ms() > 15'000) {
    suspended_ms_ = time_.now_ms();
    suspend(true);
  }
  if (suspended_ms_ > 0 && time_.now_ms() > suspended_ms_ + kSuspensionMs) {
    suspended_ms_ = -1;
    suspend(false);
  }
}

bool StudyLife::goes_when_over() const {
  return shape_.yaml.find("ttlAfterFinished") != std::string::npos;
}

// Whether the life is over, with nothing left, and without the fault.
bool StudyLife::is_done() {
  const Json now = study();
  const bool goes = goes_when_over();
  if (!now.is_null() && is_true(now, "Failed")) return true;
  const bool over = shape_.loses_study ? is_orphaned_
                    : goes             ? now.is_null()
                                       : !now.is_null() && is_true(now, "Succeeded");
  if (goes && !now.is_null()) read_result();  // while it exists
  if (!over) return false;
  bool left = false;
  for (const Json& trial : server_.list(kube::kTrials)) {
    if (text_at(trial, {"spec", "study"}) != shape_.name) continue;
    left = left || !(is_over(phase_of(trial)) || (shape_.loses_study && is_left_unbegun(trial)));
  }
  left = left || !server_.list(kube::kJobs).empty() || !server_.list(kube::kPods).empty();
  return !left;
}

void StudyLife::read_result() {
  const Json now = study();
  if (now.is_null() && !shape_.loses_study) return;  // deleted: read before
  result_ = {};
  result_.study = shape_.loses_study          ? "deleted"
                  : is_true(now, "Succeeded") ? "Succeeded"
                  : is_true(now, "Failed")    ? "Failed"
                                              : "not ended";
  for (const Json& trial : server_.list(kube::kTrials)) {
    if (text_at(trial, {"spec", "study"}) != shape_.name) continue;
    result_.trials[text_at(trial, {"metadata", "name"})] = describe_trial(trial);
  }
}

}  // namespace fettle::matrix
