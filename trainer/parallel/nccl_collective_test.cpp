// NCCL's Collective with workers as threads and a communicator that adds up in this process.
#include "trainer/parallel/nccl_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/parallel/ring_collective.h"
#include "trainer/parallel/watchdog.h"

namespace fettle::trainer {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using namespace std::chrono_literals;
using kernels::Communicator;

// Where the GPUs of a test meet. A sum is done when the last has come to it.
struct Fabric {
  std::mutex mutex;
  std::vector<float*> waiting;
  std::atomic<int> aborted = 0;
  std::atomic<bool> hangs = false;
};

class FakeCommunicator final : public Communicator {
 public:
  FakeCommunicator(Fabric& fabric, std::int64_t world_size)
      : fabric_(fabric), world_size_(static_cast<std::size_t>(world_size)) {}

  Status start_sum(float* values, std::int64_t count) override {
    const std::scoped_lock lock(fabric_.mutex);
    done_ = std::make_shared<std::atomic<bool>>(false);
    fabric_.waiting.push_back(values);
    all_arrived.push_back(done_);
    if (fabric_.waiting.size() < world_size_ || fabric_.hangs) return success();
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (const float* const each : fabric_.waiting) sum += each[i];
      for (float* const each : fabric_.waiting) each[i] = sum;
    }
    for (const auto& each : all_arrived) *each = true;
    fabric_.waiting.clear();
    all_arrived.clear();
    return success();
  }
  Progress progress() override {
    if (aborted_) return Progress::kFailed;
    return done_ == nullptr || *done_ ? Progress::kDone : Progress::kUnderWay;
  }
  std::string failure() override { return "it was aborted"; }
  void abort() override {
    if (!aborted_.exchange(true)) ++fabric_.aborted;
  }

 private:
  using Flag = std::shared_ptr<std::atomic<bool>>;
  inline static std::vector<Flag> all_arrived;  // guarded by the fabric's mutex
  Fabric& fabric_;
  const std::size_t world_size_;
  Flag done_;
  std::atomic<bool> aborted_ = false;
};

class FakeMaker final : public kernels::CommunicatorMaker {
 public:
  FakeMaker(Fabric& fabric, std::string card, std::string version = "2.28.9")
      : fabric_(fabric), card_(std::move(card)), version_(std::move(version)) {}
  std::string version() const override { return version_; }
  std::string card() const override { return card_; }
  Result<std::string> make_id() override { return std::string("\x00id\xff", 4); }
  Result<std::unique_ptr<Communicator>> start(const std::string& id, std::int64_t world_size,
                                              std::int64_t) override {
    EXPECT_EQ(id, std::string("\x00id\xff", 4));
    return std::unique_ptr<Communicator>(std::make_unique<FakeCommunicator>(fabric_, world_size));
  }

 private:
  Fabric& fabric_;
  const std::string card_;
  const std::string version_;
};

using Made = Result<std::unique_ptr<Collective>>;
using Maker = std::function<std::unique_ptr<kernels::CommunicatorMaker>(std::int64_t rank)>;
using Worker = std::function<void(Made)>;

void work(const RendezvousRequest& request, Listener* listener, const Maker& maker,
          std::chrono::milliseconds timeout, const Worker& worker) {
  const auto membership = listener != nullptr ? Membership::host(request, std::move(*listener))
                                              : Membership::join(request);
  ASSERT_TRUE(membership.ok()) << membership.error().message;
  auto ring = make_ring_collective(**membership, 10s);
  ASSERT_TRUE(ring.ok()) << ring.error().message;
  const auto made = maker(request.rank);
  worker(make_nccl_collective(**membership, *std::move(ring), made.get(), timeout));
}

// Two workers, each with what `maker` gives its rank.
void run(const Maker& maker, std::chrono::milliseconds timeout, const Worker& worker) {
  Listener listener = *Listener::open({"127.0.0.1", 0});
  RendezvousRequest request;
  request.master = {"127.0.0.1", listener.port()};
  request.trial = "t";
  request.world_size = 2;
  request.timeout = 10s;
  request.log = [](const std::string&) {};
  RendezvousRequest other = request;
  other.rank = 1;
  std::jthread second([&] { work(other, nullptr, maker, timeout, worker); });
  work(request, &listener, maker, timeout, worker);
}

std::string error_of(const Made& made) { return made.ok() ? "it was made" : made.error().message; }

TEST(NcclCollective, AddsUpOnTheGpusAndTheRestByTheRing) {
  Fabric fabric;
  const auto maker = [&](std::int64_t rank) {
    return std::make_unique<FakeMaker>(fabric, "GPU-" + std::to_string(rank));
  };
  run(maker, 10s, [](Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    Collective& collective = **made;
    EXPECT_TRUE(collective.takes_device_memory());
    for (int step = 0; step < 20; ++step) {
      std::vector<float> gradients(1000, 1.0F + static_cast<float>(collective.rank()));
      ASSERT_TRUE(collective.sum(std::span(gradients)).ok());
      EXPECT_THAT(gradients, Each(3.0F));
      double samples = 2;
      ASSERT_TRUE(collective.sum(std::span(&samples, 1)).ok());
      EXPECT_EQ(samples, 4);
    }
  });
}

TEST(NcclCollective, RefusesTwoRanksOnOneCard) {
  Fabric fabric;
  const auto maker = [&](std::int64_t) { return std::make_unique<FakeMaker>(fabric, "GPU-7"); };
  run(maker, 10s, [](const Made& made) {
    EXPECT_THAT(error_of(made), AllOf(HasSubstr("ranks 0 and 1 both use the GPU GPU-7"),
                                      HasSubstr("a GPU of its own")));
  });
}

TEST(NcclCollective, RefusesDifferentVersions) {
  Fabric fabric;
  const auto maker = [&](std::int64_t rank) {
    return std::make_unique<FakeMaker>(fabric, "GPU-" + std::to_string(rank),
                                       rank == 0 ? "2.28.9" : "2.27.3");
  };
  run(maker, 10s, [](const Made& made) {
    EXPECT_THAT(error_of(made), HasSubstr("rank 1 has NCCL 2.27.3, expected rank 0's 2.28.9"));
  });
}

TEST(NcclCollective, GoesByTheRingWhereOneHasNoGpu) {
  Fabric fabric;
  const auto maker = [&](std::int64_t rank) {
    return rank == 0 ? nullptr : std::make_unique<FakeMaker>(fabric, "GPU-1");
  };
  run(maker, 10s, [](Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_FALSE((*made)->takes_device_memory());
    EXPECT_TRUE((*made)->barrier().ok());
  });
}

TEST(NcclCollective, GivesUpWhatDoesNotComeToAnEndAndNamesIt) {
  Fabric fabric;
  fabric.hangs = true;
  const auto maker = [&](std::int64_t rank) {
    return std::make_unique<FakeMaker>(fabric, "GPU-" + std::to_string(rank));
  };
  run(maker, 300ms, [](Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::vector<float> gradients(12);
    for (int attempt = 0; attempt < 2; ++attempt) {  // and it stays so
      const Status status = (*made)->sum(std::span(gradients));
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
      EXPECT_THAT(status.error().message, HasSubstr("sum of 12 values on the GPUs (collective 1)"));
    }
  });
  EXPECT_EQ(fabric.aborted, 2);
}

TEST(NcclCollective, NoticesALostWorkerLongBeforeTheTimeIsUp) {
  Fabric fabric;
  const auto maker = [&](std::int64_t rank) {
    return std::make_unique<FakeMaker>(fabric, "GPU-" + std::to_string(rank));
  };
  const auto start = std::chrono::steady_clock::now();
  run(maker, 60s, [](Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    if ((*made)->rank() == 1) return;  // gone
    std::vector<float> gradients(5);
    const Status status = (*made)->sum(std::span(gradients));
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("rank 1"));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  EXPECT_GE(fabric.aborted, 1);
}

TEST(Watchdog, BarksOnceWithTheNameOfWhatTakesTooLong) {
  std::mutex mutex;
  std::vector<std::string> barks;
  Watchdog watchdog(30ms, [&](const std::string& what) {
    const std::scoped_lock lock(mutex);
    barks.push_back(what);
  });
  watchdog.watch("the quick one");
  EXPECT_FALSE(watchdog.rest());
  watchdog.watch("the slow one");
  while (!watchdog.has_barked()) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(60ms);
  EXPECT_TRUE(watchdog.rest());
  watchdog.watch("the next one");
  EXPECT_FALSE(watchdog.rest());
  EXPECT_THAT(barks, testing::ElementsAre("the slow one"));
}

}  // namespace
}  // namespace fettle::trainer
