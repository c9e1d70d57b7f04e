// LeaderElectors over the in-memory API server, with short terms.
#include "kube/election/leader_elector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "kube/objects/json_path.h"
#include "kube/testing/fake_api_server.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;

// Only a failing test waits this long, however busy the machine.
constexpr auto kPatience = 120s;

// A way to the API server that can be cut.
class Cable final : public HttpTransport {
 public:
  explicit Cable(HttpTransport& server) : server_(server) {}
  void cut() { cut_ = true; }
  HttpResult call(const HttpRequest& request, std::chrono::milliseconds deadline) override {
    if (cut_) return HttpFailure{false, "the cable is cut"};
    return server_.call(request, deadline);
  }
  HttpResult stream(const HttpRequest& request,
                    const std::function<bool(std::string_view)>& on_line,
                    std::chrono::milliseconds idle, std::stop_token stop) override {
    return server_.stream(request, on_line, idle, stop);
  }

 private:
  HttpTransport& server_;
  std::atomic<bool> cut_ = false;
};

class LeaderElectorTest : public testing::Test {
 protected:
  LeaderOptions options(const std::string& identity, LeaseTimes times) {
    LeaderOptions out;
    out.terms.key = {"system", "fettle-operator"};
    out.terms.identity = identity;
    out.terms.times = times;
    out.on_leading = [this] { ++leading_; };
    out.on_lost = [this] { ++lost_; };
    return out;
  }

  static bool eventually(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  FakeApiServer server_;
  Client client_{server_, ClientOptions{"fettle", 500ms, 0, 1, {}, {}}};
  std::atomic<int> leading_{0};
  std::atomic<int> lost_{0};
};

// The process is alive and renews, but its work stands still.
TEST_F(LeaderElectorTest, AStuckLeaderReleasesTheLease) {
  std::atomic<bool> works = true;
  LeaderOptions terms = options("a", {3s, 2s, 50ms});
  terms.why_not_renew = [&] { return works ? "" : "a look is stuck"; };
  LeaderElector a(client_, terms);
  a.start();
  ASSERT_TRUE(a.wait_leading(kPatience));
  works = false;
  EXPECT_TRUE(eventually([&] { return lost_ == 1; }));
  EXPECT_FALSE(a.may_write());
  LeaderElector b(client_, options("b", {3s, 2s, 50ms}));
  b.start();
  EXPECT_TRUE(b.wait_leading(kPatience));
}

TEST_F(LeaderElectorTest, OneLeadsAndHandsOverWhenItStops) {
  LeaderElector a(client_, options("a", {60s, 30s, 100ms}));
  LeaderElector b(client_, options("b", {60s, 30s, 100ms}));
  a.start();
  ASSERT_TRUE(a.wait_leading(kPatience));
  EXPECT_TRUE(a.may_write());
  b.start();
  EXPECT_TRUE(eventually([&] { return b.holder() == "a"; }));
  EXPECT_FALSE(b.wait_leading(300ms));
  EXPECT_FALSE(b.may_write());
  a.stop();
  EXPECT_FALSE(a.may_write());
  ASSERT_TRUE(b.wait_leading(kPatience)) << "no need to wait for the term's end";
  // on_leading is called after it may write.
  EXPECT_TRUE(eventually([&] { return leading_ == 2; }));
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaderElectorTest, ALeaderThatStopsDuringARenewalGivesTheLeaseBack) {
  LeaderElector a(client_, options("a", {60s, 30s, 100ms}));
  std::atomic<int> renewals{0};
  Fault slow;  // only takes time
  slow.matches = [&](const HttpRequest& request) {
    if (request.method != "PUT") return false;
    ++renewals;
    std::this_thread::sleep_for(300ms);
    return false;
  };
  server_.inject(slow);
  a.start();
  ASSERT_TRUE(a.wait_leading(kPatience));
  ASSERT_TRUE(eventually([&] { return renewals > 0; }));
  a.stop();
  EXPECT_EQ(
      text_at(server_.get(kLeases, {"system", "fettle-operator"}), {"spec", "holderIdentity"}), "");
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaderElectorTest, ALeaderThatCannotRenewGivesUpBeforeAnotherLeads) {
  Cable cable(server_);
  Client cut_off(cable, ClientOptions{"fettle", 500ms, 0, 1, {}, {}});
  LeaderElector a(cut_off, options("a", {3s, 2s, 100ms}));
  a.start();
  ASSERT_TRUE(a.wait_leading(kPatience));
  cable.cut();
  LeaderOptions next = options("b", {3s, 2s, 100ms});
  next.on_lost = nullptr;  // counts only a's loss
  LeaderElector b(client_, next);
  b.start();
  ASSERT_TRUE(b.wait_leading(kPatience));
  EXPECT_FALSE(a.may_write());
  EXPECT_TRUE(eventually([&] { return lost_ == 1; }));  // a may hear of it after b leads
  EXPECT_TRUE(a.last_error().has_value());
}

}  // namespace
}  // namespace fettle::kube
