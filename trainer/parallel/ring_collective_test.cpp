// Workers as threads, and as processes that can be killed, over the loopback.
#include "trainer/parallel/ring_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace fettle::trainer {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Longer than ctest lets a test run: a collective that returns has not waited for its time-out.
constexpr auto kNever = 24h;

RendezvousRequest request_of(const Listener& listener, std::int64_t rank, std::int64_t world_size,
                             std::chrono::milliseconds timeout) {
  RendezvousRequest request;
  request.master = {"127.0.0.1", listener.port()};
  request.trial = "t";
  request.rank = rank;
  request.world_size = world_size;
  request.timeout = timeout;
  request.log = [](const std::string&) {};
  return request;
}

using Worker = std::function<void(Membership&, Collective&)>;

// Runs one rank, from the meeting to the end.
void work(const RendezvousRequest& request, Listener* listener, const Worker& worker) {
  const auto membership = listener != nullptr ? Membership::host(request, std::move(*listener))
                                              : Membership::join(request);
  ASSERT_TRUE(membership.ok()) << membership.error().message;
  const auto collective = make_ring_collective(**membership, request.timeout);
  ASSERT_TRUE(collective.ok()) << collective.error().message;
  ASSERT_TRUE((*collective)->barrier().ok());  // no worker leaves before all have met
  worker(**membership, **collective);
}

void run(std::int64_t world_size, std::chrono::milliseconds timeout, const Worker& worker) {
  Listener listener = *Listener::open({"127.0.0.1", 0});
  std::vector<std::jthread> threads;
  for (std::int64_t rank = world_size - 1; rank >= 0; --rank) {
    const RendezvousRequest request = request_of(listener, rank, world_size, timeout);
    threads.emplace_back(
        [&, request] { work(request, request.rank == 0 ? &listener : nullptr, worker); });
  }
}

class Worlds : public testing::TestWithParam<std::int64_t> {};

TEST_P(Worlds, EveryoneHasTheSameSumsAndRankZerosBytes) {
  const std::int64_t world_size = GetParam();
  std::vector<std::vector<float>> sums(static_cast<std::size_t>(world_size));
  run(world_size, 120s, [&](Membership&, Collective& collective) {
    const auto rank = static_cast<float>(collective.rank());
    for (const std::size_t count : {1U, 3U, 1000U}) {
      std::vector<double> values(count, 0.5 + collective.rank());
      ASSERT_TRUE(collective.sum(std::span(values)).ok());
      const auto n = static_cast<double>(world_size);
      EXPECT_THAT(values, testing::Each(0.5 * n + n * (n - 1) / 2));
    }
    // Numbers whose sum depends on the order: all workers must still get the same bits.
    std::vector<float> mine(100'000);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = 1.0F / (1.0F + static_cast<float>(i) + rank * 3.7F);
    }
    ASSERT_TRUE(collective.sum(std::span(mine)).ok());
    sums[static_cast<std::size_t>(collective.rank())] = mine;

    // Each worker contributes world size - 1 - rank floats.
    std::vector<std::int64_t> bounds = {0};
    for (std::int64_t i = world_size; i-- > 0;) bounds.push_back(bounds.back() + i);
    std::vector<float> gathered(static_cast<std::size_t>(bounds.back()), NAN);
    const std::int64_t mine_begins = bounds[static_cast<std::size_t>(collective.rank())];
    for (std::int64_t i = 0; i < world_size - 1 - collective.rank(); ++i) {
      gathered[static_cast<std::size_t>(mine_begins + i)] = -static_cast<float>(mine_begins + i);
    }
    ASSERT_TRUE(collective.all_gather(gathered, bounds).ok());
    for (std::size_t i = 0; i < gathered.size(); ++i) {
      EXPECT_EQ(gathered[i], -static_cast<float>(i));
      EXPECT_TRUE(std::signbit(gathered[i])) << "bits stay as they are, of -0, too";
    }

    std::string text = collective.rank() == 0 ? "from rank 0" : "mine";
    ASSERT_TRUE(broadcast_bytes(collective, text).ok());
    EXPECT_EQ(text, "from rank 0");
    EXPECT_TRUE(collective.barrier().ok());
  });
  for (const auto& one : sums) EXPECT_EQ(one, sums[0]);
}

INSTANTIATE_TEST_SUITE_P(Ring, Worlds, testing::Values(2, 3, 4, 7));

TEST(Ring, ALargeMessageIsNotLimitedByWhatSocketsHold) {
  run(2, 120s, [](Membership&, Collective& collective) {
    std::vector<float> values(5'000'001, 1.0F);
    ASSERT_TRUE(collective.sum(std::span(values)).ok());
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 2; }));
  });
}

TEST(Ring, AWorkerThatLeavesIsNamedToAllTheOthersBeforeTimeIsUp) {
  run(4, kNever, [](Membership&, Collective& collective) {
    if (collective.rank() == 2) return;
    std::vector<float> values(10);
    const Status failed = collective.sum(std::span(values));
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(failed.error().message,
              "sum of 10 values (collective 2): rank 2 is gone, its connection was cut");
    EXPECT_FALSE(collective.barrier().ok());
  });
}

TEST(Ring, RankZeroIsNamedToo) {
  run(3, kNever, [](Membership&, Collective& collective) {
    if (collective.rank() == 0) return;
    EXPECT_THAT(collective.barrier().error().message,
                HasSubstr("rank 0 is gone, its connection was cut"));
  });
}

TEST(Ring, AWorkerThatHangsIsNamedWhenTimeIsUp) {
  std::barrier both_know(3);  // rank 1 hangs until the others have given up
  run(3, 3s, [&](Membership& membership, Collective& collective) {
    if (collective.rank() == 1) return both_know.arrive_and_wait();
    const Status failed = collective.barrier();
    both_know.arrive_and_wait();
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().message, HasSubstr("rank 1 did not take part in time"));
    EXPECT_EQ(membership.world_size(), 3);
  });
}

// Their bytes would be added to those of the other workers, as numbers.
void expect_mismatch(const std::string& words, const std::function<Status(Collective&)>& of_rank1,
                     const std::function<Status(Collective&)>& of_others) {
  run(3, kNever, [&](Membership&, Collective& collective) {
    const Status failed = collective.rank() == 1 ? of_rank1(collective) : of_others(collective);
    ASSERT_FALSE(failed.ok()) << "rank " << collective.rank();
    EXPECT_EQ(failed.error().code, ErrorCode::kConflict);
    EXPECT_THAT(failed.error().message, HasSubstr(words));
    EXPECT_FALSE(collective.barrier().ok());
  });
}

template <class T>
Status sum_of(Collective& collective, std::size_t count) {
  std::vector<T> values(count, T{1});
  return collective.sum(std::span(values));
}

TEST(Ring, WorkersInDifferentCollectivesGetAnErrorAndNoSum) {
  const auto ten = [](Collective& collective) { return sum_of<float>(collective, 10); };
  expect_mismatch(
      "sum of floats of 48 bytes (collective 2)",
      [](Collective& collective) { return sum_of<float>(collective, 12); }, ten);
  expect_mismatch(
      "sum of doubles of 40 bytes",  // the same number of bytes
      [](Collective& collective) { return sum_of<double>(collective, 5); }, ten);
  expect_mismatch(
      "is in a sum of floats of 40 bytes (collective 2), but rank",
      [](Collective& collective) {
        std::vector<std::byte> bytes(40);
        return collective.broadcast(bytes);
      },
      ten);
  const auto gather = [](std::int64_t bound) {
    return [bound](Collective& collective) {
      std::vector<float> values(10);
      return collective.all_gather(values, std::vector<std::int64_t>{0, bound, 8, 10});
    };
  };
  expect_mismatch("gathering of 40 bytes", gather(4), gather(5));
}

TEST(Ring, AWorkerThatIsOneCollectiveBehindGetsAnError) {
  run(2, kNever, [&](Membership&, Collective& collective) {
    // Rank 0 has forwarded the bytes, and continues before rank 1 takes them.
    if (collective.rank() == 0) {
      std::vector<std::byte> bytes(8);
      ASSERT_TRUE(collective.broadcast(bytes).ok());
    }
    const Status failed = sum_of<double>(collective, 1);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, ErrorCode::kConflict);
  });
}

// Number of this process's connections that the kernel itself cuts after this time.
int cut_by_the_kernel_after(std::chrono::milliseconds time) {
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    unsigned milliseconds = 0;
    socklen_t size = sizeof milliseconds;
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
    if (!connected || getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) != 0) {
      continue;
    }
    found += milliseconds == time.count() ? 1 : 0;
  }
  return found;
}

// A worker that is paused or slow, behind more bytes than sockets hold. It reads nothing for twice
// as long as a cut network may stay silent. That limit must exceed the seconds that the kernel
// takes to notice a closed window.
TEST(Ring, AWorkerThatIsSlowIsNotCutOff) {
  constexpr auto kUnacknowledged = 8s;
  Listener listener = *Listener::open({"127.0.0.1", 0});
  std::vector<std::jthread> threads;
  for (const std::int64_t rank : {1, 0}) {
    RendezvousRequest request = request_of(listener, rank, 2, kNever);
    threads.emplace_back([&listener, request, kUnacknowledged] {
      const auto membership = request.rank == 0 ? Membership::host(request, std::move(listener))
                                                : Membership::join(request);
      ASSERT_TRUE(membership.ok());
      const auto ring = make_ring_collective(**membership, request.timeout, kUnacknowledged);
      ASSERT_TRUE(ring.ok());
      ASSERT_TRUE((*ring)->barrier().ok());  // both have met
      if (request.rank == 0) {
        // The kernel's limit also counts the time in which a reader is slow.
        EXPECT_EQ(cut_by_the_kernel_after(0ms), 4) << "both ends of the ring's connections";
        EXPECT_EQ(cut_by_the_kernel_after(kUnacknowledgedTime), 2) << "of the members'";
      }
      std::vector<float> values(std::size_t{16} << 20, 1.0F);  // 64 MiB
      if (request.rank == 1) std::this_thread::sleep_for(2 * kUnacknowledged);
      const Status summed = (*ring)->sum(std::span(values));
      ASSERT_TRUE(summed.ok()) << summed.error().message;
      EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 2; }));
    });
  }
}

TEST(Ring, WhoeverIsToldToEndWaitsForTheOthersNoLonger) {
  for (const std::int64_t told : {0, 1}) {
    Listener listener = *Listener::open({"127.0.0.1", 0});
    std::barrier both_know(2);
    std::vector<std::jthread> threads;
    for (const std::int64_t rank : {1, 0}) {
      RendezvousRequest request = request_of(listener, rank, 2, kNever);
      if (rank == told) request.termination = {[] { return true; }, 100ms};
      threads.emplace_back([&, request] {
        const auto membership = request.rank == 0 ? Membership::host(request, std::move(listener))
                                                  : Membership::join(request);
        ASSERT_TRUE(membership.ok());
        const auto ring = make_ring_collective(**membership, request.timeout);
        ASSERT_TRUE(ring.ok());
        ASSERT_TRUE((*ring)->barrier().ok());
        if (request.rank == told) {
          EXPECT_FALSE((*ring)->barrier().ok());
        }
        both_know.arrive_and_wait();  // the other hangs until then
      });
    }
  }
}

TEST(Ring, ThoseThatAreLeftMakeTheNextEpoch) {
  run(4, 120s, [](Membership& membership, Collective& collective) {
    if (collective.rank() == 1) return;
    const std::int64_t before = collective.rank();
    ASSERT_FALSE(collective.barrier().ok());
    ASSERT_TRUE(membership.form_next_epoch({.least = 2}).ok());
    EXPECT_EQ(membership.epoch(), 1);
    EXPECT_EQ(membership.world_size(), 3);
    EXPECT_EQ(membership.rank(), before == 0 ? 0 : before - 1);
    const auto next = make_ring_collective(membership, 120s);
    ASSERT_TRUE(next.ok()) << next.error().message;
    double one = 1;
    ASSERT_TRUE((*next)->sum(std::span(&one, 1)).ok());
    EXPECT_EQ(one, 3);
  });
}

std::string address_of(const Listener& listener) {
  return Json::object({{"host", "127.0.0.1"}, {"port", static_cast<int>(listener.port())}}).dump();
}

void send_bytes(const Connection& to, const std::string& bytes) {
  EXPECT_EQ(::send(to.fd(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
}

// The test plays the second of two workers: before it, strangers connect to rank 0.
TEST(Ring, ConnectionsThatSayNothingKeepNoWorkerWaiting) {
  Listener meeting = *Listener::open({"127.0.0.1", 0});
  const RendezvousRequest first = request_of(meeting, 0, 2, 120s),
                          second = request_of(meeting, 1, 2, 120s);
  std::jthread rank0([&] {
    const auto membership = Membership::host(first, std::move(meeting));
    ASSERT_TRUE(membership.ok()) << membership.error().message;
    const auto collective = make_ring_collective(**membership, first.timeout);
    EXPECT_TRUE(collective.ok()) << "it waited for the silent ones until its time was up";
  });
  const auto membership = *Membership::join(second);
  const Listener listener = *Listener::open({"127.0.0.1", 0});
  const auto addresses = membership->all_gather(address_of(listener));
  ASSERT_TRUE(addresses.ok()) << addresses.error().message;
  const auto port = parse_json(addresses->front())->find("port")->as_integer();
  const Endpoint rank0_listens{"127.0.0.1", static_cast<std::uint16_t>(port)};
  const auto knock = [&] { return *Connection::open(rank0_listens, in(120s)); };
  std::vector<Connection> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(knock());  // more than it listens to at once
  const std::string greeting = membership->shared_id() + std::string("\1\0\0\0\0\0\0\0", 8);
  const Connection hesitant = knock();
  send_bytes(hesitant, greeting.substr(0, 5));
  const Connection wrong = knock();
  send_bytes(wrong, std::string(greeting.size(), '!'));
  const Connection right = knock();
  send_bytes(right, greeting);
  rank0.join();  // while the second is still there
}

// Drops incoming packets before the kernel sees them: nothing is acknowledged, as with a machine
// that has lost power.
void cut_off(const Connection& connection) {
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{1, &drop};
  ASSERT_EQ(setsockopt(connection.fd(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

// The test plays the second of two workers.
TEST(Ring, ACutNetworkIsNoticedLongBeforeTimeIsUp) {
  Listener meeting = *Listener::open({"127.0.0.1", 0});
  const RendezvousRequest first = request_of(meeting, 0, 2, kNever),
                          second = request_of(meeting, 1, 2, kNever);
  std::latch has_met(1);
  std::jthread rank0([&] {
    const auto membership = Membership::host(first, std::move(meeting));
    ASSERT_TRUE(membership.ok()) << membership.error().message;
    const auto ring = make_ring_collective(**membership, kNever, /*unacknowledged=*/500ms);
    ASSERT_TRUE(ring.ok());
    has_met.wait();
    std::vector<float> values(1000);
    EXPECT_FALSE((*ring)->sum(std::span(values)).ok());
  });
  auto membership = *Membership::join(second);
  Listener listener = *Listener::open({"127.0.0.1", 0});
  const auto addresses = membership->all_gather(address_of(listener));
  ASSERT_TRUE(addresses.ok()) << addresses.error().message;
  const auto port = parse_json(addresses->front())->find("port")->as_integer();
  const Connection to_rank0 =
      *Connection::open({"127.0.0.1", static_cast<std::uint16_t>(port)}, in(120s));
  send_bytes(to_rank0, membership->shared_id() + std::string("\1\0\0\0\0\0\0\0", 8));
  std::optional<Connection> from_rank0;
  while (!from_rank0) from_rank0 = listener.accept();
  cut_off(*from_rank0);
  has_met.count_down();
  // Its connection with rank 0 stays open; over it rank 0 reports that the collective failed.
  const Connection& said = *from_rank0;
  pollfd polled{membership->connections().front(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, /*milliseconds=*/-1), 1) << said.fd();
  membership.reset();
}

TEST(Ring, TooFewThatAreLeftEnd) {
  run(2, 120s, [](Membership& membership, Collective& collective) {
    if (collective.rank() == 1) return;
    ASSERT_FALSE(collective.barrier().ok());
    const Status formed = membership.form_next_epoch({.least = 2});
    ASSERT_FALSE(formed.ok());
    EXPECT_EQ(formed.error().message, "1 of at least 2 workers are left");
  });
}

}  // namespace
}  // namespace fettle::trainer
