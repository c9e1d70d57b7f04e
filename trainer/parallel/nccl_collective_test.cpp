// NCCL's Collective: kernels/cuda/libraries/nccl.cpp over an emulated NCCL, with workers as
// threads.
#include "trainer/parallel/nccl_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/device_array.h"
#include "kernels/emulator/every_streams.h"
#include "kernels/emulator/nccl.h"
#include "trainer/testing/gpus.h"

namespace fettle::trainer {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;
using kernels::emulator::Streams;

// A worker's GPU with some floats on it.
struct Gpu {
  explicit Gpu(std::vector<float> begin) : values(array(std::move(begin))) {}

  std::span<float> span() { return {values.data(), static_cast<std::size_t>(values.size())}; }
  // Enqueues the sum of the present values, and makes the backend wait for it.
  Status enqueue_all_reduce(DeviceCollective& gpus) {
    before->record();
    FETTLE_TRY(gpus.enqueue_all_reduce(span(), *before));
    gpus.record(*after);
    after->wait();
    return success();
  }

  kernels::DeviceArray<float> array(std::vector<float> begin) {
    auto made = *kernels::DeviceArray<float>::create(*backend, std::ssize(begin));
    made.upload(begin);
    return made;
  }

  std::unique_ptr<kernels::Backend> backend = *kernels::cuda_backend();
  std::unique_ptr<kernels::Event> before = backend->event();
  std::unique_ptr<kernels::Event> after = backend->event();
  kernels::DeviceArray<float> values;
};

std::string error_of(const Gpus::Made& made) {
  return made.ok() ? "it was made" : made.error().message;
}

// Delays of the GPUs, and the polls until NCCL reports that a call is enqueued on its stream.
struct Pace {
  Streams streams = Streams::kAtOnce;
  int polls = 0;
};

class NcclCollective : public testing::TestWithParam<Pace> {
 protected:
  NcclCollective() {
    kernels::emulator::set_streams(GetParam().streams);
    kernels::emulator::set_nccl_polls(GetParam().polls);
  }
  ~NcclCollective() override {
    kernels::emulator::set_streams(Streams::kAtOnce);
    kernels::emulator::set_nccl_polls(0);
  }
};

TEST_P(NcclCollective, SumsFollowEarlierWorkAndLaterWorkFollowsSums) {
  for (const std::int64_t world_size : {2, 3, 4}) {
    SCOPED_TRACE(world_size);
    const auto all = static_cast<float>(world_size);
    Gpus{.world_size = world_size}.run([&](Membership&, Gpus::Made made) {
      ASSERT_TRUE(made.ok()) << made.error().message;
      Collective& collective = **made;
      DeviceCollective& gpus = *collective.on_device();
      Gpu gpu(std::vector<float>(1000, static_cast<float>(collective.rank())));
      auto ones = gpu.array(std::vector<float>(1000, 1));
      for (int step = 0; step < 3; ++step) {
        gpu.backend->add_scaled(1000, 1, ones.data(), gpu.values.data());  // before: + 1
        ASSERT_TRUE(gpu.enqueue_all_reduce(gpus).ok());
        gpu.backend->add_scaled(1000, -1, ones.data(), gpu.values.data());  // behind: - 1
      }
      float expected = all * (all - 1) / 2;  // of ranks
      for (int step = 0; step < 3; ++step) {
        expected = step == 0 ? expected + all - 1 : (expected + 1) * all - 1;
      }
      EXPECT_THAT(gpu.values.download(), Each(expected));
      EXPECT_TRUE(gpus.health().ok());
      double samples = 2;
      ASSERT_TRUE(collective.sum(std::span(&samples, 1)).ok());
      EXPECT_EQ(samples, 2 * all) << "numbers of the host go by the ring";
    });
  }
}

TEST_P(NcclCollective, GathersSharesOfAnySize) {
  Gpus{.world_size = 3}.run([&](Membership&, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    const std::vector<std::int64_t> bounds = {0, 3, 3, 5};
    const auto rank = static_cast<float>((*made)->rank());
    Gpu gpu(std::vector<float>(5, rank));
    gpu.before->record();
    ASSERT_TRUE((*made)->on_device()->enqueue_all_gather(gpu.span(), bounds, *gpu.before).ok());
    (*made)->on_device()->record(*gpu.after);
    gpu.after->wait();
    EXPECT_THAT(gpu.values.download(), ElementsAre(0, 0, 0, 2, 2));
  });
}

// Otherwise the GPUs would wait for ever, and so would a host that waits for its own GPU.
TEST_P(NcclCollective, GivesUpWhatDoesNotComeToAnEndAndNamesIt) {
  std::barrier both_know(2);
  Gpus{.settings = {.timeout = 2s}}.run([&](Membership&, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    DeviceCollective& gpus = *(*made)->on_device();
    Gpu gpu(std::vector<float>(12, 1));
    ASSERT_TRUE(gpu.enqueue_all_reduce(gpus).ok());
    EXPECT_THAT(gpu.values.download(), Each(2));
    if ((*made)->rank() == 1) return both_know.arrive_and_wait();  // it hangs
    EXPECT_TRUE(gpu.enqueue_all_reduce(gpus).ok()) << "the host waits for nothing";
    EXPECT_EQ(*gpus.given_up(), 0);
    gpu.backend->wait();
    EXPECT_NE(*gpus.given_up(), 0) << "known to all that is enqueued behind it";
    both_know.arrive_and_wait();
    for (int attempt = 0; attempt < 2; ++attempt) {  // and it stays so
      const Status status = attempt == 0 ? gpus.health() : gpu.enqueue_all_reduce(gpus);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
      EXPECT_THAT(status.error().message,
                  HasSubstr("sum of 12 values on the GPUs (collective 2): rank 1"));
    }
  });
}

TEST_P(NcclCollective, NoticesALostWorkerBeforeTheTimeIsUp) {
  // Longer than ctest lets a test run.
  Gpus{.world_size = 3, .settings = {.timeout = 24h}}.run([](Membership&, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    DeviceCollective& gpus = *(*made)->on_device();
    if ((*made)->rank() == 2) return;  // gone
    Gpu gpu(std::vector<float>(5, 1));
    Status status = gpu.enqueue_all_reduce(gpus);
    gpu.backend->wait();
    if (status.ok()) status = gpus.health();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message,
                AllOf(HasSubstr("sum of 5 values"), HasSubstr("rank 2 is gone")));
  });
}

TEST_P(NcclCollective, ThoseThatAreLeftMeetAgain) {
  Gpus{.world_size = 3}.run([](Membership& membership, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    if (membership.rank() == 1) return;
    Gpu gpu(std::vector<float>(5, 1));
    Status status = gpu.enqueue_all_reduce(*(*made)->on_device());
    gpu.backend->wait();
    if (status.ok()) status = (*made)->on_device()->health();
    ASSERT_FALSE(status.ok());
    made->reset();
    ASSERT_TRUE(membership.form_next_epoch({.least = 2}).ok());
    auto ring = *make_ring_collective(membership, 120s);
    const auto maker = *kernels::cuda::nccl_communicators();
    auto again = make_nccl_collective(membership, std::move(ring), maker.get(), {.timeout = 120s});
    ASSERT_TRUE(again.ok()) << again.error().message;
    gpu.values.upload(std::vector<float>(5, 1));
    ASSERT_TRUE(gpu.enqueue_all_reduce(*(*again)->on_device()).ok());
    EXPECT_THAT(gpu.values.download(), Each(2));
  });
}

std::string name_of(const testing::TestParamInfo<Pace>& instance) {
  const Pace& pace = instance.param;
  return name_of(pace.streams) + (pace.polls > 0 ? "InProgress" : "");
}

INSTANTIATE_TEST_SUITE_P(, NcclCollective,
                         testing::Values(Pace{}, Pace{Streams::kLate}, Pace{Streams::kOthersFirst},
                                         Pace{Streams::kAtOnce, 3}, Pace{Streams::kLate, 3}),
                         name_of);

// ---- Meeting -----------------------------------------------------------------------------------

TEST(MeetingOfGpus, RefusesTwoRanksOnOneCard) {
  Gpus{.device = [](std::int64_t) { return 7; }}.run([](Membership&, const Gpus::Made& made) {
    EXPECT_THAT(error_of(made), AllOf(HasSubstr("ranks 0 and 1 both use the GPU GPU-07"),
                                      HasSubstr("a GPU of its own")));
  });
}

// The real maker, except for the functions that a test overrides.
class Changed : public kernels::CommunicatorMaker {
 public:
  std::string version() const override { return real_->version(); }
  std::string card() const override { return real_->card(); }
  Result<std::string> make_id() override { return real_->make_id(); }
  Result<std::unique_ptr<kernels::Communicator>> start(const std::string& id,
                                                       std::int64_t world_size,
                                                       std::int64_t rank) override {
    return real_->start(id, world_size, rank);
  }

 private:
  const Gpus::Maker real_ = *kernels::cuda::nccl_communicators();
};

class OldNccl final : public Changed {
 public:
  std::string version() const override { return "2.27.3"; }
};

TEST(MeetingOfGpus, RefusesDifferentVersions) {
  Gpus gpus;
  gpus.maker = [](std::int64_t rank) -> Gpus::Maker {
    if (rank == 1) return std::make_unique<OldNccl>();
    return *kernels::cuda::nccl_communicators();
  };
  gpus.run([](Membership&, const Gpus::Made& made) {
    EXPECT_THAT(error_of(made), HasSubstr("rank 1 has NCCL 2.27.3, expected rank 0's 2.28.9"));
  });
}

TEST(MeetingOfGpus, GoesByTheRingWhereOneHasNoGpu) {
  Gpus gpus;
  gpus.maker = [](std::int64_t rank) -> Gpus::Maker {
    if (rank == 0) return nullptr;
    return *kernels::cuda::nccl_communicators();
  };
  gpus.run([](Membership&, Gpus::Made made) {
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ((*made)->on_device(), nullptr);
    EXPECT_TRUE((*made)->barrier().ok());
  });
}

// Joins the rendezvous, but never NCCL's meeting.
class Hanging final : public Changed {
 public:
  explicit Hanging(std::atomic<bool>& may_end) : may_end_(may_end) {}
  Result<std::unique_ptr<kernels::Communicator>> start(const std::string&, std::int64_t,
                                                       std::int64_t) override {
    may_end_.wait(false);
    return io_error("it hung");
  }

 private:
  std::atomic<bool>& may_end_;
};

TEST(MeetingOfGpus, OfOneThatNeverComesIsGivenUp) {
  std::atomic<bool> may_end = false;
  Gpus gpus{.settings = {.timeout = 2s}};
  gpus.maker = [&](std::int64_t rank) -> Gpus::Maker {
    if (rank == 1) return std::make_unique<Hanging>(may_end);
    return *kernels::cuda::nccl_communicators();
  };
  gpus.run([&](Membership& membership, const Gpus::Made& made) {
    if (membership.rank() == 1) return;
    EXPECT_THAT(error_of(made), AllOf(HasSubstr("meeting of the GPUs: rank 1"),
                                      HasSubstr("did not take part in time")));
    may_end = true;
    may_end.notify_all();
  });
}

}  // namespace
}  // namespace fettle::trainer
