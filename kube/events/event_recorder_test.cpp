#include "kube/events/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() {
    EventRecorderOptions options;
    options.instance = "fettle-operator-abc";
    options.retry = 10ms;
    recorder_.emplace(client_, options);
  }
  void record(const std::string& note) {
    Occurrence occurrence;
    occurrence.about = {kStudies, {"team", "digits"}, "uid-1", "7"};
    occurrence.reason = "Started";
    occurrence.note = note;
    recorder_->record(std::move(occurrence));
  }
  std::int64_t count_of_only_event() {
    const auto events = server_.list(kEvents);
    EXPECT_EQ(events.size(), 1U);
    return events.empty() ? 0 : integer_at(events[0], {"series", "count"}, 1);
  }
  void fail(Fault::Kind kind, int times) {
    Fault fault;
    fault.kind = kind;
    fault.times = times;
    server_.inject(fault);
  }

  FakeApiServer server_;
  Client client_{server_, ClientOptions{"fettle", 500ms, 0, 1, {}, {}}};
  std::optional<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesEventsAndTheirSeries) {
  recorder_->start();
  for (int i = 0; i < 7; ++i) record("running");
  recorder_->stop();
  EXPECT_EQ(count_of_only_event(), 7);
  EXPECT_EQ(server_.writes(), 3) << "the event, that it is a series, and the end";
  EXPECT_EQ(recorder_->dropped(), 0U);
}

TEST_F(EventRecorderTest, TriesAgainWhileTheServerIsAway) {
  fail(Fault::Kind::kRefused, kMaxEventTries - 1);
  recorder_->start();
  record("running");
  for (int i = 0; i < 12'000 && server_.list(kEvents).empty(); ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(count_of_only_event(), 1);
  EXPECT_EQ(recorder_->dropped(), 0U);
}

TEST_F(EventRecorderTest, AnEventWhoseAnswerWasLostIsNotDoubled) {
  fail(Fault::Kind::kResetAfter, 1);
  recorder_->start();
  record("running");
  for (int i = 0; i < 12'000 && server_.writes() < 2; ++i) std::this_thread::sleep_for(10ms);
  recorder_->stop();
  EXPECT_EQ(count_of_only_event(), 1);
  EXPECT_EQ(recorder_->dropped(), 0U);
}

TEST_F(EventRecorderTest, AnEventThatExpiredIsMadeAnew) {
  recorder_->start();
  record("running");
  for (int i = 0; i < 12'000 && server_.list(kEvents).empty(); ++i)
    std::this_thread::sleep_for(10ms);
  server_.remove(kEvents, key_of(server_.list(kEvents).at(0)));
  record("running");
  recorder_->stop();
  EXPECT_EQ(count_of_only_event(), 2);
}

TEST_F(EventRecorderTest, RefusedAndSurplusEventsAreDropped) {
  server_.on_admission([](const Admission&) -> Status {
    return Error{ErrorCode::kForbidden, "no events here"};
  });
  for (std::size_t i = 0; i < kMaxQueuedEvents + 5; ++i) record(std::to_string(i));
  EXPECT_EQ(recorder_->dropped(), 5U);
  recorder_->start();
  recorder_->stop();
  EXPECT_EQ(recorder_->dropped(), kMaxQueuedEvents + 5);
  EXPECT_EQ(server_.list(kEvents).size(), 0U);
}

}  // namespace
}  // namespace fettle::kube
