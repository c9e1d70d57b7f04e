// The commands against a cluster: an API server in memory, in which tests play the operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <thread>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "cli/cluster/cluster_run.h"
#include "cli/cluster/cluster_source.h"
#include "cli/cluster/follower.h"
#include "cli/testing/test_studies.h"
#include "core/names.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() : server_(std::make_shared<kube::FakeApiServer>()) {
    cluster_ = {server_, "team", "kubectl fettle -n team", "kubectl -n team"};
  }

  // Puts a study on the server, as in the middle of a search or at its end.
  void put(const RunView& view) {
    api::Study study = view.study;
    study.metadata.ns = "team";
    study.metadata.uid = "9a1b1c1d-0000-4000-8000-0000000000aa";
    study.status.observed_generation = 1'000;  // the operator has seen every change
    server_->set(kube::kStudies, whole(api::write_study(study)));
    for (const api::TrialPtr& there : view.trials) {
      api::Trial trial = *there;
      trial.metadata.ns = "team";
      trial.metadata.labels[core::kStudyLabel] = study.metadata.name;
      trial.metadata.labels[core::kStudyUidLabel] = study.metadata.uid;
      server_->set(kube::kTrials, api::write_trial(trial));
    }
  }

  // Adds the fields that a valid Study needs: the test studies are views, not documents.
  static Json whole(Json study) {
    const Json patch = *parse_json(R"({"parameters": [
        {"name": "learning_rate", "type": "Double", "min": 0.0001, "max": 1},
        {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam"]}],
      "template": {"spec": {"containers": [{"name": "trainer", "image": "i"}]}}})");
    Json* spec = study.find("spec");
    spec->set("parameters", *patch.find("parameters"));
    spec->find("trial")->set("template", *patch.find("template"));
    return study;
  }

  void put_pod(const std::string& name, const std::string& run, const std::string& rank,
               const std::string& state) {
    Json pod = *parse_json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team"},
      "spec": {"containers": [{"name": "proxy"}, {"name": "trainer"}]},
      "status": {"phase": "Pending", "containerStatuses": [{"name": "trainer"}]}})");
    Json* metadata = pod.find("metadata");
    metadata->set("name", name);
    metadata->set("labels", Json::object({{"fettle.dev/trial", "digits-0"},
                                          {"fettle.dev/run", run},
                                          {"batch.kubernetes.io/job-completion-index", rank}}));
    pod.find("status")->find("containerStatuses")->as_array()[0].set("state", *parse_json(state));
    server_->set(kube::kPods, pod);
  }

  std::string log(std::optional<std::int64_t> run, bool follow, Status* status = nullptr) {
    ClusterSource source(cluster_);
    std::string text;
    const Status printed =
        source.print_log("digits-0", run, follow, [&](std::string_view bytes) { text += bytes; });
    if (status != nullptr) *status = printed;
    return text;
  }

  std::shared_ptr<kube::FakeApiServer> server_;
  Cluster cluster_;
};

constexpr const char* kRunning = R"({"running": {"startedAt": "2026-01-31T12:00:00Z"}})";

// ---- Stopping and deleting ---------------------------------------------------------------------

TEST_F(ClusterTest, StopSuspendsTheStudy) {
  put(view_in_the_middle());
  const auto said = ClusterSource(cluster_).stop("digits", /*now=*/false);
  ASSERT_TRUE(said.ok()) << said.error().message;
  EXPECT_THAT(*said, HasSubstr("kubectl -n team patch study digits --type merge"));
  const Json stored = server_->get(kube::kStudies, {"team", "digits"});
  EXPECT_EQ(*stored.find("spec")->find("suspend"), Json(true));
}

TEST_F(ClusterTest, StopLeavesAStudyThatHasEndedAlone) {
  put(view_at_the_end());
  const auto said = ClusterSource(cluster_).stop("digits", /*now=*/false);
  ASSERT_FALSE(said.ok());
  EXPECT_EQ(said.error().message, "study digits is not running: it has succeeded");
}

TEST_F(ClusterTest, PodsCannotBeStoppedAtOnce) {
  put(view_in_the_middle());
  const auto said = ClusterSource(cluster_).stop("digits", /*now=*/true);
  ASSERT_FALSE(said.ok());
  EXPECT_THAT(said.error().message, HasSubstr("kubectl -n team delete pod --now"));
}

TEST_F(ClusterTest, DeleteRefusesAStudyThatRuns) {
  put(view_in_the_middle());
  const Status removed = ClusterSource(cluster_).remove("digits");
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().message,
            "study digits is running; stop it first: kubectl fettle -n team stop digits");
  EXPECT_THAT(*ClusterSource(cluster_).names(), ElementsAre("digits"));
}

TEST_F(ClusterTest, DeleteRemovesAStudyThatHasEnded) {
  put(view_at_the_end());
  const Status removed = ClusterSource(cluster_).remove("digits");
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_THAT(*ClusterSource(cluster_).names(), testing::IsEmpty());
}

// ---- Looking -----------------------------------------------------------------------------------

TEST_F(ClusterTest, ShowsAStudyAsItIsThere) {
  put(view_in_the_middle());
  ClusterSource source(cluster_);
  EXPECT_THAT(*source.names(), ElementsAre("digits"));
  const auto seen = source.read("digits", Detail::kObjects);
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  ASSERT_EQ(seen->view.trials.size(), 5u);
  EXPECT_EQ(seen->view.trials[4]->spec.index, 4);
  EXPECT_EQ(seen->view.study.status.trials.running, 2);
  EXPECT_EQ(seen->view.study.status.best.at(0).trial, "digits-0");
  EXPECT_EQ(seen->log("digits-2", 0), "kubectl fettle -n team logs digits-2 --run 0");
}

TEST_F(ClusterTest, NamesTheStudiesThereAre) {
  put(view_in_the_middle());
  const auto seen = ClusterSource(cluster_).read("digts", Detail::kObjects);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().message, "no study 'digts' in namespace team; there are: digits");
}

TEST_F(ClusterTest, TellsTheEventsOfAStudyAndItsTrialsAndNoOthers) {
  put(view_in_the_middle());
  for (const char* name : {"digits-1", "mnist-1"}) {
    Json event = *parse_json(R"({"apiVersion": "events.k8s.io/v1", "kind": "Event",
      "metadata": {"namespace": "team"}, "type": "Warning", "reason": "Retrying",
      "note": "exit code 3", "eventTime": "2026-01-31T12:00:00.000000Z",
      "series": {"count": 4, "lastObservedTime": "2026-01-31T12:05:00.000000Z"}})");
    event.find("metadata")->set("name", std::string(name) + ".1");
    event.set("regarding", Json::object({{"kind", "Trial"}, {"name", name}}));
    server_->set(kube::kEvents, event);
  }
  const auto seen = ClusterSource(cluster_).read("digits", Detail::kWithEvents);
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  ASSERT_EQ(seen->view.timeline.size(), 1u);
  EXPECT_EQ(seen->view.timeline[0].text, "digits-1 Retrying: exit code 3 (4 times)");
  EXPECT_TRUE(seen->view.timeline[0].warning);
}

TEST_F(ClusterTest, SaysThatFettleMayNotBeInstalled) {
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kAnswer;
  fault.answer.status = 404;
  fault.answer.body = "404 page not found";
  server_->inject(fault);
  const auto names = ClusterSource(cluster_).names();
  ASSERT_FALSE(names.ok());
  EXPECT_EQ(names.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(names.error().message, HasSubstr("is Fettle installed there?"));
}

// ---- Logs --------------------------------------------------------------------------------------

TEST_F(ClusterTest, PrintsTheLogOfRankZeroOfTheNewestRun) {
  put(view_in_the_middle());
  for (const auto& [pod, run, rank] :
       {std::tuple("old", "9", "0"), std::tuple("other", "10", "1"), std::tuple("it", "10", "0")}) {
    put_pod(pod, run, rank, kRunning);
    server_->append_log({"team", pod}, "trainer", std::string("from ") + pod);
  }
  EXPECT_EQ(log(std::nullopt, false), "from it\n");
  EXPECT_EQ(log(9, false), "from old\n");
}

TEST_F(ClusterTest, FollowsALogUntilTheContainerEnds) {
  put(view_in_the_middle());
  put_pod("it", "0", "0", kRunning);
  server_->append_log({"team", "it"}, "trainer", "first");
  std::thread container([this] {
    std::this_thread::sleep_for(milliseconds(100));
    server_->append_log({"team", "it"}, "trainer", "second");
    server_->end_log({"team", "it"}, "trainer");
  });
  EXPECT_EQ(log(std::nullopt, true), "first\nsecond\n");
  container.join();
}

TEST_F(ClusterTest, SaysWhyThereIsNoLogYetOrAnyMore) {
  put(view_in_the_middle());
  Status status = success();
  log(std::nullopt, false, &status);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("digits-0 has no pod now"));
  put_pod("it", "0", "0",
          R"({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})");
  log(std::nullopt, false, &status);
  EXPECT_EQ(status.error().message, "it has not started: ImagePullBackOff: no such image");
  const auto print = [](std::string_view) {};
  const Status missing = ClusterSource(cluster_).print_log("digits-77", {}, false, print);
  EXPECT_EQ(missing.error().message, "no trial 'digits-77' in namespace team");
}

// ---- Applying and following --------------------------------------------------------------------

TEST_F(ClusterTest, AppliesTheDocumentAsItWasWritten) {
  const Json document = *parse_json(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study",
    "metadata": {"name": "digits"}, "spec": {"budget": {"wallTime": "2h"}}, "status": {}})");
  ASSERT_TRUE(apply_study(cluster_, document).ok());
  const Json stored = server_->get(kube::kStudies, {"team", "digits"});
  EXPECT_EQ(*stored.find("spec"), *document.find("spec")) << "and no defaults of this program's";
  EXPECT_THAT(server_->requests(), ElementsAre(HasSubstr("PATCH ")));
}

TEST_F(ClusterTest, RefusalsAreToldInTheServersWordsOneALine) {
  server_->on_admission([](const kube::Admission&) {
    return invalid(
        R"(Study.fettle.dev "digits" is invalid: [spec.budget: too small, spec.parameters: none])");
  });
  const Json document = *parse_json(R"({"apiVersion": "fettle.dev/v1alpha1", "kind": "Study",
    "metadata": {"name": "digits"}, "spec": {}})");
  const Status applied = apply_study(cluster_, document);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(applied.error().message,
              HasSubstr("is invalid:\n  spec.budget: too small\n  spec.parameters: none"));
}

// Records all calls.
class Recorder final : public Display {
 public:
  void show(const RunView& view, const std::vector<TimelineEntry>& news) override {
    ++shown;
    trials = view.trials.size();
    for (const TimelineEntry& entry : news) told.push_back(entry.text);
  }
  void say(const std::string& message) override { said.push_back(message); }
  void finish(const RunView&, const FinalMessage&) override {}

  std::atomic<int> shown = 0;
  std::size_t trials = 0;
  std::vector<std::string> told;
  std::vector<std::string> said;
};

class FollowerTest : public ClusterTest {
 protected:
  FollowerTest() : interrupt_(*Interrupt::install()) {}

  // Follows while another thread runs `operator_acts`, after the first look.
  Result<StudyState> follow(const std::function<void()>& operator_acts) {
    Follower follower(cluster_, "digits", *interrupt_, recorder_);
    std::thread other([&] {
      for (int i = 0; i < 24'000 && recorder_.shown == 0; ++i) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      operator_acts();
    });
    auto state = follower.run();
    other.join();
    return state;
  }

  std::unique_ptr<Interrupt> interrupt_;
  Recorder recorder_;
};

TEST_F(FollowerTest, ReportsEventsUntilTheStudyEnds) {
  put(view_in_the_middle());
  const auto state = follow([this] { put(view_at_the_end()); });
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(*state, StudyState::kFinished);
  EXPECT_EQ(recorder_.trials, 5u);
  EXPECT_THAT(recorder_.told, testing::Contains(HasSubstr("digits succeeded")));
}

TEST_F(FollowerTest, ASignalEndsOnlyTheFollowing) {
  put(view_in_the_middle());
  server_->forget_requests();
  const auto state = follow([] { ::kill(::getpid(), SIGINT); });
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(*state, StudyState::kActive);
  EXPECT_EQ(server_->writes(), 0);
  EXPECT_THAT(next_commands(cluster_, "digits"),
              testing::AllOf(HasSubstr("kubectl fettle -n team status digits"),
                             HasSubstr("kubectl -n team delete study digits"),
                             HasSubstr(R"(-p '{"spec":{"suspend":true}}')")));
}

// An API server that answers nothing, without an error, until released.
class SilentServer : public kube::HttpTransport {
 public:
  explicit SilentServer(kube::HttpTransport& server) : server_(server) {}
  kube::HttpResult call(const kube::HttpRequest& request, milliseconds deadline) override {
    let_go_.wait();
    return server_.call(request, deadline);
  }
  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          milliseconds idle, std::stop_token stop) override {
    return server_.stream(request, on_line, idle, std::move(stop));
  }
  void let_go() { let_go_.count_down(); }

 private:
  kube::HttpTransport& server_;
  std::latch let_go_{1};
};

TEST_F(FollowerTest, SaysWhyItGivesUpOnAServerThatDoesNotAnswer) {
  Cluster silent = cluster_;
  const auto server = std::make_shared<SilentServer>(*server_);
  silent.transport = server;
  Follower follower(silent, "digits", *interrupt_, recorder_, std::chrono::seconds(0));
  const auto state = follower.run();
  server->let_go();  // or the follower would wait for it in the end
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().message,
            "the study cannot be followed: the API server has not listed it and its trials within "
            "0s");
}

TEST_F(FollowerTest, AStudyThatIsDeletedIsFollowedNoMore) {
  put(view_in_the_middle());
  const auto state = follow([this] { server_->remove(kube::kStudies, {"team", "digits"}); });
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().message, "study digits was deleted");
}

}  // namespace
}  // namespace fettle::cli
