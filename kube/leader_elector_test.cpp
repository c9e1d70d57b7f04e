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
  LeaderOptions options(const std::string& identity) {
    LeaderOptions out;
    out.terms.key = {"system", "fettle-operator"};
    out.terms.identity = identity;
    out.terms.times = {1500ms, 1000ms, 100ms};
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
  LeaderElector a(client_, options("a"));
  LeaderElector b(client_, options("b"));
  a.start();
  ASSERT_TRUE(a.wait_leading(5s));
  EXPECT_TRUE(a.may_write());
  b.start();
  EXPECT_FALSE(b.wait_leading(300ms));
  EXPECT_EQ(b.holder(), "a");
  EXPECT_FALSE(b.may_write());
  a.stop();
  EXPECT_FALSE(a.may_write());
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(b.wait_leading(5s));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s) << "no need to wait for the term's end";
  EXPECT_EQ(leading_, 2);
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaderElectorTest, ALeaderThatCannotRenewGivesUpInTime) {
  LeaderElector a(client_, options("a"));
  a.start();
  ASSERT_TRUE(a.wait_leading(5s));
  Fault fault;
  fault.kind = Fault::Kind::kRefused;
  fault.times = 1'000'000;
  server_.inject(fault);
  const auto began = std::chrono::steady_clock::now();
  while (a.may_write()) std::this_thread::sleep_for(10ms);
  EXPECT_LE(std::chrono::steady_clock::now() - began, 1200ms);
  EXPECT_TRUE(a.last_error().has_value());
  for (int i = 0; i < 500 && lost_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(lost_, 1);
}

}  // namespace
}  // namespace fettle::kube
