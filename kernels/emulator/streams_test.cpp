// Concurrent streams: work that events order is in order, and missing order is caught by one of the
// late ways of running.
#include "kernels/emulator/streams.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/every_streams.h"

namespace fettle::kernels::emulator {
namespace {

constexpr int kRounds = 5;

// A copy stream fills one place after the other, and a compute stream reads from it.
class TwoStreams : public ::testing::TestWithParam<Streams> {
 protected:
  TwoStreams() {
    set_streams(GetParam());
    for (cudaStream_t* stream : {&copy_, &compute_}) cudaStreamCreate(stream);
    for (cudaEvent_t* event : {&there_, &taken_}) cudaEventCreate(event);
  }
  ~TwoStreams() override {
    for (cudaEvent_t event : {there_, taken_}) cudaEventDestroy(event);
    for (cudaStream_t stream : {copy_, compute_}) cudaStreamDestroy(stream);
    set_streams(Streams::kAtOnce);
  }

  // Whether every round reads the value that was copied.
  bool arrives(bool waits_until_there, bool waits_until_taken) {
    std::vector<int> brought(kRounds), found(kRounds, -1);
    int place = -1;
    for (int i = 0; i < kRounds; ++i) {
      brought[static_cast<std::size_t>(i)] = i;
      if (waits_until_taken) cudaStreamWaitEvent(copy_, taken_);
      move(&brought[static_cast<std::size_t>(i)], &place, copy_);
      cudaEventRecord(there_, copy_);
      if (waits_until_there) cudaStreamWaitEvent(compute_, there_);
      move(&place, &found[static_cast<std::size_t>(i)], compute_);
      cudaEventRecord(taken_, compute_);
    }
    cudaStreamSynchronize(compute_);
    const bool arrived = found == brought;
    cudaDeviceSynchronize();  // while the places exist
    return arrived;
  }

  static void move(const int* from, int* to, cudaStream_t stream) {
    cudaMemcpyAsync(to, from, sizeof(int), cudaMemcpyDeviceToDevice, stream);
  }

  cudaStream_t copy_ = nullptr;
  cudaStream_t compute_ = nullptr;
  cudaEvent_t there_ = nullptr;
  cudaEvent_t taken_ = nullptr;
};

TEST_P(TwoStreams, AreInTheOrderThatEventsMake) { EXPECT_TRUE(arrives(true, true)); }

TEST_P(TwoStreams, ShowAReaderThatDoesNotWait) {
  EXPECT_EQ(arrives(false, true), GetParam() != Streams::kLate);
}

TEST_P(TwoStreams, ShowAWriterThatDoesNotWait) {
  EXPECT_EQ(arrives(true, false), GetParam() != Streams::kOthersFirst);
}

INSTANTIATE_TEST_SUITE_P(, TwoStreams, ::testing::ValuesIn(kEveryStreams),
                         [](const auto& instance) { return name_of(instance.param); });

TEST(EmulatedEvent, IsDoneExactlyWhenItsWorkIsDone) {
  set_streams(Streams::kLate);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  int values[2] = {};
  cudaMemsetAsync(&values[0], 1, sizeof(int), stream);
  cudaEventRecord(event, stream);
  cudaMemsetAsync(&values[1], 1, sizeof(int), stream);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaEventSynchronize(event);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_NE(values[0], 0);
  EXPECT_EQ(values[1], 0);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  EXPECT_NE(values[1], 0) << "a stream ends when all of it is done";
  set_streams(Streams::kAtOnce);
}

// A recorded graph may mark an event, so that another stream begins in the middle of it.
TEST_P(TwoStreams, AnEventWithinAGraphIsReachedInEachRun) {
  int there = 0, taken = 0, over = 0;
  cudaStreamBeginCapture(copy_, cudaStreamCaptureModeThreadLocal);
  cudaMemsetAsync(&there, 1, sizeof there, copy_);
  ASSERT_EQ(cudaEventRecordWithFlags(there_, copy_, cudaEventRecordExternal), cudaSuccess);
  cudaMemsetAsync(&over, 1, sizeof over, copy_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(copy_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  cudaGraphInstantiate(&executable, graph);
  cudaGraphDestroy(graph);
  for (int run = 0; run < 2; ++run) {
    there = taken = over = 0;
    cudaGraphLaunch(executable, copy_);
    cudaStreamWaitEvent(compute_, there_);
    move(&there, &taken, compute_);
    cudaStreamSynchronize(compute_);
    EXPECT_NE(taken, 0);
    EXPECT_EQ(over != 0, GetParam() != Streams::kLate) << "it need not be over";
    cudaStreamSynchronize(copy_);
  }
  cudaGraphExecDestroy(executable);
}

TEST_P(TwoStreams, WorkThatTakesItsTimeHoldsUpItsStreamAlone) {
  std::atomic<bool> may_end = false;
  int before = 0, behind = 0, beside = 0;
  const int one = 1;
  WorkQueue slow;
  slow.add([&] { before = 1; });
  slow.add_slow([&] { return may_end.load(); });
  slow.add([&] { behind = 1; });
  const std::shared_ptr<Mark> end = slow.add_mark();
  move(&one, &beside, compute_);
  cudaStreamSynchronize(compute_);
  EXPECT_EQ(beside, 1);
  EXPECT_EQ(behind, 0);
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    may_end = true;
  });
  finish(*end);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(behind, 1);
}

TEST(EmulatedEvent, OutsideACaptureItCannotBeOfAGraph) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreate(&stream);
  cudaEventCreate(&event);
  EXPECT_EQ(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal),
            cudaErrorInvalidValue);
  cudaGetLastError();
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace fettle::kernels::emulator
