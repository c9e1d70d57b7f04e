// The list and watch protocol: inputs and the outputs for them. Each output is one line, so that a
// case reads as a conversation.
#include "kube/watch/watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::StartsWith;

using Phase = WatcherState::Phase;

const WatchTarget kTarget{kTrials, "team", "fettle.dev/study=digits"};

std::string text(const WatcherOutput& output) {
  struct Text {
    std::string operator()(const SendList& send) const { return "list " + send.target; }
    std::string operator()(const SendWatch& send) const { return "watch " + send.target; }
    std::string operator()(const EndWatch&) const { return "end watch"; }
    std::string operator()(const Wait&) const { return "wait"; }
    std::string operator()(const Listed& page) const {
      std::string out = "listed";
      for (const Json& object : page.objects) out += ' ' + key_of(object).name;
      return out;
    }
    std::string operator()(const ListComplete& list) const { return "complete at " + list.version; }
    std::string operator()(const Changed& c) const { return "changed " + key_of(c.object).name; }
    std::string operator()(const Gone& g) const { return "gone " + key_of(g.object).name; }
    std::string operator()(const Advanced& a) const { return "seen " + a.version; }
    std::string operator()(const Failed& failed) const { return "failed: " + failed.message; }
    std::string operator()(const Recovered&) const { return "recovered"; }
    std::string operator()(const Skipped& skipped) const { return "skipped: " + skipped.message; }
  };
  return std::visit(Text{}, output);
}

HttpResponse ok(std::string body = "") { return {200, std::move(body), {}, {}}; }

HttpResponse refusal(int code, const std::string& reason, const std::string& message = "no") {
  return {
      code,
      Json::object({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}})
          .dump(),
      {},
      {}};
}

std::string list_of(const std::string& version, const std::string& names = "",
                    const std::string& next = "") {
  Json items = Json::array();
  for (const char name : names) {
    items.push_back(Json::object({{"metadata", Json::object({{"name", std::string(1, name)}})}}));
  }
  return Json::object(
             {{"metadata", Json::object({{"resourceVersion", version}, {"continue", next}})},
              {"items", std::move(items)}})
      .dump();
}

std::string event(const std::string& type, const std::string& name, const std::string& version,
                  const std::string& kind = "Trial") {
  return R"({"type": ")" + type + R"(", "object": {"kind": ")" + kind +
         R"(", "metadata": {"name": ")" + name + R"(", "resourceVersion": ")" + version + R"("}}})";
}

class WatcherTest : public testing::Test {
 protected:
  // Returns the outputs as text; the time of a Wait goes to waited_.
  std::vector<std::string> give(const WatcherInput& input) {
    WatcherStep done = step(kTarget, std::move(state_), input, now_);
    state_ = std::move(done.state);
    std::vector<std::string> out;
    for (const WatcherOutput& output : done.outputs) {
      out.push_back(text(output));
      if (const auto* wait = std::get_if<Wait>(&output)) waited_ = wait->time;
    }
    return out;
  }
  std::vector<std::string> line(const std::string& text) { return give(LineCame{text}); }

  // Starts a watch from version 10.
  void start_watching() {
    give(Begin{});
    give(ListAnswered{ok(list_of("10"))});
    now_ += seconds(20);
  }

  WatcherState state_;
  SteadyTime now_{1'000'000};
  milliseconds waited_{0};
};

TEST_F(WatcherTest, ListsTheNewestStatePageByPageAndWatchesFromThere) {
  EXPECT_THAT(give(Begin{}), ElementsAre("list /apis/fettle.dev/v1alpha1/namespaces/team/trials"
                                         "?labelSelector=fettle.dev%2Fstudy%3Ddigits&limit=500"));
  EXPECT_THAT(give(ListAnswered{ok(list_of("10", "ab", "more"))}),
              ElementsAre("listed a b", AllOf(StartsWith("list "), HasSubstr("&continue=more"))));
  const auto outputs = give(ListAnswered{ok(list_of("10", "c"))});
  EXPECT_THAT(outputs, ElementsAre("listed c", "complete at 10",
                                   AllOf(StartsWith("watch "), HasSubstr("resourceVersion=10"),
                                         HasSubstr("allowWatchBookmarks=true"),
                                         HasSubstr("labelSelector=fettle.dev%2Fstudy%3Ddigits"))));
  const std::string& watch = outputs.back();
  const int timeout = std::stoi(watch.substr(watch.find("timeoutSeconds=") + 15));
  EXPECT_THAT(timeout, AllOf(Ge(300), Le(599)));
}

TEST(Watcher, AsksForPagesAsSmallAsItIsTold) {
  WatchTarget target = kTarget;
  target.page_size = 100;
  const WatcherStep first = step(target, {}, Begin{}, SteadyTime{0});
  ASSERT_EQ(first.outputs.size(), 1U);
  EXPECT_THAT(std::get<SendList>(first.outputs[0]).target, HasSubstr("limit=100"));
}

TEST_F(WatcherTest, HandsOnEventsAndRemembersHowFarItCame) {
  start_watching();
  EXPECT_THAT(line(event("ADDED", "a", "11")), ElementsAre("changed a", "seen 11"));
  EXPECT_THAT(line(event("MODIFIED", "a", "12")), ElementsAre("changed a", "seen 12"));
  EXPECT_THAT(line(event("DELETED", "a", "13")), ElementsAre("gone a", "seen 13"));
  EXPECT_THAT(line(event("BOOKMARK", "", "40")), ElementsAre("seen 40"));
  EXPECT_THAT(give(WatchEnded{ok()}), ElementsAre(HasSubstr("resourceVersion=40")));
}

TEST_F(WatcherTest, SkipsObjectsOfAnotherKind) {
  start_watching();
  EXPECT_THAT(line(event("ADDED", "a", "11", "Job")),
              ElementsAre("skipped: event with a Job, expected a Trial"));
  EXPECT_THAT(line(R"({"type": "PARTY", "object": {}})"),
              ElementsAre("skipped: event of unknown type \"PARTY\""));
  EXPECT_EQ(state_.version, "10");
}

// The end of a watch, and the next action.
TEST_F(WatcherTest, TheEndOfAWatchDecidesItsNextCall) {
  struct Case {
    const char* name;
    HttpResult end;
    bool waits;
    const char* next;  // after the wait
  };
  const Case cases[] = {
      {"the server ended it", ok(), false, "resourceVersion=10"},
      {"reset", HttpFailure{true, "reset"}, true, "resourceVersion=10"},
      {"refused", HttpFailure{false, "refused"}, true, "resourceVersion=10"},
      {"too many requests", refusal(429, "TooManyRequests"), true, "resourceVersion=10"},
      {"internal error", refusal(500, "InternalError"), true, "resourceVersion=10"},
      {"a proxy", HttpResponse{502, "<html>", {}, {}}, true, "resourceVersion=10"},
      {"history gone", refusal(410, "Expired"), false, "list "},
      {"history gone, no words", HttpResponse{410, "", {}, {}}, false, "list "},
      {"from the future",
       HttpResponse{504,
                    R"({"kind": "Status", "details": {"causes": [
                        {"reason": "ResourceVersionTooLarge"}]}})",
                    {},
                    {}},
       false, "list "},
      {"forbidden", refusal(403, "Forbidden"), true, "list "},
      {"no such resource", refusal(404, "NotFound"), true, "list "},
  };
  for (const Case& c : cases) {
    state_ = {};
    start_watching();
    auto outputs = give(WatchEnded{c.end});
    EXPECT_EQ(state_.phase == Phase::kWaiting, c.waits) << c.name;
    if (c.waits) {
      ASSERT_EQ(outputs.size(), 2U) << c.name;
      EXPECT_THAT(outputs[0], StartsWith("failed: ")) << c.name;
      EXPECT_THAT(waited_, AllOf(Ge(milliseconds(800)), Le(milliseconds(1600)))) << c.name;
      outputs = give(Begin{});
    }
    EXPECT_THAT(outputs, ElementsAre(HasSubstr(c.next))) << c.name;
  }
}

// The consequences of an ERROR or a broken line within the watch.
TEST_F(WatcherTest, ErrorsWithinTheStreamEndIt) {
  struct Case {
    const char* name;
    std::string line;
    bool waits;
    const char* next;
  };
  const auto error = [](const HttpResponse& response) {
    return R"({"type": "ERROR", "object": )" + response.body + "}";
  };
  const Case cases[] = {
      {"history gone", error(refusal(410, "Expired")), false, "list "},
      {"internal", error(refusal(500, "InternalError")), true, "resourceVersion=10"},
      {"something else", error(refusal(400, "BadRequest")), true, "list "},
      {"no status", R"({"type": "ERROR", "object": {}})", true, "list "},
      {"no object", R"({"type": "ERROR"})", true, "list "},
      {"no JSON", "<html>", true, "resourceVersion=10"},
      {"half a line", event("ADDED", "a", "11").substr(0, 40), true, "resourceVersion=10"},
      {"no version", R"({"type": "ADDED", "object": {}})", true, "resourceVersion=10"},
  };
  for (const Case& c : cases) {
    state_ = {};
    start_watching();
    EXPECT_EQ(line(c.line).back(), "end watch") << c.name;
    EXPECT_THAT(line(event("ADDED", "late", "99")), IsEmpty()) << c.name;
    auto outputs = give(WatchEnded{ok()});
    EXPECT_EQ(outputs == std::vector<std::string>{"wait"}, c.waits) << c.name;
    if (c.waits) outputs = give(Begin{});
    EXPECT_THAT(outputs, ElementsAre(HasSubstr(c.next))) << c.name;
  }
}

TEST_F(WatcherTest, AnEventCutAtAnyByteIsNeverTakenForAnother) {
  const std::string whole = event("MODIFIED", "a", "11");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    state_ = {};
    start_watching();
    EXPECT_EQ(line(whole.substr(0, cut)).back(), "end watch") << cut;
    EXPECT_EQ(state_.version, "10") << cut;
  }
}

TEST_F(WatcherTest, AWatchThatEndsAtOnceAgainAndAgainBacksOffAndThenLists) {
  give(Begin{});
  give(ListAnswered{ok(list_of("10"))});
  for (int i = 0; i < kMaxResumes; ++i) {
    now_ += milliseconds(900);
    EXPECT_THAT(give(WatchEnded{ok()}), ElementsAre("failed: the watch ended at once", "wait"));
    EXPECT_THAT(give(Begin{}), ElementsAre(HasSubstr("resourceVersion=10"))) << i;
  }
  give(WatchEnded{ok()});
  EXPECT_THAT(give(Begin{}), ElementsAre(StartsWith("list ")));
}

TEST_F(WatcherTest, BackOffDoublesToItsLimitAndForgets) {
  give(Begin{});
  for (const int base : {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000}) {
    give(ListAnswered{HttpFailure{false, "refused"}});
    EXPECT_THAT(waited_, AllOf(Ge(milliseconds(base)), Le(milliseconds(2 * base))));
    now_ += waited_;
    EXPECT_THAT(give(Begin{}), ElementsAre(StartsWith("list ")));
  }
  now_ += milliseconds(120'000);
  give(ListAnswered{HttpFailure{false, "refused"}});
  EXPECT_LE(waited_, milliseconds(1600));
}

TEST_F(WatcherTest, WaitsAtLeastAsLongAsTheServerAsks) {
  HttpResponse busy = refusal(429, "TooManyRequests");
  busy.retry_after = seconds(7);
  give(Begin{});
  give(ListAnswered{busy});
  EXPECT_EQ(waited_, seconds(7));
  start_watching();
  give(WatchEnded{busy});
  EXPECT_EQ(waited_, seconds(7));
}

TEST_F(WatcherTest, AHistoryThatEndsTwiceWithoutNewsBacksOff) {
  start_watching();
  EXPECT_THAT(give(WatchEnded{refusal(410, "Expired")}), ElementsAre(StartsWith("list ")));
  give(ListAnswered{ok(list_of("20"))});
  EXPECT_EQ(give(WatchEnded{refusal(410, "Expired")}).back(), "wait");
  EXPECT_THAT(give(Begin{}), ElementsAre(StartsWith("list ")));
  give(ListAnswered{ok(list_of("30"))});
  line(event("ADDED", "a", "31"));
  EXPECT_THAT(give(WatchEnded{refusal(410, "Expired")}), ElementsAre(StartsWith("list ")));
}

TEST_F(WatcherTest, AContinuationThatExpiredBeginsTheListAgain) {
  give(Begin{});
  give(ListAnswered{ok(list_of("10", "ab", "more"))});
  const auto outputs = give(ListAnswered{refusal(410, "Expired")});
  EXPECT_THAT(outputs, ElementsAre(testing::Not(HasSubstr("continue"))));
}

TEST_F(WatcherTest, APageThatIsThrottledIsAskedForAgain) {
  HttpResponse busy = refusal(429, "TooManyRequests");
  busy.retry_after = seconds(9);
  for (const HttpResult& passing :
       std::vector<HttpResult>{busy, refusal(503, "ServiceUnavailable"),
                               HttpFailure{true, "timeout"}, ok("<html>log in</html>")}) {
    state_ = {};
    give(Begin{});
    give(ListAnswered{ok(list_of("10", "ab", "more"))});
    for (int i = 0; i < kMaxPageTries; ++i) {
      EXPECT_EQ(give(ListAnswered{passing}).back(), "wait");
      if (std::holds_alternative<HttpResponse>(passing) &&
          std::get<HttpResponse>(passing).retry_after) {
        EXPECT_GE(waited_, seconds(9));
      }
      EXPECT_THAT(give(Begin{}), ElementsAre(HasSubstr("&continue=more")));
    }
    EXPECT_EQ(give(ListAnswered{ok(list_of("10", "c"))}).front(), "listed c");
  }
}

TEST_F(WatcherTest, AListBeginsAgainAfterTooManyTriesOfAPage) {
  give(Begin{});
  give(ListAnswered{ok(list_of("10", "ab", "more"))});
  for (int i = 0; i <= kMaxPageTries; ++i) {
    give(ListAnswered{HttpFailure{true, "timeout"}});
    const auto outputs = give(Begin{});
    if (i == kMaxPageTries) {
      EXPECT_THAT(outputs, ElementsAre(Not(HasSubstr("continue"))));
    }
  }
}

TEST_F(WatcherTest, AListThatIsForbiddenOnALaterPageBeginsAgain) {
  give(Begin{});
  give(ListAnswered{ok(list_of("10", "ab", "more"))});
  give(ListAnswered{refusal(403, "Forbidden")});
  EXPECT_THAT(give(Begin{}), ElementsAre(Not(HasSubstr("continue"))));
}

TEST_F(WatcherTest, AnAnswerThatIsNoListIsAFailure) {
  for (const char* body : {"<html>log in</html>", "{}", "[]", R"({"metadata": {}, "items": [)"}) {
    state_ = {};
    give(Begin{});
    EXPECT_THAT(give(ListAnswered{ok(body)}),
                ElementsAre(StartsWith("failed: cannot list"), "wait"))
        << body;
  }
}

TEST_F(WatcherTest, SaysWhenItIsWellAgain) {
  give(Begin{});
  give(ListAnswered{HttpFailure{false, "refused"}});
  give(Begin{});
  const auto outputs = give(ListAnswered{ok(list_of("10"))});
  EXPECT_EQ(outputs[2], "recovered");
  give(WatchEnded{HttpFailure{true, "reset"}});
  give(Begin{});
  EXPECT_THAT(line(event("BOOKMARK", "", "12")), ElementsAre("seen 12", "recovered"));
  EXPECT_THAT(line(event("BOOKMARK", "", "13")), ElementsAre("seen 13"));
}

}  // namespace
}  // namespace fettle::kube
