// Measures the time of one reconcile of a Study, and the memory of its trials, by their number.
//
// reconcile_ms: StudyController over KubeStore's caches. It has nothing to write: one running trial
// has reported since the previous reconcile, and no slot is free.
// turn_ms: plan_study when a trial has ended and another takes its place, without suggest_ms, the
// sampler's time to suggest it.
// Memory: of the cache of Trials, and of the controller's state of the Study.
// Prints one JSON array. Times are medians, in milliseconds. An argument selects one algorithm.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>

#include "base/check.h"
#include "core/control/study_controller.h"
#include "core/study/problem.h"
#include "core/study/study_plan.h"
#include "runtime/kubernetes/store/kube_store.h"
#include "tests/scale/crowded_study.h"

namespace fettle::scale {
namespace {

constexpr std::int64_t kNowMs = 1'800'000'000'000;
constexpr std::int64_t kRunning = 30;
constexpr int kRepeats = 200;

std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class StandingClock : public control::Clock {
 public:
  std::int64_t now_ms() override { return kNowMs; }
};

class NoServer : public kube::HttpTransport {
 public:
  kube::HttpResult call(const kube::HttpRequest& request, std::chrono::milliseconds) override {
    return kube::HttpFailure{false, "nothing was to be written, but " + request.target};
  }
  kube::HttpResult stream(const kube::HttpRequest&, const std::function<bool(std::string_view)>&,
                          std::chrono::milliseconds, std::stop_token) override {
    return kube::HttpFailure{false, "nothing was to be watched"};
  }
};

class NoRuns : public control::Runs {
 public:
  Status start(const api::Study&, const api::Trial&, std::int64_t) override { return success(); }
  Status resize(const api::Trial&, std::int64_t, std::int64_t) override { return success(); }
  Status stop(const api::Trial&, std::int64_t) override { return success(); }
  Status remove(const api::Trial&, std::int64_t) override { return success(); }
  Result<std::vector<core::Run>> observe(const api::Trial&) override {
    return std::vector<core::Run>();
  }
  core::Capacity capacity(const api::Study&) override { return {}; }
  void watch(std::function<void(const std::string&)>) override {}
};

// The operator's caches with a crowded Study.
class Crowd {
 public:
  Crowd(const std::string& algorithm, std::int64_t ended) : ended_(ended) {
    kubernetes::StudyEntry entry;
    auto study = std::make_shared<api::Study>(crowded_study(algorithm, ended, kRunning, kNowMs));
    entry.metadata = study->metadata;
    entry.study = std::move(study);
    entry.readability.reported = true;  // nothing to write about the object
    studies_.put(std::move(entry));
    const std::size_t before = bytes_in_use();
    for (std::int64_t i = 0; i < ended; ++i) put(ended_trial(i, kNowMs));
    bytes_ = bytes_in_use() - before;
    for (std::int64_t i = ended; i < ended + kRunning; ++i) put(running_trial(i, kNowMs));
  }

  std::vector<api::TrialPtr> trials() { return store_.list_trials({"team", "digits"}).value(); }
  double bytes_a_trial() const { return static_cast<double>(bytes_) / static_cast<double>(ended_); }

  // Lets some running trial report.
  void report() {
    Json trial = running_trial(ended_ + reports_ % kRunning, kNowMs);
    trial.find("metadata")->set("resourceVersion", std::to_string(10'000'000 + reports_++));
    put(trial);
  }

  void reconcile() {
    const Result<control::ReconcileResult> result = controller_.reconcile({"team", "digits"});
    CHECK(result.ok() && result->actions == 0,
          result.ok() ? "the reconcile wrote something" : result.error().message);
  }

 private:
  void put(const Json& object) {
    auto entry = kubernetes::read_trial_entry(object);
    CHECK(entry.ok() && entry->trial != nullptr,
          "a made-up trial cannot be read: " +
              (entry.ok() ? entry->readability.why : entry.error().message));
    trials_.put(std::move(entry).value());
  }

  const std::int64_t ended_;
  std::int64_t reports_ = 0;
  std::size_t bytes_ = 0;
  StandingClock clock_;
  NoServer server_;
  NoRuns runs_;
  control::Observer observer_;
  kube::Client client_{server_, {}};
  kube::Cache<kubernetes::StudyEntry> studies_;
  kube::Cache<kubernetes::TrialEntry> trials_;
  kubernetes::KubeStore store_{client_, studies_, trials_, clock_, {}};
  control::StudyController controller_{store_, runs_, clock_, observer_};
};

double ms_of(const std::function<void()>& timed) {
  const auto began = std::chrono::steady_clock::now();
  timed();
  const auto took = std::chrono::steady_clock::now() - began;
  return std::chrono::duration<double, std::milli>(took).count();
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// A sampler that measures its own time.
class TimedSampler : public search::Sampler {
 public:
  explicit TimedSampler(std::unique_ptr<search::Sampler> sampler) : sampler_(std::move(sampler)) {}
  search::Suggestion suggest(const search::History& history, std::int64_t n) override {
    search::Suggestion out;
    took_ms_ += ms_of([&] { out = sampler_->suggest(history, n); });
    return out;
  }
  std::string description() const override { return sampler_->description(); }
  double take_ms() { return std::exchange(took_ms_, 0); }

 private:
  std::unique_ptr<search::Sampler> sampler_;
  double took_ms_ = 0;
};

// Carries out exactly the decisions of plan_study.
void carry_out(const core::StudyPlan& plan, std::vector<api::TrialPtr>& trials) {
  for (const core::StudyAction& action : plan.actions) {
    if (const auto* creation = std::get_if<core::CreateTrial>(&action)) {
      trials.push_back(std::make_shared<api::Trial>(creation->trial));
    }
    const auto* record = std::get_if<core::RecordFacts>(&action);
    for (api::TrialPtr& trial : trials) {
      if (record == nullptr || trial->metadata.name != record->trial) continue;
      auto learnt = std::make_shared<api::Trial>(*trial);
      learnt->status.facts = record->facts;
      trial = std::move(learnt);
    }
  }
}

struct Turn {
  double plan_ms = 0;
  double suggest_ms = 0;
};

Turn measure_turn(const api::Study& study, std::vector<api::TrialPtr> trials) {
  TimedSampler sampler(search::make_sampler(core::problem_of(study)).value());
  const std::size_t first = trials.size() - kRunning;
  core::Ledger ledger;
  std::vector<double> plans;
  std::vector<double> suggestions;
  for (int i = 0; i < kRepeats; ++i) {
    auto ended = std::make_shared<api::Trial>(*trials[first + static_cast<std::size_t>(i)]);
    ended->status = trials.front()->status;
    ended->status.facts.clear();
    trials[first + static_cast<std::size_t>(i)] = std::move(ended);
    core::StudyPlan plan;
    const double took_ms = ms_of([&] {
      plan = core::plan_study({study, trials, {}}, sampler, ledger, kNowMs);
    });
    suggestions.push_back(sampler.take_ms());
    plans.push_back(took_ms - suggestions.back());
    const std::size_t before = trials.size();
    carry_out(plan, trials);
    CHECK(trials.size() == before + 1, "no trial took the place of the one that ended");
  }
  return {median(std::move(plans)), median(std::move(suggestions))};
}

Json measure(const std::string& algorithm, std::int64_t ended) {
  Crowd crowd(algorithm, ended);
  const std::size_t before = bytes_in_use();
  crowd.reconcile();
  const auto remembered = static_cast<double>(bytes_in_use() - before);
  std::vector<double> reconciles;
  for (int i = 0; i < kRepeats; ++i) {
    crowd.report();
    reconciles.push_back(ms_of([&] { crowd.reconcile(); }));
  }
  api::Study study = crowded_study(algorithm, ended, kRunning, kNowMs);
  study.spec.budget.trials += kRepeats;
  const Turn turn = measure_turn(study, crowd.trials());
  return Json::object({{"algorithm", algorithm},
                       {"trials", ended},
                       {"reconcile_ms", median(std::move(reconciles))},
                       {"turn_ms", turn.plan_ms},
                       {"suggest_ms", turn.suggest_ms},
                       {"cached_bytes_a_trial", crowd.bytes_a_trial()},
                       {"remembered_bytes_a_trial", remembered / static_cast<double>(ended)}});
}

}  // namespace
}  // namespace fettle::scale

int main(int count, char** arguments) {
  const std::string only = count > 1 ? arguments[1] : "";
  fettle::Json table = fettle::Json::array();
  for (const char* algorithm : {"random", "tpe"}) {
    for (const std::int64_t trials : {100, 1'000, 6'000, 20'000}) {
      if (only.empty() || only == algorithm) {
        table.push_back(fettle::scale::measure(algorithm, trials));
      }
    }
  }
  std::printf("%s\n", table.dump(2).c_str());
  return 0;
}
