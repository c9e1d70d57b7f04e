// The pages of a cluster over HTTP: the whole service, against an API server in memory.
#include "cli/serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "api/study/study_json.h"
#include "api/trial/trial_json.h"
#include "cli/cluster/cluster_source.h"
#include "cli/testing/stream_client.h"
#include "cli/testing/test_studies.h"
#include "core/names.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kToken = "0123456789abcdef";
constexpr const char* kUid = "9a1b1c1d-0000-4000-8000-0000000000aa";

class ServiceTest : public testing::Test {
 protected:
  ServiceTest()
      : api_(std::make_shared<kube::FakeApiServer>()),
        service_(
            Access(kToken, "fettle-x"),
            [this]() -> Result<std::unique_ptr<StudySource>> {
              return std::unique_ptr<StudySource>(std::make_unique<ClusterSource>(
                  Cluster{api_, "team", "kubectl fettle -n team", "kubectl -n team"}));
            },
            // The fake answers at once.
            ServiceOptions{{}, 50, 50, 1 << 20}) {}

  void SetUp() override {
    ASSERT_TRUE(service_.start().ok());
    const auto port = server_.listen(
        0, [this](const HttpRequest& request) { return service_.answer(request); },
        Reach::kThisMachine);
    ASSERT_TRUE(port.ok()) << port.error().message;
    port_ = *port;
    ASSERT_TRUE(server_.start().ok());
  }
  void TearDown() override { server_.stop(); }

  void put(const RunView& view) {
    api::Study study = view.study;
    study.metadata.ns = "team";
    study.metadata.uid = kUid;
    study.status.observed_generation = 1'000;
    Json written = api::write_study(study);
    const Json patch = *parse_json(R"({"parameters": [
        {"name": "learning_rate", "type": "Double", "min": 0.0001, "max": 1},
        {"name": "optimizer", "type": "Categorical", "values": ["sgd", "adam"]}],
      "template": {"spec": {"containers": [{"name": "trainer", "image": "i"}]}}})");
    written.find("spec")->set("parameters", *patch.find("parameters"));
    written.find("spec")->find("trial")->set("template", *patch.find("template"));
    api_->set(kube::kStudies, written);
    for (const api::TrialPtr& there : view.trials) put(*there);
  }
  void put(api::Trial trial) {
    trial.metadata.ns = "team";
    trial.metadata.labels[core::kStudyLabel] = "digits";
    trial.metadata.labels[core::kStudyUidLabel] = kUid;
    api_->set(kube::kTrials, api::write_trial(trial));
  }
  // Lets requests for this resource fail as they do without the right to it.
  void forbid(const std::string& resource) {
    kube::Fault fault;
    fault.kind = kube::Fault::Kind::kAnswer;
    fault.every = 1;
    fault.matches = [resource](const kube::HttpRequest& request) {
      return request.target.find('/' + resource) != std::string::npos;
    };
    fault.answer.status = 403;
    fault.answer.body = R"({"kind": "Status", "message": ")" + resource +
                        R"( is forbidden: User \"ann\" cannot list", "reason": "Forbidden"})";
    api_->inject(std::move(fault));
  }

  StreamClient open(const std::string& path, const std::string& headers = "") {
    return {port_, path,
            "Host: 127.0.0.1\r\nCookie: fettle-x=" + std::string(kToken) + "\r\n" + headers};
  }
  std::string get(const std::string& path, const std::string& headers = "") {
    return open(path, headers).read_all();
  }

  std::shared_ptr<kube::FakeApiServer> api_;
  Service service_;
  HttpServer server_;
  std::uint16_t port_ = 0;
};

TEST_F(ServiceTest, APageFollowsAStudyOfTheCluster) {
  put(view_in_the_middle());
  StreamClient page = open("/events?study=digits");
  EXPECT_TRUE(page.gets("Content-Type: text/event-stream"));
  EXPECT_TRUE(page.gets("event: document\n"));
  EXPECT_TRUE(page.gets("\"digits-4\""));
  EXPECT_TRUE(page.gets("event: insight\n"));
  api::Trial trial = *view_in_the_middle().trials[3];
  trial.status.report->metrics["accuracy"] = 0.98765;
  put(trial);
  EXPECT_TRUE(page.gets("event: change\n"));
  EXPECT_TRUE(page.gets("0.98765"));
  api_->remove(kube::kStudies, {"team", "digits"});
  EXPECT_TRUE(page.gets("event: gone\n"));
  EXPECT_TRUE(page.gets("no study 'digits' in namespace team"));
}

TEST_F(ServiceTest, AStreamIsResumedById) {
  put(view_in_the_middle());
  std::string id;
  {
    StreamClient page = open("/events?study=digits");
    ASSERT_TRUE(page.gets("event: insight\n"));
    ASSERT_TRUE(page.gets("\nid: "));  // of the change that comes with the insight
    ASSERT_TRUE(page.gets("\nevent: change"));
    const std::string& all = page.got();
    const std::size_t at = all.rfind("\nid: ") + 5;
    id = all.substr(at, all.find('\n', at) - at);
  }
  api::Trial trial = *view_in_the_middle().trials[3];
  trial.status.report->metrics["accuracy"] = 0.98765;
  put(trial);
  StreamClient back = open("/events?study=digits", "Last-Event-ID: " + id + "\r\n");
  EXPECT_TRUE(back.gets("0.98765"));
  EXPECT_EQ(back.got().find("event: document"), std::string::npos);
}

TEST_F(ServiceTest, AStudyThatBeginsLaterIsShownThen) {
  StreamClient list = open("/events");
  EXPECT_TRUE(list.gets("event: document\n"));
  EXPECT_TRUE(list.gets("\"studies\":[]"));
  StreamClient page = open("/events?study=digits");
  EXPECT_TRUE(page.gets("event: gone\n"));
  put(view_in_the_middle());
  EXPECT_TRUE(list.gets("event: change\n"));
  EXPECT_TRUE(list.gets("\"digits\""));
  EXPECT_TRUE(page.gets("event: reset\n"));
}

TEST_F(ServiceTest, WhatMayNotBeSeenIsASentence) {
  forbid("studies");
  StreamClient list = open("/events");
  EXPECT_TRUE(list.gets("event: trouble\n"));
  EXPECT_TRUE(list.gets("\"code\":\"forbidden\""));
  EXPECT_TRUE(list.gets("studies is forbidden"));
  StreamClient page = open("/events?study=digits");
  EXPECT_TRUE(page.gets("studies is forbidden"));
  EXPECT_THAT(get("/api/study/digits"), StartsWith("HTTP/1.1 403"));
  api_->clear_faults();
  put(view_in_the_middle());
  EXPECT_TRUE(list.gets("\"digits\""));
}

TEST_F(ServiceTest, AViewerWithoutTheRightToTrialsIsTold) {
  put(view_in_the_middle());
  forbid("trials");
  StreamClient page = open("/events?study=digits");
  EXPECT_TRUE(page.gets("event: trouble\n"));
  EXPECT_TRUE(page.gets("trials is forbidden"));
}

TEST_F(ServiceTest, ALogIsFollowedToItsEnd) {
  put(view_in_the_middle());
  Json pod = *parse_json(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team",
      "name": "digits-3-r1-0", "labels": {"fettle.dev/trial": "digits-3", "fettle.dev/run": "1",
      "batch.kubernetes.io/job-completion-index": "0"}},
      "spec": {"containers": [{"name": "trainer"}]}, "status": {"phase": "Running",
      "containerStatuses": [{"name": "trainer",
          "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}}]}})");
  api_->set(kube::kPods, pod);
  const kube::ObjectKey key{"team", "digits-3-r1-0"};
  api_->append_log(key, "trainer", "<b>epoch 1</b>");
  std::jthread ticks([this](const std::stop_token& stop) {
    for (std::int64_t now_ms = 0; !stop.stop_requested(); now_ms += 20) {
      service_.tick(now_ms);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_THAT(get("/api/trial/digits-3/log"), EndsWith("\r\n\r\n<b>epoch 1</b>\n"));
  EXPECT_THAT(get("/api/trial/digits-3/log?from=3"), EndsWith("\r\n\r\nepoch 1</b>\n"));
  StreamClient log = open("/api/trial/digits-3/log?follow=1");
  EXPECT_TRUE(log.gets("event: log\n"));
  EXPECT_TRUE(log.gets("epoch 1"));
  api_->append_log(key, "trainer", "epoch 2");
  EXPECT_TRUE(log.gets("epoch 2"));
  api_->end_log(key, "trainer");
  EXPECT_TRUE(log.gets("event: end\n"));
  EXPECT_THAT(get("/api/trial/digits-9/log"), StartsWith("HTTP/1.1 404"));
}

TEST_F(ServiceTest, TheApiAnswersPrograms) {
  put(view_in_the_middle());
  const std::string document = get("/api/study/digits");
  EXPECT_THAT(document, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"version\":1"),
                              HasSubstr("Content-Security-Policy: ")));
  const std::size_t at = document.find("ETag: ") + 6;
  const std::string etag = document.substr(at, document.find("\r\n", at) - at);
  EXPECT_THAT(get("/api/study/digits", "If-None-Match: " + etag + "\r\n"),
              StartsWith("HTTP/1.1 304"));
  put(*view_in_the_middle().trials[4]);
  EXPECT_THAT(get("/api/studies"), HasSubstr("\"name\":\"digits\""));
  EXPECT_THAT(get("/api/study/digits/insight"), HasSubstr("\"insights\":["));
  EXPECT_THAT(get("/api/trial/digits-0/why"), HasSubstr("chosen"));
  EXPECT_THAT(get("/metrics"), HasSubstr("fettle_study_trials{study=\"digits\""));
  for (const char* path : {"/api/study/nothing", "/api/trial/digits-77/why", "/api/trial/x/why",
                           "/nothing", "/study/<script>", "/assets/page.html"}) {
    EXPECT_THAT(get(path), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST_F(ServiceTest, NothingIsAnsweredWithoutTheToken) {
  put(view_in_the_middle());
  for (const char* path : {"/", "/study/digits", "/events", "/api/studies", "/metrics",
                           "/assets/follow.js", "/nothing"}) {
    EXPECT_THAT(StreamClient(port_, path, "Host: 127.0.0.1\r\n").read_all(),
                AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("nosniff")))
        << path;
  }
  EXPECT_THAT(get("/", "Origin: https://evil.example\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(ServiceTest, TwentyPagesFollowOneStudyByOneReader) {
  put(view_in_the_middle());
  std::vector<std::unique_ptr<StreamClient>> pages;
  for (int i = 0; i < 20; ++i) {
    pages.push_back(std::make_unique<StreamClient>(
        port_, "/events?study=digits",
        "Host: localhost\r\nCookie: fettle-x=" + std::string(kToken) + "\r\n"));
  }
  for (const auto& page : pages) EXPECT_TRUE(page->gets("event: insight\n"));
  api::Trial trial = *view_in_the_middle().trials[3];
  trial.status.report->metrics["accuracy"] = 0.98765;
  put(trial);
  for (const auto& page : pages) EXPECT_TRUE(page->gets("0.98765"));
}

}  // namespace
}  // namespace fettle::cli
