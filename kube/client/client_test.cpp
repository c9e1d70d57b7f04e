// The Client over the in-memory API server: verbs, the text of its errors, and faults.
#include "kube/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ObjectKey kKey{"team", "digits-0"};

Json trial(const std::string& name = "digits-0", const std::string& study = "digits") {
  return Json::object(
      {{"apiVersion", "fettle.dev/v1alpha1"},
       {"kind", "Trial"},
       {"metadata", Json::object({{"name", name}, {"labels", Json::object({{"study", study}})}})},
       {"spec", Json::object({{"study", study}})}});
}

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    server_.allow_any_call();
    options_.pause = [this](milliseconds time) { paused_.push_back(time); };
    options_.on_call = [this](const CallMade& call) {
      calls_.push_back(std::string(call.verb) + ' ' + call.resource + ' ' +
                       std::to_string(call.code));
    };
    client_.emplace(server_, options_);
  }

  Json created() { return client_->create(kTrials, "team", trial()).value().object; }
  std::string uid() { return text_at(server_.get(kTrials, kKey), {"metadata", "uid"}); }

  void answer(int status, std::string body, std::optional<std::chrono::seconds> retry_after = {},
              int times = 1) {
    Fault fault;
    fault.kind = Fault::Kind::kAnswer;
    fault.times = times;
    fault.answer = {status, std::move(body), retry_after, {}};
    server_.inject(fault);
  }
  void fail(Fault::Kind kind, int times = 1) {
    Fault fault;
    fault.kind = kind;
    fault.times = times;
    server_.inject(fault);
  }

  FakeApiServer server_;
  ClientOptions options_;
  std::optional<Client> client_;
  std::vector<milliseconds> paused_;
  std::vector<std::string> calls_;
};

TEST_F(ClientTest, WritesAndReadsObjects) {
  const Json made = created();
  EXPECT_EQ(text_at(made, {"metadata", "namespace"}), "team");
  EXPECT_EQ(client_->get(kTrials, kKey).value(), made);

  Json changed = made;
  changed.find("spec")->set("seed", 3);
  const Json updated = client_->update(kTrials, kKey, "", changed).value().object;
  EXPECT_EQ(integer_at(updated, {"metadata", "generation"}), 2);

  const Json patch = Json::object({{"spec", Json::object({{"seed", Json()}, {"index", 1}})}});
  const Json patched = client_->patch(kTrials, kKey, "", patch).value().object;
  EXPECT_EQ(value_at(patched, {"spec", "seed"}), nullptr);
  EXPECT_EQ(integer_at(patched, {"spec", "index"}), 1);

  EXPECT_TRUE(client_->remove(kTrials, kKey, {uid(), "", false}).ok());
  EXPECT_EQ(client_->get(kTrials, kKey).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(calls_, ElementsAre("create trials 201", "get trials 200", "update trials 200",
                                  "patch trials 200", "delete trials 200", "get trials 404"));
}

TEST_F(ClientTest, StatusWritesLeaveSpecAlone) {
  const Json made = created();
  Json changed = made;
  changed.set("spec", Json::object({{"study", "other"}}));
  changed.set("status", Json::object({{"phase", "Running"}}));
  const Json written = client_->update(kTrials, kKey, "status", changed).value().object;
  EXPECT_EQ(text_at(written, {"spec", "study"}), "digits");
  EXPECT_EQ(text_at(written, {"status", "phase"}), "Running");
  EXPECT_EQ(integer_at(written, {"metadata", "generation"}), 1);
}

TEST_F(ClientTest, ApplyOwnsExactlyItsFields) {
  (void)created();
  const auto status = [](Json fields) { return Json::object({{"status", std::move(fields)}}); };
  const auto apply = [&](Json fields, const char* manager) {
    return client_->apply(kTrials, kKey, "status", status(std::move(fields)), manager)
        .value()
        .object;
  };
  (void)apply(Json::object({{"phase", "Running"}, {"note", "a"}}), "fettle");
  (void)apply(Json::object({{"report", Json::object({{"step", 1}})}}), "fettle-trainer");
  const Json result = apply(Json::object({{"phase", "Completed"}}), "fettle");
  EXPECT_EQ(*result.find("status"),
            parse_json(R"({"phase": "Completed", "report": {"step": 1}})").value());
  const std::string version = text_at(result, {"metadata", "resourceVersion"});
  const Json again = apply(Json::object({{"phase", "Completed"}}), "fettle");
  EXPECT_EQ(text_at(again, {"metadata", "resourceVersion"}), version) << "a write of nothing";
}

TEST_F(ClientTest, StaleVersionsAndUidsAreConflicts) {
  Json stale = created();
  (void)client_->patch(kTrials, kKey, "", Json::object({{"spec", Json::object({{"seed", 1}})}}));
  EXPECT_EQ(client_->update(kTrials, kKey, "", stale).error().code, ErrorCode::kConflict);
  EXPECT_EQ(client_->apply(kTrials, kKey, "status", stale, "fettle").error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(client_->remove(kTrials, kKey, {"another", "", false}).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(client_->remove(kTrials, kKey, {uid(), "1", false}).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(client_->get(kTrials, kKey).ok());
}

TEST_F(ClientTest, ANameThatIsTakenIsSaidSo) {
  (void)created();
  const Error error = client_->create(kTrials, "team", trial()).error();
  EXPECT_EQ(error.code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(error.message, HasSubstr("create Trial team/digits-0: "));
  EXPECT_THAT(error.message, HasSubstr("already exists"));
}

TEST_F(ClientTest, DryRunsStoreNothing) {
  EXPECT_TRUE(client_->create(kTrials, "team", trial(), {true}).ok());
  EXPECT_THAT(server_.list(kTrials), IsEmpty());
}

TEST_F(ClientTest, ListsAllPagesWithKinds) {
  for (int i = 0; i < 1203; ++i)
    server_.set(kTrials, [&] {
      Json object = trial("digits-" + std::to_string(i), i % 3 == 0 ? "digits" : "other");
      object.find("metadata")->set("namespace", i % 2 == 0 ? "team" : "else");
      return object;
    }());
  EXPECT_EQ(client_->list(kTrials, "").value().size(), 1203U);
  EXPECT_EQ(calls_.size(), 3U);
  const auto some = client_->list(kTrials, "team", {"study=digits", ""}).value();
  EXPECT_EQ(some.size(), 201U);
  EXPECT_EQ(text_at(some.front(), {"kind"}), "Trial");
  EXPECT_EQ(text_at(some.front(), {"apiVersion"}), "fettle.dev/v1alpha1");
  EXPECT_EQ(client_->list(kTrials, "team", {"", "metadata.name=digits-8"}).value().size(), 1U);
}

TEST_F(ClientTest, ADeletionThatAPageAnsweredIsNotKnownToBeDone) {
  created();
  answer(200, "<html>log in</html>");
  const Status removed = client_->remove(kTrials, kKey, {uid(), "", false});
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().code, ErrorCode::kUnavailable);
}

TEST_F(ClientTest, AListWhoseContinuationExpiredBeginsAgain) {
  for (int i = 0; i < 600; ++i) server_.set(kTrials, trial("digits-" + std::to_string(i)));
  Fault expired;
  expired.kind = Fault::Kind::kAnswer;
  expired.matches = [](const HttpRequest& request) {
    return request.target.find("continue=") != std::string::npos;
  };
  expired.answer = {410, R"({"kind": "Status", "code": 410, "reason": "Expired"})", {}, {}};
  server_.inject(expired);
  EXPECT_EQ(client_->list(kTrials, "").value().size(), 600U);
  EXPECT_EQ(calls_.size(), 4U);
}

TEST_F(ClientTest, PassesOnTheApiServersMessage) {
  struct Case {
    int status;
    const char* body;
    ErrorCode code;
    const char* message;
  };
  const Case cases[] = {
      {422,
       R"({"kind": "Status", "message": "Trial is invalid", "reason": "Invalid", "details": {
          "causes": [{"field": "spec.seed", "message": "Required value"},
                     {"field": "spec", "message": "is invalid"}]}})",
       ErrorCode::kInvalid, "get Trial team/digits-0: Trial is invalid; spec.seed: Required value"},
      {403, R"({"kind": "Status", "message": "exceeded quota: a", "reason": "Forbidden"})",
       ErrorCode::kForbidden, "get Trial team/digits-0: exceeded quota: a"},
      {403,
       R"({"kind": "Status", "reason": "Forbidden", "code": 403, "message": "it goes",
           "details": {"causes": [{"reason": "NamespaceTerminating", "message": "it goes"}]}})",
       ErrorCode::kUnavailable, "get Trial team/digits-0: it goes"},
      {409, R"({"kind": "Status", "reason": "Conflict"})", ErrorCode::kConflict,
       "get Trial team/digits-0: Conflict"},
      {410, R"({"kind": "Status", "reason": "Expired", "message": "too old"})",
       ErrorCode::kNotFound, "get Trial team/digits-0: too old"},
      {500, R"({"kind": "Status", "message": "etcd"})", ErrorCode::kUnavailable,
       "get Trial team/digits-0: etcd"},
      {502, "<html><head><title>Bad  gateway</title></head></html>", ErrorCode::kUnavailable,
       "get Trial team/digits-0: the API server, or something before it, answered HTTP 502 with a "
       "page of HTML: Bad gateway"},
      {400, "<h1>no</h1>", ErrorCode::kUnavailable,
       "get Trial team/digits-0: the API server, or something before it, answered HTTP 400 with a "
       "page of HTML: no"},
      {401, "", ErrorCode::kForbidden,
       "get Trial team/digits-0: the API server, or something before it, answered HTTP 401 without "
       "a message"},
      {200, "<html>Please log in</html>", ErrorCode::kUnavailable,
       "get Trial team/digits-0: expected JSON, got HTTP 200 with a page of HTML: Please log in"},
  };
  for (const Case& c : cases) {
    answer(c.status, c.body);
    const Error error = client_->get(kTrials, kKey).error();
    EXPECT_EQ(error.code, c.code) << c.body;
    EXPECT_EQ(error.message, c.message);
  }
  EXPECT_THAT(paused_, IsEmpty()) << "none of these says Retry-After";
}

TEST_F(ClientTest, WaitsAsLongAsRetryAfterSays) {
  answer(429, "slow down", std::chrono::seconds(2), 2);
  EXPECT_TRUE(client_->create(kTrials, "team", trial()).ok());
  EXPECT_THAT(paused_, ElementsAre(milliseconds(2000), milliseconds(4000)));
  EXPECT_THAT(calls_, ElementsAre("create trials 429", "create trials 429", "create trials 201"));
}

TEST_F(ClientTest, DoesNotWaitLongerThanItsDeadline) {
  answer(503, "later", std::chrono::seconds(3600));
  EXPECT_EQ(client_->create(kTrials, "team", trial()).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(paused_, IsEmpty());
}

TEST_F(ClientTest, ReadsAreTriedAgainWhenTheNetworkFails) {
  (void)created();
  fail(Fault::Kind::kResetBefore, 3);
  EXPECT_TRUE(client_->get(kTrials, kKey).ok());
  EXPECT_THAT(paused_, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400)));
  fail(Fault::Kind::kRefused, 1000);
  EXPECT_EQ(client_->get(kTrials, kKey).error().code, ErrorCode::kUnavailable);
}

TEST_F(ClientTest, WritesAreNotTriedAgainAndTheirOutcomeIsSaidToBeUnknown) {
  for (const auto kind : {Fault::Kind::kResetBefore, Fault::Kind::kResetAfter}) {
    fail(kind);
    const Error error = client_->create(kTrials, "team", trial()).error();
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("outcome unknown"));
  }
  EXPECT_EQ(server_.list(kTrials).size(), 1U) << "the second one was carried out";
  fail(Fault::Kind::kRefused);
  const Error refused = client_->create(kTrials, "team", trial("x")).error();
  EXPECT_EQ(refused.message, "create Trial team/x: connection refused");
  EXPECT_EQ(calls_.size(), 3U);
}

TEST_F(ClientTest, ADoubledPostCollidesWithItself) {
  fail(Fault::Kind::kDoubled);
  EXPECT_EQ(client_->create(kTrials, "team", trial()).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(server_.list(kTrials).size(), 1U);
}

TEST_F(ClientTest, ACutBodyIsNoSuccess) {
  fail(Fault::Kind::kTruncated);
  const Error error = client_->create(kTrials, "team", trial()).error();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("outcome unknown: expected JSON"));
  EXPECT_EQ(server_.list(kTrials).size(), 1U);
}

TEST_F(ClientTest, EveryThirdWriteMayConflict) {
  Fault fault;
  fault.kind = Fault::Kind::kAnswer;
  fault.every = 3;
  fault.matches = [](const HttpRequest& request) { return request.method != "GET"; };
  fault.answer = {409, R"({"kind": "Status", "reason": "Conflict"})", {}, {}};
  server_.inject(fault);
  int conflicts = 0;
  for (int i = 0; i < 9; ++i) {
    const auto made = client_->create(kTrials, "team", trial("t-" + std::to_string(i)));
    if (!made.ok() && made.error().code == ErrorCode::kConflict) ++conflicts;
  }
  EXPECT_EQ(conflicts, 3);
  EXPECT_EQ(server_.list(kTrials).size(), 6U);
}

TEST_F(ClientTest, ReadsLogsLineByLine) {
  server_.set(kPods, parse_json(R"({"metadata": {"name": "p", "namespace": "team"}})").value());
  for (const char* line : {"one", "two", "three"})
    server_.append_log({"team", "p"}, "trainer", line);
  std::vector<std::string> lines;
  const auto keep = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  EXPECT_TRUE(client_->read_log({"team", "p"}, {"trainer", false, 2, {}}, keep, {}).ok());
  EXPECT_THAT(lines, ElementsAre("two", "three"));
  EXPECT_EQ(client_->read_log({"team", "q"}, {}, keep, {}).error().code, ErrorCode::kNotFound);
  server_.end_log({"team", "p"}, "trainer");
  lines.clear();
  EXPECT_TRUE(client_->read_log({"team", "p"}, {"trainer", true, {}, {}}, keep, {}).ok());
  EXPECT_EQ(lines.size(), 3U);
}

// Like the kubelet's: from the beginning of a second, and cut off anywhere.
TEST_F(ClientTest, ReadsAPieceOfALogBehindTimes) {
  constexpr std::int64_t kStart = 1'800'000'000'000;
  server_.set(kPods, parse_json(R"({"metadata": {"name": "p", "namespace": "team"}})").value());
  server_.append_log({"team", "p"}, "trainer", "one", kStart * 1'000'000 + 5);
  server_.append_log({"team", "p"}, "trainer", "two", (kStart + 1'500) * 1'000'000);
  server_.append_log({"team", "p"}, "trainer", "three", (kStart + 3'000) * 1'000'000);
  Client::LogWindow window{"trainer", {}, {}, 1'000};
  EXPECT_EQ(client_->read_log_window({"team", "p"}, window).value(),
            "2027-01-15T08:00:00.000000005Z one\n2027-01-15T08:00:01.500000000Z two\n"
            "2027-01-15T08:00:03.000000000Z three\n");
  window.since_ms = kStart + 1'999;
  window.limit_bytes = 40;
  EXPECT_EQ(client_->read_log_window({"team", "p"}, window).value(),
            "2027-01-15T08:00:01.500000000Z two\n2027-");
  EXPECT_EQ(client_->read_log_window({"team", "q"}, window).error().code, ErrorCode::kNotFound);
}

TEST_F(ClientTest, CallsWaitTheirTurn) {
  options_.calls_per_second = 1;
  options_.burst = 2;
  Client limited(server_, options_);
  for (int i = 0; i < 3; ++i) (void)limited.get(kTrials, kKey);
  ASSERT_EQ(paused_.size(), 1U);
  EXPECT_GT(paused_[0], milliseconds(500));
}

}  // namespace
}  // namespace fettle::kube
