// LeaderElectors over the in-memory API server, with short terms.
#include "kube/leader_elector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "kube/fake_api_server.h"
#include "kube/json_path.h"

namespace fettle::kube {
namespace {

using namespace std::chrono_literals;

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

  FakeApiServer server_;
  Client client_{server_, ClientOptions{"fettle", 500ms, 0, 1, {}, {}}};
  std::atomic<int> leading_{0};
  std::atomic<int> lost_{0};
};

TEST_F(LeaderElectorTest, OneLeadsAndHandsOverWhenItStops) {
  LeaderElector a(client_, options("a", {60s, 30s, 100ms}));
  LeaderElector b(client_, options("b", {60s, 30s, 100ms}));
  a.start();
  ASSERT_TRUE(a.wait_leading(20s));
  EXPECT_TRUE(a.may_write());
  b.start();
  EXPECT_FALSE(b.wait_leading(300ms));
  EXPECT_EQ(b.holder(), "a");
  EXPECT_FALSE(b.may_write());
  a.stop();
  EXPECT_FALSE(a.may_write());
  ASSERT_TRUE(b.wait_leading(20s)) << "no need to wait for the term's end";
  // It is told after it may write.
  for (int i = 0; i < 500 && leading_ < 2; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(leading_, 2);
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaderElectorTest, ALeaderThatCannotRenewGivesUpInTime) {
  LeaderElector a(client_, options("a", {1500ms, 1000ms, 100ms}));
  a.start();
  ASSERT_TRUE(a.wait_leading(20s));
  Fault fault;
  fault.kind = Fault::Kind::kRefused;
  fault.times = 1'000'000;
  server_.inject(fault);
  const auto began = std::chrono::steady_clock::now();
  while (a.may_write()) std::this_thread::sleep_for(10ms);
  EXPECT_LE(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_TRUE(a.last_error().has_value());
  for (int i = 0; i < 500 && lost_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(lost_, 1);
}

}  // namespace
}  // namespace fettle::kube
