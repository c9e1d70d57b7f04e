// The emulator's host side: streams, captured graphs and memory behave as CUDA's, errors included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cuda/device_code/launch.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::Each;

__global__ void add_one(float* values) { values[threadIdx.x] += 1; }

class Stream {
 public:
  Stream() { must_succeed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }  // NOLINT: implicit

 private:
  cudaStream_t stream_ = nullptr;
};

// ---- Graphs ------------------------------------------------------------------------------------

TEST(EmulatedGraph, RecordsLaunchesAndCopiesAndRunsThemLater) {
  const Stream stream;
  std::vector<float> values(4, 5), copy(4);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaMemsetAsync(values.data(), 0, 16, stream);
  launch(static_cast<cudaStream_t>(stream), {.threads = 4}, add_one, values.data());
  cudaMemcpyAsync(copy.data(), values.data(), 16, cudaMemcpyDeviceToDevice, stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_THAT(values, Each(5.0F)) << "what is captured is not done";

  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) {
    std::fill(copy.begin(), copy.end(), 0.0F);
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    cudaStreamSynchronize(stream);
    EXPECT_THAT(copy, Each(1.0F));
  }
  cudaGraphExecDestroy(executable);
}

struct Refused {
  const char* name;
  std::function<cudaError_t(cudaStream_t)> call;
  cudaError_t error;
};

TEST(EmulatedGraph, AWaitOrAnAllocationSpoilsACapture) {
  void* memory = nullptr;
  float host = 0;
  const std::vector<Refused> all = {
      {"synchronize", [](cudaStream_t s) { return cudaStreamSynchronize(s); },
       cudaErrorStreamCaptureUnsupported},
      {"device", [](cudaStream_t) { return cudaDeviceSynchronize(); },
       cudaErrorStreamCaptureUnsupported},
      {"malloc", [&](cudaStream_t) { return cudaMalloc(&memory, 4); },
       cudaErrorStreamCaptureUnsupported},
      {"copy on the default stream",
       [&](cudaStream_t) { return cudaMemcpy(&host, &host, 4, cudaMemcpyDefault); },
       cudaErrorStreamCaptureImplicit},
  };
  for (const auto& [name, call, error] : all) {
    const Stream stream;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(stream), error) << name;
    EXPECT_EQ(cudaMemsetAsync(&host, 0, 4, stream), cudaErrorStreamCaptureInvalidated) << name;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated) << name;
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "the stream is of use again";
    cudaGetLastError();
  }
}

// ---- Streams -----------------------------------------------------------------------------------

TEST(EmulatedStream, DoneLateAResultIsNotThereBeforeSomebodyWaits) {
  emulator::set_streams(emulator::Streams::kLate);
  const Stream stream;
  std::vector<float> values(4);
  launch(static_cast<cudaStream_t>(stream), {.threads = 4}, add_one, values.data());
  EXPECT_THAT(values, Each(0.0F));
  cudaStreamSynchronize(stream);
  EXPECT_THAT(values, Each(1.0F));
  emulator::set_streams(emulator::Streams::kAtOnce);
}

TEST(EmulatedStream, EventsMeasureTime) {
  const Stream stream;
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> values(256);
  cudaEventRecord(begin, stream);
  launch(static_cast<cudaStream_t>(stream), {}, add_one, values.data());
  cudaEventRecord(end, stream);
  cudaEventSynchronize(end);
  float milliseconds = -1;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

// ---- Memory ------------------------------------------------------------------------------------

TEST(EmulatedMemory, IsNaNAtFirstAndCounted) {
  std::size_t before = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  float* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
  EXPECT_TRUE(std::isnan(memory[0]) && std::isnan(memory[249]));
  cudaMemGetInfo(&after, &total);
  EXPECT_EQ(before - after, 1024);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue) << "freed twice";
  cudaGetLastError();
}

// Each block is a heap allocation of the requested size.
TEST(EmulatedMemoryDeathTest, TheAddressSanitizerDetectsOverruns) {
#ifdef __SANITIZE_ADDRESS__
  float* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4 * sizeof(float)), cudaSuccess);
  EXPECT_DEATH(launch(nullptr, {.threads = 5}, add_one, memory), "heap-buffer-overflow");
  cudaFree(memory);
#else
  GTEST_SKIP() << "only under the address sanitizer";
#endif
}

}  // namespace
}  // namespace fettle::kernels::cuda
