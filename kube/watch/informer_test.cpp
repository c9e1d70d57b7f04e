// Informers against the in-memory API server: the objects in the cache, and faults that they
// survive.
#include "kube/watch/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Only a failing test waits this long, however busy the machine.
constexpr auto kPatience = 120s;

Json pod(const std::string& name, const std::string& phase = "Pending",
         const std::string& ns = "team") {
  return Json::object({{"metadata", Json::object({{"name", name},
                                                  {"namespace", ns},
                                                  {"labels", Json::object({{"app", "fettle"}})}})},
                       {"status", Json::object({{"phase", phase}})}});
}

class InformerTest : public testing::Test {
 protected:
  InformerTest() { server_.allow_any_call(); }

  void start(std::vector<std::string> namespaces = {}, Informer<Pod>::Read read = read_pod) {
    InformerOptions options;
    options.resource = kPods;
    options.namespaces = std::move(namespaces);
    options.label_selector = "app=fettle";
    options.backoff.first = 20ms;  // after a failure
    options.on_error = [this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(message);
    };
    informer_.emplace(server_, std::move(options), std::move(read));
    informer_->cache().on_change([this](const auto&, const auto&) {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    informer_->start();
    ASSERT_TRUE(informer_->wait_synced(kPatience));
  }
  // Returns "" if the pod is missing.
  std::string phase(const std::string& name, const std::string& ns = "team") {
    const auto found = informer_->cache().get({ns, name});
    return found == nullptr ? "" : found->phase;
  }
  bool soon(const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::unique_lock lock(mutex_);
    while (!what()) {
      if (std::chrono::steady_clock::now() > end) return false;
      changed_.wait_for(lock, 10ms);
    }
    return true;
  }
  std::string errors() {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const std::string& message : errors_) out += message + '\n';
    return out;
  }
  static Fault fault(Fault::Kind kind, const std::string& query) {
    Fault out;
    out.kind = kind;
    out.matches = [query](const HttpRequest& request) {
      return request.target.find(query) != std::string::npos;
    };
    return out;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> errors_;
  FakeApiServer server_;
  std::optional<Informer<Pod>> informer_;
};

TEST_F(InformerTest, FollowsTheApiServer) {
  server_.set(kPods, pod("old", "Running"));
  Json other = pod("other");
  other.find("metadata")->erase("labels");
  server_.set(kPods, other);
  start();
  EXPECT_EQ(phase("old"), "Running");
  EXPECT_EQ(phase("other"), "") << "it has not the label";
  server_.set(kPods, pod("new"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Pending"; }));
  server_.set(kPods, pod("new", "Succeeded"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Succeeded"; }));
  server_.remove(kPods, {"team", "old"});
  EXPECT_TRUE(soon([&] { return phase("old").empty(); }));
  EXPECT_EQ(informer_->last_error(), std::nullopt);
}

TEST_F(InformerTest, WatchesSeveralNamespacesAndNoOthers) {
  for (const char* ns : {"a", "b", "c"}) server_.set(kPods, pod("p", "Running", ns));
  start({"a", "b"});
  EXPECT_EQ(phase("p", "a"), "Running");
  EXPECT_EQ(phase("p", "b"), "Running");
  EXPECT_EQ(phase("p", "c"), "");
  server_.set(kPods, pod("q", "Running", "b"));
  EXPECT_TRUE(soon([&] { return phase("q", "b") == "Running"; }));
}

TEST_F(InformerTest, ListsAgainAfterAGapAndFindsMissedChanges) {
  server_.set(kPods, pod("gone"));
  start();
  ASSERT_TRUE(server_.wait_for_watches(1, kPatience));
  server_.cut_watches(true);
  server_.remove(kPods, {"team", "gone"});
  server_.set(kPods, pod("new"));
  server_.compact();
  server_.disconnect_watches();
  server_.cut_watches(false);
  EXPECT_TRUE(soon([&] { return phase("gone").empty() && phase("new") == "Pending"; }));
}

TEST_F(InformerTest, AnErrorWithinTheStreamIsSurvived) {
  start();
  ASSERT_TRUE(server_.wait_for_watches(1, kPatience));
  server_.disconnect_watches(
      parse_json(R"({"kind": "Status", "code": 410, "reason": "Expired", "message": "old"})")
          .value());
  server_.set(kPods, pod("new"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Pending"; }));
}

TEST_F(InformerTest, AWatchThatIsRefusedGoesOnFromTheSameVersion) {
  server_.inject(fault(Fault::Kind::kRefused, "watch=true"));
  std::promise<void> seen;
  Fault held = fault(Fault::Kind::kRefused, "");  // makes the next watch wait, without harm
  held.matches = [looked = seen.get_future().share()](const HttpRequest& request) {
    if (request.target.find("watch=true") != std::string::npos) looked.wait();
    return false;
  };
  server_.inject(held);
  start();
  EXPECT_TRUE(soon([&] { return informer_->last_error().has_value(); }));
  EXPECT_THAT(informer_->last_error().value_or(""),
              HasSubstr("pods: watch failed: connection refused"));
  seen.set_value();
  ASSERT_TRUE(server_.wait_for_watches(1, kPatience));
  server_.set(kPods, pod("new"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Pending"; }));
  EXPECT_EQ(server_.requests().size(), 2U) << "one list, and the watch that was not refused";
  EXPECT_TRUE(soon([&] { return !informer_->last_error(); }));
}

TEST_F(InformerTest, AListThatFailsOnIsTrouble) {
  Fault refused = fault(Fault::Kind::kRefused, "");
  refused.every = 1;
  InformerOptions options;
  options.resource = kPods;
  options.namespaces = {"team", "other"};
  options.backoff.first = 20ms;
  refused.matches = [](const HttpRequest& request) {
    return request.target.find("/team/") != std::string::npos;
  };
  server_.inject(refused);
  informer_.emplace(server_, options, read_pod);
  informer_->start();
  EXPECT_TRUE(soon([&] { return informer_->trouble("team", 0ms).has_value(); }));
  EXPECT_THAT(informer_->trouble("team", 0ms).value_or(""), HasSubstr("connection refused"));
  EXPECT_EQ(informer_->trouble("team", 24h), std::nullopt) << "not for long yet";
  EXPECT_EQ(informer_->trouble("other", 0ms), std::nullopt);
  server_.clear_faults();
  EXPECT_TRUE(soon([&] { return !informer_->trouble("team", 0ms); }));
}

// Lists replace the watch, at a cost: nobody would notice.
TEST_F(InformerTest, AWatchThatIsRefusedIsTroubleAlthoughListsSucceed) {
  Fault refused = fault(Fault::Kind::kAnswer, "watch=true");
  refused.every = 1;
  refused.answer = status_response(403, "Forbidden", "cannot watch resource \"pods\"");
  server_.inject(refused);
  InformerOptions options;
  options.resource = kPods;
  options.namespaces = {"team"};
  options.backoff.first = 20ms;
  informer_.emplace(server_, options, read_pod);
  informer_->start();
  EXPECT_TRUE(soon([&] { return informer_->trouble("team", 200ms).has_value(); }));
  EXPECT_THAT(informer_->trouble("team", 200ms).value_or(""), HasSubstr("cannot watch resource"));
  server_.set(kPods, pod("new"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Pending"; })) << "lists make up for it";
  EXPECT_TRUE(informer_->trouble("team", 200ms).has_value());
  server_.clear_faults();
  EXPECT_TRUE(soon([&] { return !informer_->trouble("team", 0ms); }));
}

TEST_F(InformerTest, ACutLineIsNoEvent) {
  server_.inject(fault(Fault::Kind::kTruncated, "watch=true"));
  start();
  ASSERT_TRUE(server_.wait_for_watches(1, kPatience));
  server_.set(kPods, pod("new"));
  EXPECT_TRUE(soon([&] { return phase("new") == "Pending"; }));
  EXPECT_THAT(errors(), HasSubstr("a line of the watch is not JSON"));
}

TEST_F(InformerTest, AnObjectThatCannotBeReadKeepsItsLastState) {
  server_.set(kPods, pod("p", "Running"));
  start({}, [](const Json& object) -> Result<Pod> {
    Result<Pod> read = read_pod(object);
    if (read.ok() && read->phase == "Nonsense") return invalid("phase is Nonsense");
    return read;
  });
  server_.set(kPods, pod("p", "Nonsense"));
  server_.set(kPods, pod("q", "Running"));
  EXPECT_TRUE(soon([&] { return phase("q") == "Running"; }));
  EXPECT_EQ(phase("p"), "Running");
  EXPECT_THAT(errors(), HasSubstr("cannot read Pod team/p: phase is Nonsense"));
  server_.compact();
  server_.disconnect_watches();
  server_.set(kPods, pod("r", "Running"));
  EXPECT_TRUE(soon([&] { return phase("r") == "Running"; }));
  EXPECT_EQ(phase("p"), "Running") << "a list with the object in it is no deletion";
}

TEST_F(InformerTest, WritesAreReadBackAtOnce) {
  start();
  ASSERT_TRUE(server_.wait_for_watches(1, kPatience));
  server_.cut_watches(true);
  Client client(server_, {});
  const Json made = client.create(kPods, "team", pod("mine")).value().object;
  informer_->cache().put(read_pod(made).value());
  EXPECT_NE(informer_->cache().get({"team", "mine"}), nullptr);
  server_.cut_watches(false);
}

TEST_F(InformerTest, IgnoresChangesAfterItStopped) {
  start();
  informer_->stop();
  server_.set(kPods, pod("new"));
  EXPECT_EQ(phase("new"), "");
}

}  // namespace
}  // namespace fettle::kube
