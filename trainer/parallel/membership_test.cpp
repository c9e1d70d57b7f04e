// Workers as threads that meet over the loopback.
#include "trainer/parallel/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace fettle::trainer {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using Joined = Result<std::unique_ptr<Membership>>;

class MembershipTest : public testing::Test {
 protected:
  MembershipTest() {
    request_.master = {"127.0.0.1", 0};
    request_.trial = "uid/study-3";
    request_.run = 1;
    request_.token = "secret";
    request_.timeout = 120s;  // only a failing test waits this long
    request_.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_ += line + "\n";
    };
    listener_.emplace(*Listener::open(request_.master));
    request_.master.port = listener_->port();
  }

  RendezvousRequest as(std::int64_t rank, std::int64_t world_size) const {
    RendezvousRequest request = request_;
    request.rank = rank;
    request.world_size = world_size;
    return request;
  }

  // Starts a worker that joins and leaves again.
  std::jthread start(const RendezvousRequest& request, std::optional<Joined>& result) {
    return std::jthread([&result, request] { result.emplace(Membership::join(request)); });
  }

  // The answer of rank 0 of two to a wrong second worker, before the right one comes.
  std::string refusal_of(const RendezvousRequest& wrong) {
    std::optional<Joined> refused;
    std::optional<Joined> right;
    std::jthread rank0([this] {
      const auto host = Membership::host(as(0, 2), *std::move(listener_));
      EXPECT_TRUE(host.ok()) << host.error().message;
    });
    start(wrong, refused).join();
    start(as(1, 2), right).join();
    EXPECT_TRUE(right->ok()) << right->error().message;
    if (refused->ok()) return "";
    EXPECT_EQ(refused->error().code, ErrorCode::kInvalid);
    return refused->error().message;
  }

  RendezvousRequest request_;
  std::optional<Listener> listener_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(MembershipTest, AllMeetShareAnIdAndExchangeWhatTheyBring) {
  constexpr std::int64_t kWorld = 4;
  std::vector<std::string> ids(kWorld);
  {
    std::vector<std::jthread> workers;
    for (std::int64_t rank = kWorld - 1; rank >= 0; --rank) {
      workers.emplace_back([&, rank] {
        const auto joined = rank == 0 ? Membership::host(as(0, kWorld), *std::move(listener_))
                                      : Membership::join(as(rank, kWorld));
        ASSERT_TRUE(joined.ok()) << joined.error().message;
        EXPECT_EQ((*joined)->rank(), rank);
        EXPECT_EQ((*joined)->world_size(), kWorld);
        EXPECT_EQ((*joined)->local_host(), "127.0.0.1");
        ids[static_cast<std::size_t>(rank)] = (*joined)->shared_id();
        const auto all = (*joined)->all_gather("of " + std::to_string(rank));
        ASSERT_TRUE(all.ok()) << all.error().message;
        EXPECT_THAT(*all, testing::ElementsAre("of 0", "of 1", "of 2", "of 3"));
      });
    }
  }
  EXPECT_EQ(ids[0].size(), kSharedIdBytes);
  EXPECT_THAT(ids, testing::Each(ids[0]));
}

TEST_F(MembershipTest, WhoDoesNotBelongIsToldWhyAndTheOthersStillMeet) {
  RendezvousRequest wrong = as(1, 2);
  wrong.token = "guess";
  EXPECT_THAT(refusal_of(wrong), HasSubstr("it has another token"));
  EXPECT_THAT(log_, HasSubstr("refused a worker at 127.0.0.1:"));
}

TEST_F(MembershipTest, WhoHasNoTokenIsToldToSetIt) {
  RendezvousRequest wrong = as(1, 2);
  wrong.token = "";
  EXPECT_THAT(refusal_of(wrong), HasSubstr("it has no token; set FETTLE_RENDEZVOUS_TOKEN"));
}

// Any client has the empty token.
TEST_F(MembershipTest, WithoutATokenAStrangerHearsNothingOfTheTrial) {
  request_.token = "";
  RendezvousRequest wrong = as(1, 3);
  wrong.trial = "";
  wrong.run = 7;
  const std::string refusal = refusal_of(wrong);
  EXPECT_THAT(refusal, HasSubstr("this is another one"));
  EXPECT_THAT(refusal, testing::Not(HasSubstr("study-3")));
  EXPECT_THAT(refusal, testing::Not(HasSubstr("run")));
}

TEST_F(MembershipTest, AWorkerWithATokenIsRefusedWhereThereIsNone) {
  RendezvousRequest wrong = as(1, 2);
  request_.token = "";
  EXPECT_THAT(refusal_of(wrong), HasSubstr("it has a token, and rank 0 has none"));
}

TEST_F(MembershipTest, RefusesAWorkerOfAnotherTrial) {
  RendezvousRequest wrong = as(1, 2);
  wrong.trial = "uid/study-4";
  EXPECT_THAT(refusal_of(wrong),
              HasSubstr("it comes from trial uid/study-4, this is trial uid/study-3"));
}

TEST_F(MembershipTest, RefusesAWorkerOfAnotherRun) {
  RendezvousRequest wrong = as(1, 2);
  wrong.run = 0;
  EXPECT_THAT(refusal_of(wrong), HasSubstr("it comes from run 0, this is run 1"));
}

TEST_F(MembershipTest, RefusesAWorkerThatExpectsAnotherWorld) {
  EXPECT_THAT(refusal_of(as(1, 3)), HasSubstr("it expects 3 workers, here are to be 2"));
}

TEST_F(MembershipTest, RefusesARankThatThereIsNot) {
  EXPECT_THAT(refusal_of(as(2, 2)), HasSubstr("it is rank 2, expected 1 to 1"));
}

TEST_F(MembershipTest, RefusesARankThatIsThereAlready) {
  std::optional<Joined> last;
  std::jthread rank0([this] {
    const auto host = Membership::host(as(0, 3), *std::move(listener_));
    EXPECT_TRUE(host.ok()) << host.error().message;
  });
  const auto join = [this] { return Membership::join(as(1, 3)); };
  std::future<Joined> twins[] = {std::async(std::launch::async, join),
                                 std::async(std::launch::async, join)};
  // One of them waits for rank 2, the other is refused.
  const auto is_refused = [](std::future<Joined>& twin) {
    return twin.wait_for(5ms) == std::future_status::ready;
  };
  while (std::ranges::none_of(twins, is_refused)) {
  }
  start(as(2, 3), last).join();
  const Joined one = twins[0].get();
  const Joined other = twins[1].get();
  ASSERT_NE(one.ok(), other.ok());
  EXPECT_THAT((one.ok() ? other : one).error().message,
              HasSubstr("rank 1 is here already, from 127.0.0.1:"));
  EXPECT_TRUE(last->ok());
}

TEST_F(MembershipTest, ARankThatNeverComesIsNamedToAll) {
  request_.timeout = 1s;
  RendezvousRequest first = as(1, 4);
  std::latch has_greeted(1);
  first.should_stop = [&, asked = false]() mutable {  // called while it waits for the welcome
    if (!std::exchange(asked, true)) has_greeted.count_down();
    return false;
  };
  std::optional<Joined> one;
  std::jthread rank1 = start(first, one);
  has_greeted.wait();
  const auto host = Membership::host(as(0, 4), *std::move(listener_));
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(host.error().message, "rank 2, 3 of 4 did not come within 1 s");
  rank1.join();
  EXPECT_EQ(one->error().message, host.error().message);
}

TEST_F(MembershipTest, WithoutALimitAllHaveAsLongAsTheyNeed) {
  request_.timeout = 1s;
  request_.patient = true;
  std::optional<Joined> first;
  std::optional<Joined> last;
  std::jthread rank1 = start(as(1, 3), first);
  std::jthread rank2([&] {
    std::this_thread::sleep_for(1500ms);
    start(as(2, 3), last).join();
  });
  const auto host = Membership::host(as(0, 3), *std::move(listener_));
  ASSERT_TRUE(host.ok()) << host.error().message;
  rank1.join();
  rank2.join();
  EXPECT_TRUE(first->ok()) << first->error().message;
  EXPECT_TRUE(last->ok()) << last->error().message;
}

TEST_F(MembershipTest, WhoeverWaitsForOthersMayBeTold) {
  request_.timeout = 60s;
  std::atomic<bool> stop = false;
  request_.should_stop = [&stop] { return stop.load(); };
  std::optional<Joined> one;
  std::jthread rank1 = start(as(1, 3), one);
  std::jthread soon([&stop] {
    std::this_thread::sleep_for(100ms);
    stop = true;
  });
  const auto host = Membership::host(as(0, 3), *std::move(listener_));
  ASSERT_FALSE(host.ok());
  EXPECT_THAT(host.error().message, HasSubstr("it was to stop before all workers were there"));
  rank1.join();
  EXPECT_FALSE(one->ok());
  listener_.reset();
  EXPECT_THAT(Membership::join(as(2, 3)).error().message, HasSubstr("it was to stop"));
}

TEST_F(MembershipTest, AMeetingThatTakesLongSaysWhomItWaitsFor) {
  request_.quiet = 0ms;
  std::array<std::optional<Joined>, 3> joined;
  std::vector<std::jthread> workers;
  std::vector<std::string> said;
  workers.push_back(start(as(1, 4), joined[0]));
  RendezvousRequest master = as(0, 4);
  master.waits_for = [&](const std::string& words) {
    said.push_back(words);
    if (!words.starts_with("waits for rank 2, 3 of 4")) return;
    workers.push_back(start(as(2, 4), joined[1]));
    workers.push_back(start(as(3, 4), joined[2]));
  };
  const auto host = Membership::host(master, *std::move(listener_));
  ASSERT_TRUE(host.ok()) << host.error().message;
  EXPECT_EQ(said.back(), "") << "all have come";
  EXPECT_THAT(log_, HasSubstr("waits for rank 2, 3 of 4 at 127.0.0.1:"));
}

TEST_F(MembershipTest, AWorkerSaysThatItDoesNotReachRankZero) {
  request_.quiet = 0ms;
  request_.timeout = 120s;
  request_.meeting = 300ms;
  listener_.reset();
  const auto joined = Membership::join(as(1, 2));
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(log_, HasSubstr("waits for rank 0: cannot reach 127.0.0.1:"));
}

TEST_F(MembershipTest, WithoutRankZeroAWorkerGivesUp) {
  request_.timeout = 300ms;
  listener_.reset();
  const auto joined = Membership::join(as(1, 2));
  ASSERT_FALSE(joined.ok());
  EXPECT_THAT(joined.error().message,
              HasSubstr("rank 0 was not to be found within 0.3 s: cannot reach 127.0.0.1:"));
}

TEST_F(MembershipTest, AWorkerThatDiesBeforeAllAreThereMayComeAgain) {
  std::optional<Joined> again;
  std::jthread rank0([this] {
    const auto host = Membership::host(as(0, 2), *std::move(listener_));
    EXPECT_TRUE(host.ok()) << host.error().message;
  });
  {
    auto dies = Connection::open(request_.master, in(120s));
    ASSERT_TRUE(dies->send("{\"token\": \"sec", in(120s)).ok());
  }
  start(as(1, 2), again).join();
  EXPECT_TRUE((*again).ok());
}

// In an open world the second waits until the first is known to have gone; here in the same round.
TEST_F(MembershipTest, AWorkerThatComesBackBeforeItIsMissedGetsItsPlace) {
  RendezvousRequest open = as(0, 2);
  open.open = true;
  const std::string greeting =
      R"({"trial":"uid/study-3","run":1,"token":"secret","rank":1,"world":2})";
  std::optional<Connection> first = *Connection::open(request_.master, in(120s));
  ASSERT_TRUE(first->send(greeting, in(120s)).ok());
  Connection second = *Connection::open(request_.master, in(120s));
  ASSERT_TRUE(second.send(greeting, in(120s)).ok());
  first.reset();
  const auto host = Membership::host(open, *std::move(listener_));
  EXPECT_TRUE(host.ok()) << host.error().message;
}

TEST_F(MembershipTest, AWorkerThatComesLaterWithOtherDataIsRefused) {
  request_.open = true;
  request_.data = "8f0c2a51";
  const auto host = Membership::host(as(0, 1), *std::move(listener_));
  ASSERT_TRUE(host.ok()) << host.error().message;
  RendezvousRequest late = as(1, 1);
  late.data = "00000001";
  std::optional<Joined> joined;
  std::atomic<bool> over = false;
  std::jthread worker([&] {
    joined.emplace(Membership::join(late));
    over = true;
  });
  while (!over) EXPECT_FALSE((*host)->somebody_waits());
  worker.join();
  ASSERT_FALSE(joined->ok());
  EXPECT_EQ(joined->error().code, ErrorCode::kInvalid);
  EXPECT_THAT(joined->error().message, HasSubstr("it reads other data (content 00000001)"));
}

TEST_F(MembershipTest, NoiseOnThePortKeepsNobodyOut) {
  std::optional<Joined> joined;
  std::jthread rank0([this] {
    const auto host = Membership::host(as(0, 2), *std::move(listener_));
    EXPECT_TRUE(host.ok()) << host.error().message;
  });
  auto silent = Connection::open(request_.master, in(120s));
  auto huge = Connection::open(request_.master, in(120s));
  ASSERT_TRUE(huge->send(std::string(1 << 20, 'x'), in(120s)).ok() || true);
  start(as(1, 2), joined).join();
  EXPECT_TRUE(joined->ok()) << joined->error().message;
}

// Any program that reaches the port can open silent connections; each is kept for ten seconds.
TEST_F(MembershipTest, SilentStrangersKeepNobodyOut) {
  std::optional<Joined> joined;
  std::vector<Connection> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(*Connection::open(request_.master, in(120s)));
  std::jthread worker = start(as(1, 2), joined);
  const auto host = Membership::host(as(0, 2), *std::move(listener_));
  ASSERT_TRUE(host.ok()) << host.error().message;
  worker.join();
  EXPECT_TRUE(joined->ok()) << joined->error().message;
  EXPECT_THAT(log_, HasSubstr("connections away that had not said which worker they are"));
}

TEST(ListenerTest, SaysWhyThereIsNoSocket) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto listener = Listener::open({"127.0.0.1", 0});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error().message, HasSubstr("Too many open files"));
}

// Keep-alive does not watch a connection with unacknowledged bytes.
TEST(ConnectionTest, IsCutWhenNothingIsAcknowledged) {
  Listener listener = *Listener::open({"127.0.0.1", 0});
  const Connection near = *Connection::open({"127.0.0.1", listener.port()}, in(120s));
  std::optional<Connection> far;
  while (!far) far = listener.accept();
  for (const int fd : {near.fd(), far->fd()}) {
    unsigned milliseconds = 0;
    socklen_t size = sizeof milliseconds;
    ASSERT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size), 0);
    EXPECT_EQ(milliseconds, 30'000U);
  }
}

Acknowledgements silent_for(std::chrono::milliseconds time) { return {true, time}; }

TEST(CutWatch, OneThatAcknowledgesAProbeIsNotCut) {
  const Deadline start{};
  CutWatch watch(30s);
  // A closed window: probes become ever rarer, each is acknowledged.
  for (int second = 0; second < 300; second += 50) {
    EXPECT_FALSE(watch.is_cut({false, 50s}, start + std::chrono::seconds(second)));
    EXPECT_FALSE(watch.is_cut(silent_for(50s), start + std::chrono::seconds(second + 50)));
  }
}

TEST(CutWatch, OneThatAcknowledgesNothingIsCutWhenTheLimitIsUp) {
  const Deadline start{};
  CutWatch watch(30s);
  EXPECT_FALSE(watch.is_cut(silent_for(600s), start)) << "nothing was on its way before";
  EXPECT_FALSE(watch.is_cut(silent_for(629s), start + 29s));
  EXPECT_TRUE(watch.is_cut(silent_for(630s), start + 30s));
}

TEST(CutWatch, EachAcknowledgementBeginsAnew) {
  const Deadline start{};
  CutWatch watch(30s);
  EXPECT_FALSE(watch.is_cut(silent_for(0s), start));
  EXPECT_FALSE(watch.is_cut(silent_for(5s), start + 40s)) << "the last one came at 35 s";
  EXPECT_FALSE(watch.is_cut(silent_for(29s), start + 64s));
  EXPECT_TRUE(watch.is_cut(silent_for(30s), start + 65s));
}

// Refused before it is read: these bytes only have addresses.
TEST(ConnectionTest, RefusesAFrameWhoseLengthDoesNotFit) {
  constexpr std::size_t kTooLong = std::size_t{1} << 32;
  Listener listener = *Listener::open({"127.0.0.1", 0});
  Connection near = *Connection::open({"127.0.0.1", listener.port()}, in(120s));
  void* const bytes =
      ::mmap(nullptr, kTooLong, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(bytes, MAP_FAILED);
  const Status sent = near.send({static_cast<const char*>(bytes), kTooLong}, in(120s));
  ::munmap(bytes, kTooLong);
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().message,
            "a message of 4294967296 bytes cannot be sent; 4294967295 are the most");
}

// ---- A worker is lost before all have noticed --------------------------------------------------

// Rank 2 of three is lost. Ranks 0 and 1 learn of it in different calls; then they form the next
// epoch without it.
class LostWhileMeetingTest : public MembershipTest {
 protected:
  using Call = std::function<void(Membership&)>;

  static void misses_rank_2(Membership& membership) {
    (void)membership.explain_loss({.name = "sum of 1 values"});
  }
  static void has_come_to_the_next_call(Membership& membership) {
    EXPECT_FALSE(membership.all_gather("mine").ok());
  }
  static void is_gone(Membership& /*membership*/) {}

  // Each rank makes one call; then the third leaves, and the others continue.
  void expect_two_are_left(const Call& rank_0, const Call& rank_1, const Call& rank_2) {
    const auto continue_after = [](const Joined& joined, const Call& call) {
      ASSERT_TRUE(joined.ok()) << joined.error().message;
      call(**joined);
      const Status formed = (*joined)->form_next_epoch({.least = 2});
      ASSERT_TRUE(formed.ok()) << formed.error().message;
      EXPECT_EQ((*joined)->world_size(), 2);
      const auto all = (*joined)->all_gather("of rank " + std::to_string((*joined)->rank()));
      ASSERT_TRUE(all.ok()) << all.error().message;
      EXPECT_THAT(*all, testing::ElementsAre("of rank 0", "of rank 1"));
    };
    std::jthread first(
        [&] { continue_after(Membership::host(as(0, 3), *std::move(listener_)), rank_0); });
    std::jthread second([&] { continue_after(Membership::join(as(1, 3)), rank_1); });
    const Joined third = Membership::join(as(2, 3));
    ASSERT_TRUE(third.ok()) << third.error().message;
    rank_2(**third);
  }
};

TEST_F(LostWhileMeetingTest, AllHaveNoticed) {
  expect_two_are_left(misses_rank_2, misses_rank_2, is_gone);
}

TEST_F(LostWhileMeetingTest, RankZeroHasNoticed) {
  expect_two_are_left(misses_rank_2, has_come_to_the_next_call, is_gone);
}

TEST_F(LostWhileMeetingTest, AnotherHasNoticed) {
  expect_two_are_left(has_come_to_the_next_call, misses_rank_2, has_come_to_the_next_call);
}

}  // namespace
}  // namespace fettle::trainer
