// The sink of trials on a cluster: the reporter (reporter.h) and the termination message.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "kube/transport/cluster_config.h"
#include "trainer/reporter/report_sink.h"
#include "trainer/reporter/reporter.h"
#include "trainer/reporter/termination_message.h"

namespace fettle::trainer {

namespace {

constexpr const char* kTerminationLog = "/dev/termination-log";
// Deadline of one call; giving up early loses one report.
constexpr std::chrono::milliseconds kCallDeadline{5'000};

ReporterSettings settings_of(const api::TrialFile& trial, const std::string& ns,
                             ReportSinkLog log) {
  ReporterSettings settings;
  settings.trial = {ns, trial.trial};
  settings.needs.rungs = trial.rungs;
  for (const api::ObjectiveName& name : trial.objectives) {
    api::Objective& objective = settings.needs.objectives.emplace_back();
    objective.metric = name.metric;
    objective.direction = name.direction;
  }
  settings.interval_ms = report_interval_ms(trial.parallelism);
  if (trial.report_seconds) {
    const auto told_ms = static_cast<std::int64_t>(*trial.report_seconds * 1000);
    settings.interval_ms = std::max(settings.interval_ms, told_ms);
  }
  if (trial.heartbeat) {  // if one report is lost, the next is still in time
    const auto heartbeat_ms = static_cast<std::int64_t>(*trial.heartbeat * 1000);
    settings.longest_interval_ms = std::clamp(heartbeat_ms / 3, kFirstRetryMs, kLongestIntervalMs);
  }
  settings.log = std::move(log);
  return settings;
}

kube::ClientOptions client_options(std::function<void(int status)> on_answer) {
  kube::ClientOptions options;
  options.on_call = [on_answer = std::move(on_answer)](const kube::CallMade& call) {
    on_answer(call.code);
  };
  options.field_manager = api::kReportManager;
  options.deadline = kCallDeadline;
  return options;
}

class KubernetesReportSink final : public ReportSink {
 public:
  KubernetesReportSink(std::unique_ptr<kube::HttpTransport> transport, const api::TrialFile& trial,
                       const std::string& ns, ReportSinkLog log)
      : log_(log),
        grace_(static_cast<std::int64_t>(trial.grace_period * 1000)),
        transport_(std::move(transport)),
        // Called only from the reporter's own thread.
        client_(*transport_, client_options([this](int status) { reporter_.note_answer(status); })),
        reporter_(client_, settings_of(trial, ns, std::move(log))) {}

  void submit(const EpochReport& report) override {
    if (report.final_result) leave_message(report);
    api::ReportLine line;
    line.step = report.step;
    for (const auto& [name, value] : report.metrics) line.metrics[name] = as_printed(value);
    line.checkpoint = report.checkpoint;
    line.checkpoint_step = report.checkpoint_step;
    line.final_result = report.final_result;
    reporter_.submit(std::move(line));
  }

  void submit_waiting(const std::string& waits_for) override {
    api::ReportLine line;
    line.waiting = waits_for;
    reporter_.submit(std::move(line));
  }

  bool stop_wanted() const override { return reporter_.stop_wanted(); }

  void finish(bool stopped) override {
    if (reporter_.finish(stopped ? grace_ / 2 : grace_)) return;
    log_("the last report could not be delivered within the grace period");
  }

 private:
  // Comes first: it needs no network.
  void leave_message(const EpochReport& report) {
    const Status left = write_termination_message(kTerminationLog, termination_message(report));
    if (!left.ok()) log_("no termination message: " + left.error().message);
  }

  const ReportSinkLog log_;
  const std::chrono::milliseconds grace_;
  const std::unique_ptr<kube::HttpTransport> transport_;
  kube::Client client_;
  Reporter reporter_;
};

}  // namespace

Result<std::unique_ptr<ReportSink>> make_report_sink(const api::TrialFile& trial,
                                                     ReportSinkLog log) {
  const char* wanted = std::getenv("FETTLE_REPORT");
  if (wanted == nullptr || *wanted == '\0') return std::unique_ptr<ReportSink>();
  if (std::string_view(wanted) != "kubernetes") {
    return invalid(std::string("FETTLE_REPORT is \"") + wanted +
                   "\", expected kubernetes, or nothing for standard output alone");
  }
  FETTLE_ASSIGN(const kube::ClusterConfig config,
                kube::in_cluster_config([](const char* name) { return std::getenv(name); }));
  FETTLE_ASSIGN(auto transport, kube::connect(config, "fettle-trainer/" FETTLE_VERSION));
  return std::unique_ptr<ReportSink>(std::make_unique<KubernetesReportSink>(
      std::move(transport), trial, config.ns, std::move(log)));
}

}  // namespace fettle::trainer
