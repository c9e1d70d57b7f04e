// A communicator of one rank: the only part of NCCL's code path that one GPU can execute. Uses NCCL
// itself on a GPU, the emulated NCCL elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kernels/backends/cuda/backend.h"
#include "kernels/cuda/libraries/communicator.h"
#include "kernels/device_array.h"
#ifdef FETTLE_GPU_TESTS
#include "kernels/backends/cuda/loader.h"
#else
#include "kernels/cuda/libraries/nccl.h"
#endif

namespace fettle::kernels {
namespace {

using ::testing::ElementsAre;

Result<std::unique_ptr<CommunicatorMaker>> communicators() {
#ifdef FETTLE_GPU_TESTS
  return load_communicators(cuda_library_places());
#else
  return cuda::nccl_communicators();
#endif
}

class NcclAlone : public ::testing::Test {
 protected:
  void SetUp() override {
    auto maker = communicators();
    ASSERT_TRUE(maker.ok()) << maker.error().message;
    maker_ = std::move(maker).value();
    auto id = maker_->make_id();
    ASSERT_TRUE(id.ok()) << id.error().message;
    auto started = maker_->start(*id, 1, 0);
    ASSERT_TRUE(started.ok()) << started.error().message;
    communicator_ = std::move(started).value();
    ASSERT_TRUE(communicator_->meet().ok());
    values_ = std::move(DeviceArray<float>::create(*backend_, 3)).value();
    values_.upload(std::vector<float>{1, 2, 3});
  }

  std::span<float> span() { return {values_.data(), static_cast<std::size_t>(values_.size())}; }

  // Whether the work of this many calls is done within minutes.
  bool done(std::int64_t calls) {
    for (int i = 0; i < 24'000 && communicator_->done() < calls; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return communicator_->done() >= calls;
  }

  std::unique_ptr<CommunicatorMaker> maker_;
  std::unique_ptr<Backend> backend_ = std::move(cuda_backend()).value();
  std::unique_ptr<Event> before_ = backend_->event();
  std::unique_ptr<Event> after_ = backend_->event();
  DeviceArray<float> values_;
  std::unique_ptr<Communicator> communicator_;
};

TEST_F(NcclAlone, TheSumOfOneIsItself) {
  before_->record();
  ASSERT_TRUE(communicator_->enqueue_all_reduce(span(), *before_).ok());
  communicator_->record(*after_);
  after_->wait();
  EXPECT_THAT(values_.download(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(done(1));
  EXPECT_EQ(communicator_->trouble(), "");
  EXPECT_EQ(*communicator_->given_up(), 0);
}

// Captured like a backward pass, with an event inside after which the sum begins.
TEST_F(NcclAlone, BeginsBehindAnEventInAGraph) {
  const auto graph = backend_->capture([&] {
    backend_->add_scaled(3, 1, values_.data(), values_.data());
    before_->record();
  });
  for (int step = 0; step < 3; ++step) {
    graph->launch();
    ASSERT_TRUE(communicator_->enqueue_all_reduce(span(), *before_).ok());
    communicator_->record(*after_);
    after_->wait();
  }
  EXPECT_THAT(values_.download(), ElementsAre(8, 16, 24));
  EXPECT_TRUE(done(3));
}

TEST_F(NcclAlone, GathersItsOwnPart) {
  const std::int64_t bounds[] = {0, 3};
  before_->record();
  ASSERT_TRUE(communicator_->enqueue_all_gather(span(), bounds, *before_).ok());
  communicator_->record(*after_);
  after_->wait();
  EXPECT_THAT(values_.download(), ElementsAre(1, 2, 3));
}

TEST_F(NcclAlone, CanBeGivenUpAndStartedAgain) {
  communicator_->abort();
  communicator_->abort();
  EXPECT_NE(*communicator_->given_up(), 0);
  communicator_.reset();
  auto id = maker_->make_id();
  ASSERT_TRUE(id.ok());
  auto again = maker_->start(*id, 1, 0);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE((*again)->meet().ok());
}

}  // namespace
}  // namespace fettle::kernels
