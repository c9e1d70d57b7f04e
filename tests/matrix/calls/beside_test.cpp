// The rows of kube/client/calls.h that no Study's reconcile calls: events, the Lease, the chart's
// policies, the trainer's reporter and the CLI. The code that makes each call drives it, with a
// fault that passes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "cli/cluster/checkpoint_copy.h"
#include "cli/cluster/cluster_run.h"
#include "cli/cluster/cluster_source.h"
#include "cli/cluster/follower.h"
#include "cli/gpus/inventory.h"
#include "cli/testing/played_kubelet.h"
#include "cli/testing/test_studies.h"
#include "kube/election/leader_election.h"
#include "kube/events/event_recorder.h"
#include "kube/objects/json_path.h"
#include "kube/testing/fake_calls.h"
#include "operator/policies.h"
#include "tests/matrix/calls/faults.h"
#include "trainer/reporter/reporter.h"

namespace fettle::matrix {
namespace {

using namespace std::chrono_literals;

// Only a failing test waits this long, however busy the machine.
constexpr auto kPatience = 120s;

// Injects a fault into the first calls of one row. Thread-safe.
class Gate final : public kube::HttpTransport {
 public:
  Gate(const kube::ApiCall& row, FaultKind kind, int times) : row_(row), kind_(kind), left_(times) {
    server.allow_any_call();
  }

  kube::HttpResult call(const kube::HttpRequest& request,
                        std::chrono::milliseconds deadline) override {
    const auto act = [&] { return server.call(request, deadline); };
    if (!meets(request)) return act();
    return answer_with(kind_, request, act, [] {});
  }
  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          std::chrono::milliseconds idle, std::stop_token stop) override {
    const auto act = [&] { return server.stream(request, on_line, idle, stop); };
    if (!meets(request)) return act();
    if (kind_ == FaultKind::kResetAfter) return kube::HttpFailure{true, "connection reset by peer"};
    return answer_with(kind_, request, act, [] {});
  }
  bool was_hit() const { return hit_; }

  kube::FakeApiServer server;

 private:
  bool meets(const kube::HttpRequest& request) {
    const kube::ApiCall* row = kube::find_row(request, row_.caller);
    if (row != &row_ || left_-- <= 0) return false;
    hit_ = true;
    return true;
  }

  const kube::ApiCall& row_;
  const FaultKind kind_;
  std::atomic<int> left_;
  std::atomic<bool> hit_ = false;
};

kube::ClientOptions impatient() {
  kube::ClientOptions options;
  options.pause = [](std::chrono::milliseconds) {};
  return options;
}

int rows_in_all = 0;
int violations = 0;

// Crosses the rows that `fits` with every fault; `drive` returns the error, "" = none. All rows run
// at once: most of the time is back-off.
int cross(const std::function<bool(const kube::ApiCall&)>& fits,
          const std::function<std::string(Gate&, const kube::ApiCall&)>& drive, int times = 1) {
  struct Row {
    std::string name;
    std::unique_ptr<Gate> gate;
    std::future<std::string> verdict;
  };
  std::vector<Row> rows;
  for (const kube::ApiCall& call : kube::kApiCalls) {
    if (!fits(call)) continue;
    for (int kind = 0; kind < kFaultKinds; ++kind) {
      auto gate = std::make_unique<Gate>(call, static_cast<FaultKind>(kind), times);
      auto verdict = std::async(std::launch::async, [&drive, &call, driven = gate.get()] {
        std::string wrong = drive(*driven, call);
        if (wrong.empty() && !driven->was_hit()) wrong = "the call was not made";
        return wrong;
      });
      rows.push_back({describe(call) + ", " + to_string(static_cast<FaultKind>(kind)),
                      std::move(gate), std::move(verdict)});
    }
  }
  for (Row& row : rows) {
    const std::string wrong = row.verdict.get();
    if (!wrong.empty()) ++violations;
    EXPECT_EQ(wrong, "") << row.name;
  }
  return static_cast<int>(rows.size());
}

bool waits_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// ---- The operator ------------------------------------------------------------------------------

kube::Occurrence occurrence(const std::string& note) {
  kube::Occurrence out;
  out.about.resource = kube::kTrials;
  out.about.key = {"team", "digits-0"};
  out.about.uid = "u";
  out.reason = "Waiting";
  out.note = note;
  return out;
}

// An event is written, or dropped and counted; the next one is written.
std::string drive_event(Gate& gate, const kube::ApiCall& call) {
  kube::Client client(gate, impatient());
  kube::EventRecorderOptions options;
  options.instance = "operator-0";
  options.retry = 1ms;
  kube::EventRecorder recorder(client, options);
  recorder.start();
  recorder.record(occurrence("once"));
  if (call.verb == "patch") {
    if (!waits_until([&] { return !gate.server.list(kube::kEvents).empty(); })) return "no event";
    recorder.record(occurrence("once"));  // a series is written at its end
  }
  recorder.record(occurrence("another"));
  if (!waits_until(
          [&] { return gate.server.list(kube::kEvents).size() + recorder.dropped() >= 2; })) {
    return "the event after it was not written";
  }
  recorder.stop();
  return "";
}

TEST(CallsBesideStudies, EventsAreWrittenOrCounted) {
  rows_in_all += cross(
      [](const kube::ApiCall& call) {
        return call.resource == "events.k8s.io/events" && call.caller == kube::Caller::kOperator;
      },
      drive_event);
}

// The elector (kube/election/leader_elector.h) without its thread, in virtual time.
class SteppedElector {
 public:
  SteppedElector(kube::Client& client, VirtualTime& time, std::string identity)
      : client_(client), time_(time) {
    terms_.key = {"fettle", "fettle-operator"};
    terms_.identity = std::move(identity);
  }
  bool may_write() const {
    return !over_ && kube::may_write(terms_, state_, std::chrono::milliseconds(time_.now_ms()));
  }
  // A process that lost the lease restarts.
  void advance() {
    if (over_) *this = SteppedElector(client_, time_, terms_.identity);
    if (time_.now_ms() < due_ms_) return;
    kube::LeaseStep done = kube::step(terms_, std::move(state_), input_, now());
    state_ = std::move(done.state);
    carry_out(done.output);
  }
  SteppedElector& operator=(const SteppedElector& other) {
    state_ = other.state_;
    input_ = other.input_;
    due_ms_ = other.due_ms_;
    over_ = other.over_;
    return *this;
  }

 private:
  kube::LeaseNow now() const { return {std::chrono::milliseconds(time_.now_ms()), time_.now_ms()}; }
  static Result<Json> object_of(Result<kube::Written> written) {
    if (!written.ok()) return written.error();
    return std::move(written->object);
  }
  void carry_out(const kube::LeaseOutput& output) {
    if (std::holds_alternative<kube::ReadLease>(output)) {
      input_ = kube::LeaseRead{client_.get(kube::kLeases, terms_.key)};
    } else if (const auto* create = std::get_if<kube::CreateLease>(&output)) {
      input_ = kube::LeaseWritten{
          object_of(client_.create(kube::kLeases, terms_.key.ns, create->lease))};
    } else if (const auto* update = std::get_if<kube::UpdateLease>(&output)) {
      input_ = kube::LeaseWritten{
          object_of(client_.update(kube::kLeases, terms_.key, "", update->lease))};
    } else if (const auto* wait = std::get_if<kube::WaitForLease>(&output)) {
      due_ms_ = time_.now_ms() + wait->time.count();
      input_ = kube::LeaseDue{};
    } else {
      over_ = true;
    }
  }

  kube::Client& client_;
  VirtualTime& time_;
  kube::LeaseTerms terms_;
  kube::LeaseState state_;
  kube::LeaseInput input_ = kube::LeaseDue{};
  std::int64_t due_ms_ = 0;
  bool over_ = false;
};

// Two replicas: never two leaders, and one leader after the fault.
void drive_lease(const kube::ApiCall& row, FaultKind kind) {
  VirtualTime time;
  kube::FakeApiServer server;
  FaultState fault(time, {&row, kind, Phase::kBefore});
  FaultyTransport transport(server, fault, kube::Caller::kOperator,
                            [&](std::chrono::milliseconds ms) { time.pass(ms.count()); });
  kube::ClientOptions options;
  options.deadline = 4s;
  options.calls_per_second = 0;
  options.now = [&] { return time.steady(); };
  options.pause = [&](std::chrono::milliseconds ms) { time.pass(ms.count()); };
  kube::Client client(transport, options);
  SteppedElector first(client, time, "operator-0");
  SteppedElector second(client, time, "operator-1");
  int leads = 0;
  while (time.since_begin_ms() < 300'000) {
    first.advance();
    EXPECT_FALSE(first.may_write() && second.may_write()) << describe(row) << to_string(kind);
    second.advance();
    EXPECT_FALSE(first.may_write() && second.may_write()) << describe(row) << to_string(kind);
    leads = first.may_write() || second.may_write() ? leads + 1 : 0;
    time.pass(500);
  }
  EXPECT_TRUE(fault.was_hit()) << describe(row);
  EXPECT_GT(leads, 0) << "no leader 2 minutes after " << describe(row) << ", " << to_string(kind);
}

TEST(CallsBesideStudies, OneReplicaLeadsOnceTheLeaseCanBeWritten) {
  for (const kube::ApiCall& row : kube::kApiCalls) {
    if (row.resource != "coordination.k8s.io/leases") continue;
    for (int kind = 0; kind < kFaultKinds; ++kind, ++rows_in_all) {
      drive_lease(row, static_cast<FaultKind>(kind));
    }
  }
}

// Only logged: an invalid answer is an error, never "the policy is missing".
TEST(CallsBesideStudies, PoliciesThatCannotBeReadAreNotCalledMissing) {
  rows_in_all += cross(
      [](const kube::ApiCall& call) {
        return call.resource.starts_with("admissionregistration.k8s.io/");
      },
      [](Gate& gate, const kube::ApiCall&) -> std::string {
        for (const char* plural :
             {"validatingadmissionpolicies", "validatingadmissionpolicybindings"}) {
          const kube::Resource resource{"admissionregistration.k8s.io", "v1", plural, "Policy"};
          for (const char* name : {"fettle-study", "fettle-trial", "fettle-report"}) {
            gate.server.set(resource, Json::object({{"metadata", Json::object({{"name", name}})}}));
          }
        }
        kube::Client client(gate, impatient());
        const auto missing = op::missing_policies(client);
        const auto again = op::missing_policies(client);
        if (!again.ok() || !again->empty()) return "they are not seen after the fault";
        (void)missing;
        return "";
      });
}

// ---- The trainer -------------------------------------------------------------------------------

TEST(CallsBesideStudies, AReportArrivesAfterAnyFault) {
  const kube::ObjectKey key{"team", "digits-3"};
  rows_in_all +=
      cross([](const kube::ApiCall& call) { return call.caller == kube::Caller::kTrainer; },
            [&](Gate& gate, const kube::ApiCall&) -> std::string {
              api::Trial trial;
              trial.metadata.name = key.name;
              trial.metadata.ns = key.ns;
              trial.spec.study = "digits";
              gate.server.set(kube::kTrials, api::write_trial(trial));
              kube::Client client(gate, impatient());
              trainer::ReporterSettings settings;
              settings.trial = key;
              settings.log = [](const std::string&) {};
              trainer::Reporter reporter(client, std::move(settings));
              api::ReportLine line;
              line.step = 4;
              line.metrics["loss"] = 0.25;
              line.final_result = true;
              reporter.submit(line);
              if (!reporter.finish(std::chrono::milliseconds(kPatience)))
                return "it was not delivered";
              const Json stored = gate.server.get(kube::kTrials, key);
              const bool there = kube::boolean_at(stored, {"status", "report", "final"});
              return there ? "" : "the report is not there: " + stored.dump();
            });
}

// ---- The CLI -----------------------------------------------------------------------------------

Json whole_study(api::Study study) {
  study.metadata.ns = "team";
  study.metadata.uid = "9a1b1c1d-0000-4000-8000-0000000000aa";
  study.status.observed_generation = 1'000;
  Json out = api::write_study(study);
  const Json patch = *parse_json(R"({"parameters": [
      {"name": "learning_rate", "type": "Double", "min": 0.0001, "max": 1},
      {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam"]}],
    "template": {"spec": {"containers": [{"name": "trainer", "image": "i"}]}}})");
  out.find("spec")->set("parameters", *patch.find("parameters"));
  out.find("spec")->find("trial")->set("template", *patch.find("template"));
  return out;
}

void put(kube::FakeApiServer& server, const cli::RunView& view) {
  server.set(kube::kStudies, whole_study(view.study));
  for (const api::TrialPtr& there : view.trials) {
    api::Trial trial = *there;
    trial.metadata.ns = "team";
    trial.metadata.labels["fettle.dev/study"] = view.study.metadata.name;
    trial.metadata.labels["fettle.dev/study-uid"] = "9a1b1c1d-0000-4000-8000-0000000000aa";
    server.set(kube::kTrials, api::write_trial(trial));
  }
  server.set(kube::kPods, *parse_json(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "digits-0-r0-0-x", "namespace": "team", "labels": {
      "fettle.dev/trial": "digits-0", "fettle.dev/run": "0"}},
    "spec": {"nodeName": "node-1", "containers": [{"name": "trainer"}]},
    "status": {"phase": "Running", "containerStatuses": [
      {"name": "trainer", "state": {"running": {}}}]}})"));
  server.set({"", "v1", "nodes", "Node"}, *parse_json(R"({"metadata": {"name": "node-1"},
    "status": {"allocatable": {"nvidia.com/gpu": "8"}}})"));
  server.append_log({"team", "digits-0-r0-0-x"}, "trainer", "epoch 1");
  server.end_log({"team", "digits-0-r0-0-x"}, "trainer");
}

cli::Cluster cluster_of(Gate& gate) {
  // The gate outlives the cluster.
  return {std::shared_ptr<kube::HttpTransport>(&gate, [](kube::HttpTransport*) {}), "team",
          "kubectl fettle -n team", "kubectl -n team"};
}

Status lend_a_pod(kube::FakeApiServer& server, const cli::Cluster& cluster) {
  cli::RunView view = cli::view_in_the_middle();
  view.study.spec.trial.pod_template =
      *parse_json(R"({"spec": {"containers": [{"name": "trainer", "image": "i"}]}})");
  view.study.spec.trial.checkpoints.emplace().claim = "disk";
  const cli::PlayedKubelet kubelet(server, cli::kRunningPod);
  return cli::with_checkpoint_pod(cluster, view.study, *view.trials.front(), "",
                                  [](const std::string&) { return success(); });
}

// Runs one command; its errors are for the user.
Status command_of(const kube::ApiCall& call, Gate& gate) {
  const cli::Cluster cluster = cluster_of(gate);
  cli::ClusterSource source(cluster);
  kube::Client client(*cluster.transport, impatient());
  if (call.resource == "pods" && call.verb != "list") return lend_a_pod(gate.server, cluster);
  if (call.verb == "apply")
    return cli::apply_study(cluster, whole_study(cli::view_in_the_middle().study));
  if (call.verb == "patch" && call.resource == "fettle.dev/studies") {
    const auto stopped = source.stop("digits", /*now=*/false);
    return stopped.ok() ? success() : Status(stopped.error());
  }
  if (call.verb == "patch") return source.scale("digits-0", 2);
  if (call.verb == "delete") {
    const Status removed = source.remove("digits");
    const bool is_gone = !removed.ok() && removed.error().code == ErrorCode::kNotFound;
    return is_gone ? success() : removed;  // an earlier call may have done it
  }
  const bool gpus = call.resource == "nodes" || call.resource.starts_with("resource.k8s.io/");
  if (gpus) {
    const auto inventory = cli::read_gpu_inventory(client);
    return inventory.ok() ? success() : Status(inventory.error());
  }
  if (call.resource == "pods" || call.resource == "pods/log") {
    return source.print_log("digits-0", {}, false, [](std::string_view) {});
  }
  if (call.verb == "get" && call.resource == "fettle.dev/trials") {
    const Status printed = source.print_log("digits-1", {}, false, [](std::string_view) {});
    const bool no_pod = !printed.ok() && printed.error().code == ErrorCode::kNotFound;
    return no_pod ? success() : printed;
  }
  if (call.resource == "fettle.dev/studies" && call.verb == "list") {
    const auto names = source.names();
    return names.ok() ? success() : Status(names.error());
  }
  const auto seen = source.read("digits", cli::Detail::kWithEvents);
  return seen.ok() ? success() : Status(seen.error());
}

TEST(CallsBesideStudies, ACommandReportsTheFaultAndWorksAgain) {
  rows_in_all += cross(
      [](const kube::ApiCall& call) {
        return call.caller == kube::Caller::kCli && call.verb != "watch";
      },
      [](Gate& gate, const kube::ApiCall& call) -> std::string {
        const bool ended = call.verb == "delete";  // a running one is refused without a call
        put(gate.server, ended ? cli::view_at_the_end() : cli::view_in_the_middle());
        const Status first = command_of(call, gate);
        if (!first.ok() && first.error().message.empty()) return "an error without words";
        const Status again = command_of(call, gate);
        return again.ok() ? "" : "after the fault: " + again.error().message;
      });
}

class Silent final : public cli::Display {
 public:
  void show(const cli::RunView&, const std::vector<cli::TimelineEntry>&) override { ++shown; }
  void say(const std::string&) override {}
  void finish(const cli::RunView&, const cli::FinalMessage&) override {}
  std::atomic<int> shown = 0;
};

TEST(CallsBesideStudies, AStudyIsFollowedToItsEndAfterAnyFault) {
  const std::unique_ptr<cli::Interrupt> interrupt = *cli::Interrupt::install();
  rows_in_all += cross(
      [](const kube::ApiCall& call) {
        const bool of_informers = call.verb == "watch" ||
                                  (call.verb == "list" && call.resource.starts_with("fettle.dev/"));
        return call.caller == kube::Caller::kCli && of_informers;
      },
      [&](Gate& gate, const kube::ApiCall&) -> std::string {
        put(gate.server, cli::view_in_the_middle());
        Silent display;
        const cli::Cluster cluster = cluster_of(gate);
        cli::Follower follower(cluster, "digits", *interrupt, display,
                               std::chrono::duration_cast<std::chrono::seconds>(kPatience));
        std::thread ends([&] {
          (void)waits_until([&] { return display.shown > 0 && gate.was_hit(); });
          put(gate.server, cli::view_at_the_end());
        });
        const auto state = follower.run();
        ends.join();
        if (!state.ok()) return state.error().message;
        return *state == cli::StudyState::kFinished ? "" : "it was not followed to its end";
      });
}

// Runs last: counts the rows of earlier tests.
TEST(CallsBesideStudies, ZRowsInAll) {
  std::cout << "calls beside Studies: " << rows_in_all << " rows, " << violations << " violations"
            << std::endl;
}

}  // namespace
}  // namespace fettle::matrix
