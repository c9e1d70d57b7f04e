// The backend "cuda" as a whole, on the emulator: memory, uploads, readbacks and graphs keep their
// order, even if the device works only when the host waits.
#include "kernels/backends/cuda/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/device_array.h"
#include "kernels/emulator/every_streams.h"

namespace fettle::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Streams that work at once, and streams that work late.
class CudaBackend : public ::testing::TestWithParam<emulator::Streams> {
 protected:
  CudaBackend() { emulator::set_streams(GetParam()); }
  ~CudaBackend() override { emulator::set_streams(emulator::Streams::kAtOnce); }

  DeviceArray<float> array(std::vector<float> values) {
    auto made = std::move(DeviceArray<float>::create(*backend_, std::ssize(values))).value();
    made.upload(values);
    return made;
  }

  const std::unique_ptr<Backend> backend_ = std::move(cuda_backend()).value();
};

TEST_P(CudaBackend, UploadsAreInOrderAndLeaveTheirSourceFree) {
  auto device = std::move(DeviceArray<float>::create(*backend_, 3)).value();
  std::vector<float> host(3);
  for (float i = 0; i < 40; ++i) {  // more than can be staged at once
    host.assign(3, i);
    device.upload(host);
  }
  host.assign(3, -1);
  EXPECT_THAT(device.download(), Each(39.0F));
}

// More pieces than can be under way at once. The host memory is free when the call returns.
TEST_P(CudaBackend, ALargeUploadComesInPieces) {
  constexpr std::int64_t kFloats = (std::int64_t{40} << 18) + 777;  // 40 MiB and a rest
  auto device = std::move(DeviceArray<float>::create(*backend_, kFloats)).value();
  std::vector<float> host(static_cast<std::size_t>(kFloats));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 65'521);
  const std::vector<float> expected = host;
  backend_->upload(host.data(), device.data(), device.bytes());
  std::fill(host.begin(), host.end(), -1.0F);
  EXPECT_TRUE(device.download() == expected) << "the source is free at once";
}

TEST_P(CudaBackend, AGraphRepeatsItsCallsOnlyWhenLaunched) {
  auto x = array({1, 2, 3}), y = array({0, 0, 0}), z = array({9, 9, 9});
  const auto work = [&] {
    backend_->add_scaled(3, 2, x.data(), y.data());
    backend_->copy(y.data(), z.data(), 12);
    backend_->set_zero(x.data(), 4);
  };
  const auto graph = backend_->capture(work);
  EXPECT_THAT(y.download(), Each(0.0F));

  graph->launch();
  EXPECT_THAT(z.download(), ElementsAre(2, 4, 6));
  x.upload(std::vector<float>{10, 10, 10});  // the old values have been read by then
  graph->launch();
  const std::vector<float> replayed = z.download();
  y.upload(std::vector<float>{2, 4, 6});
  x.upload(std::vector<float>{10, 10, 10});
  work();
  EXPECT_EQ(z.download(), replayed);
  EXPECT_THAT(replayed, ElementsAre(22, 24, 26));
}

TEST_P(CudaBackend, ZeroBytesNeedNoAddress) {
  const auto work = [&] {
    backend_->copy(nullptr, nullptr, 0);
    backend_->set_zero(nullptr, 0);
  };
  work();
  backend_->capture(work)->launch();
  backend_->download(nullptr, nullptr, 0);
}

// The host asks whether a copy under way is done; the launch after it must not find "not ready"
// among the errors.
TEST_P(CudaBackend, ACopyThatIsNotDoneYetIsNoErrorOfTheNextLaunch) {
  auto x = array({1}), y = array({1});
  x.upload(std::vector<float>{2});
  x.upload(std::vector<float>{3});  // asks whether the first upload's buffer is free
  backend_->add_scaled(1, 1, x.data(), y.data());
  EXPECT_THAT(y.download(), ElementsAre(4));
}

TEST_P(CudaBackend, AReadbackBringsValuesAsTheyWereWhenItWasEnqueued) {
  auto value = array({1});
  const auto readback = backend_->readback(sizeof(float));
  readback->enqueue(value.data());
  value.upload(std::vector<float>{2});
  float first = 0, second = 0;
  readback->take(&first);
  readback->enqueue(value.data());
  readback->take(&second);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

// Makes layers of each kind that keeps memory or uses the workspace.
Status make_layers(Backend& backend, std::vector<std::shared_ptr<void>>& kept) {
  const PlanOptions plan{16, DataType::kBFloat16};
  const auto keep = [&](auto made) -> Status {
    if (!made.ok()) return made.error();
    kept.emplace_back(std::move(made).value());
    return success();
  };
  FETTLE_TRY(keep(backend.linear({64, 512}, plan)));
  FETTLE_TRY(keep(backend.conv({{16, 16, 3}, 32}, plan)));
  FETTLE_TRY(keep(backend.batch_norm({{16, 16, 32}}, plan)));
  FETTLE_TRY(keep(backend.row_norm({RowNormKind::kLayer, {1, 1, 64}}, plan)));
  FETTLE_TRY(keep(backend.attention({33, 4, 16}, plan)));
  FETTLE_TRY(keep(backend.embedding({100, 33, 64}, plan)));
  return keep(backend.pool({PoolKind::kMax, {16, 16, 32}}, plan));
}

TEST_P(CudaBackend, ReportsTheWorkspaceOfLayers) {
  const std::int64_t before = *backend_->free_memory();
  const auto needed = backend_->workspace([&] {
    std::vector<std::shared_ptr<void>> dropped;
    return make_layers(*backend_, dropped);
  });
  ASSERT_TRUE(needed.ok()) << needed.error().message;
  EXPECT_EQ(*backend_->free_memory(), before) << "nothing was allocated";
  ASSERT_TRUE(backend_->reserve_workspace(*needed).ok());
  std::vector<std::shared_ptr<void>> kept;
  ASSERT_TRUE(make_layers(*backend_, kept).ok());
  // Covers the blocks' counters (a few bytes more) and padding (a few bytes less).
  constexpr std::int64_t kSlack = 16 * 1024;
  EXPECT_NEAR(static_cast<double>(before - *backend_->free_memory()),
              static_cast<double>(needed->total()), kSlack);
  EXPECT_GT(needed->own, kSlack);
  EXPECT_GT(needed->shared, kSlack);
}

TEST_P(CudaBackend, NamesTheImplementationOfEachPass) {
  std::vector<std::shared_ptr<void>> kept;
  ASSERT_TRUE(make_layers(*backend_, kept).ok());
  ASSERT_TRUE(make_layers(*backend_, kept).ok()) << "the same again";
  std::vector<std::string> found;
  for (const Implementation& one : backend_->implementations()) {
    found.push_back(one.operation + "; " + one.pass + "; " + one.by + one.reason);
  }
  const std::string conv = "conv 16x16x3 to 32 channels, kernel 3, stride 1, padding 1";
  EXPECT_THAT(found, ::testing::ElementsAre(
                         "linear 64 to 512, 16 samples, bf16; forward; own",
                         "linear 64 to 512, 16 samples, bf16; backward; own",
                         conv + ", 16 samples, bf16; forward; own",
                         conv + ", 16 samples, bf16; backward; own",
                         "attention of 33 tokens, 4 heads of 16, 16 samples, bf16; forward; own",
                         "attention of 33 tokens, 4 heads of 16, 16 samples, bf16; backward; own"));
  EXPECT_EQ(backend_->take_recent_implementations().size(), 2 * found.size());
  EXPECT_TRUE(backend_->take_recent_implementations().empty());
}

// Any missing event would bring some block too late or too early.
TEST_P(CudaBackend, UploadBuffersBringEveryBlockToTheWorkThatIsEnqueuedBehindIt) {
  constexpr std::int64_t kBlocks = 7;
  const auto upload_buffers = std::move(backend_->upload_buffers(2 * sizeof(float))).value();
  auto found = array(std::vector<float>(2 * kBlocks, -1));
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    auto* const block = reinterpret_cast<float*>(upload_buffers->next());
    block[0] = static_cast<float>(i);
    block[1] = static_cast<float>(-i);
    const std::byte* const there = upload_buffers->enqueue(2 * sizeof(float));
    backend_->copy(there, found.data() + 2 * i, 2 * sizeof(float));
  }
  EXPECT_THAT(found.download(), ElementsAre(0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6));
  EXPECT_GE(upload_buffers->waited(), 0);
}

TEST_P(CudaBackend, AFeedKnowsHowLongItWasWaitedFor) {
  const auto upload_buffers = std::move(backend_->upload_buffers(std::int64_t{1} << 24)).value();
  for (int i = 0; i < 4; ++i) {
    (void)upload_buffers->next();
    (void)upload_buffers->enqueue(std::int64_t{1} << 24);
  }
  // kOthersFirst alone does the work before the copy.
  EXPECT_EQ(upload_buffers->waited() > 0, GetParam() == emulator::Streams::kOthersFirst);
}

TEST_P(CudaBackend, KnowsTheMemoryThatIsLeft) {
  const std::int64_t before = backend_->free_memory().value();
  const auto memory = std::move(backend_->allocate(1000)).value();
  EXPECT_EQ(backend_->free_memory(), before - 1024);
}

INSTANTIATE_TEST_SUITE_P(, CudaBackend, ::testing::ValuesIn(emulator::kEveryStreams),
                         [](const auto& instance) { return emulator::name_of(instance.param); });

TEST(CudaBackendDeathTest, ARecordedCallMustNotWait) {
  const auto backend = std::move(cuda_backend()).value();
  EXPECT_DEATH(backend->capture([&] { backend->wait(); }), "must neither allocate");
  EXPECT_DEATH(backend->capture([&] { (void)backend->allocate(4); }), "must neither allocate");
}

TEST(CudaBackendDeathTest, MemoryMustNotOutliveIt) {
  auto backend = std::move(cuda_backend()).value();
  const auto memory = std::move(backend->allocate(4)).value();
  EXPECT_DEATH(backend.reset(), "memory outlives its device");
}

}  // namespace
}  // namespace fettle::kernels
