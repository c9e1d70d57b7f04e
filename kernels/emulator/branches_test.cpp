// Branches of a graph: their capture and their order of execution in the emulator, and the branches
// that a Device forks and joins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"
#include "kernels/emulator/every_streams.h"

namespace fettle::kernels::cuda {
namespace {

using ::testing::ElementsAre;

struct Log {
  int count = 0;
  int entries[16] = {};
};

__global__ void write_down(Log* log, int what) { log->entries[log->count++] = what; }

void note(cudaStream_t stream, Log& log, int what) {
  launch(stream, {.threads = 1}, write_down, &log, what);
}

// Launches a graph once and returns what its work logged.
std::vector<int> log_of(cudaGraph_t graph, cudaStream_t stream, Log& log) {
  cudaGraphExec_t executable = nullptr;
  must_succeed(cudaGraphInstantiate(&executable, graph));
  must_succeed(cudaGraphLaunch(executable, stream));
  must_succeed(cudaStreamSynchronize(stream));
  must_succeed(cudaGraphExecDestroy(executable));
  return {log.entries, log.entries + log.count};
}

// Two streams and the events of a fork and a join between them.
class Branches : public ::testing::TestWithParam<emulator::Streams> {
 protected:
  Branches() {
    emulator::set_streams(GetParam());
    must_succeed(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking));
    must_succeed(cudaStreamCreateWithFlags(&branch_, cudaStreamNonBlocking));
    must_succeed(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  ~Branches() override {
    cudaEventDestroy(event_);
    cudaStreamDestroy(branch_);
    cudaStreamDestroy(main_);
    cudaGetLastError();
    emulator::set_streams(emulator::Streams::kAtOnce);
  }
  void begin() {
    must_succeed(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
    note(main_, log_, 1);
    must_succeed(cudaEventRecord(event_, main_));
    must_succeed(cudaStreamWaitEvent(branch_, event_));
    note(branch_, log_, 21);
    note(branch_, log_, 22);
    note(main_, log_, 31);
    note(main_, log_, 32);
  }
  void join() {
    must_succeed(cudaEventRecord(event_, branch_));
    must_succeed(cudaStreamWaitEvent(main_, event_));
  }

  cudaStream_t main_ = nullptr, branch_ = nullptr;
  cudaEvent_t event_ = nullptr;
  Log log_;
};

TEST_P(Branches, AreDoneInAnOrderThatTheirDependenciesAllow) {
  begin();
  join();
  note(main_, log_, 4);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
  const std::vector<emulator::GraphWork> work = emulator::work_of(graph);
  ASSERT_EQ(work.size(), 6U);
  EXPECT_THAT(work[0].after, ElementsAre());
  EXPECT_THAT(work[1].after, ElementsAre(0)) << "the fork";
  EXPECT_THAT(work[2].after, ElementsAre(1));
  EXPECT_THAT(work[3].after, ElementsAre(0)) << "beside the branch";
  EXPECT_THAT(work[5].after, ElementsAre(4, 2)) << "the join";
  EXPECT_TRUE(work[1].of_branch && work[2].of_branch && !work[3].of_branch && !work[5].of_branch);
  const std::vector<int> found = log_of(graph, main_, log_);
  if (GetParam() == emulator::Streams::kAtOnce) {
    EXPECT_THAT(found, ElementsAre(1, 21, 31, 22, 32, 4)) << "by turns";
  } else if (GetParam() == emulator::Streams::kLate) {
    EXPECT_THAT(found, ElementsAre(1, 31, 32, 21, 22, 4));
  } else {
    EXPECT_THAT(found, ElementsAre(1, 21, 22, 31, 32, 4));
  }
  cudaGraphDestroy(graph);
  EXPECT_EQ(cudaStreamSynchronize(branch_), cudaSuccess) << "of use outside the capture again";
}

TEST_P(Branches, AForgottenJoinIsAnError) {
  begin();
  note(main_, log_, 4);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  cudaGetLastError();
  note(branch_, log_, 5);
  EXPECT_EQ(cudaStreamSynchronize(branch_), cudaSuccess);
  EXPECT_EQ(log_.count, 1);
}

TEST_P(Branches, AJoinBeforeTheBranchEndsIsAForgottenOne) {
  begin();
  join();
  note(branch_, log_, 23);
  note(main_, log_, 4);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureUnjoined);
}

TEST_P(Branches, ACaptureWaitsForNothingOutside) {
  note(branch_, log_, 9);
  must_succeed(cudaEventRecord(event_, branch_));
  must_succeed(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaStreamWaitEvent(main_, event_), cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_P(Branches, OnlyTheStreamOfACaptureEndsIt) {
  begin();
  join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(branch_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(graph, nullptr);
  ASSERT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
  EXPECT_EQ(emulator::work_of(graph).size(), 5U);
  cudaGraphDestroy(graph);
}

TEST_P(Branches, AnEventOfACaptureIsOfUseOutsideAgain) {
  begin();
  join();
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  note(branch_, log_, 5);
  must_succeed(cudaEventRecord(event_, branch_));
  must_succeed(cudaStreamWaitEvent(main_, event_));
  note(main_, log_, 6);
  must_succeed(cudaStreamSynchronize(main_));
  EXPECT_EQ(std::vector<int>(log_.entries, log_.entries + log_.count), (std::vector<int>{5, 6}));
}

TEST_P(Branches, TwoCapturesDoNotMeet) {
  begin();
  join();
  cudaStream_t other = nullptr;
  must_succeed(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  std::thread([&] {
    must_succeed(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
    EXPECT_EQ(cudaStreamWaitEvent(other, event_), cudaErrorStreamCaptureMerge);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureInvalidated);
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(main_, &graph), cudaSuccess) << "the other one is as it was";
  cudaGraphDestroy(graph);
  must_succeed(cudaStreamDestroy(other));
}

// ---- The device's ------------------------------------------------------------------------------

__global__ void fill(int* values, int what) { values[threadIdx.x] = what; }
__global__ void copy(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x]; }

// Fills the workspace, then reads it.
void use_workspace(Device& device, int what, std::vector<int>& result) {
  constexpr std::int64_t kBytes = 8 * std::int64_t{sizeof(int)};
  launch(device.stream(), {.threads = 8}, fill, static_cast<int*>(device.scratch(kBytes)), what);
  launch(device.stream(), {.threads = 8}, copy, static_cast<int*>(device.scratch(kBytes)),
         result.data());
}

TEST_P(Branches, OfADeviceHaveAWorkspaceOfTheirOwn) {
  ::setenv("FETTLE_CUDA_BRANCHES", "1", 1);
  const auto device = std::move(Device::open()).value();
  ::unsetenv("FETTLE_CUDA_BRANCHES");
  ASSERT_TRUE(device->reserve_scratch(1000).ok());
  ASSERT_TRUE(device->reserve_branch_scratch(1000).ok());
  for (const bool captured : {true, false}) {
    std::vector<int> branch(8), beside(8), behind(8);
    cudaStream_t stream = device->stream();
    if (captured) {
      must_succeed(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    }
    device->run_beside([&] { use_workspace(*device, 1, branch); },
                       [&] { use_workspace(*device, 2, beside); });
    EXPECT_EQ(device->stream(), stream);
    launch(stream, {.threads = 8}, copy, static_cast<const int*>(branch.data()), behind.data());
    if (captured) {
      cudaGraph_t graph = nullptr;
      must_succeed(cudaStreamEndCapture(stream, &graph));
      EXPECT_EQ(emulator::work_of(graph)[4].after.size(), 2U) << "what is behind waits for both";
      log_of(graph, stream, log_);
      cudaGraphDestroy(graph);
    }
    must_succeed(cudaStreamSynchronize(stream));
    EXPECT_EQ(branch, std::vector<int>(8, 1));
    EXPECT_EQ(beside, std::vector<int>(8, 2));
    EXPECT_EQ(behind, branch);
  }
}

INSTANTIATE_TEST_SUITE_P(, Branches, ::testing::ValuesIn(emulator::kEveryStreams),
                         [](const auto& instance) { return emulator::name_of(instance.param); });

}  // namespace
}  // namespace fettle::kernels::cuda
