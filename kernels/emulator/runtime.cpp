// The host's side of the emulator: the device's description, memory, streams, events and graphs.
// One lock guards the state shared between threads; work itself runs outside it.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/streams.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
struct Captured {
  std::function<void()> work;
  cudaEvent_t event;               // or the record of this event
  std::vector<std::size_t> after;  // numbers of the work that it waits for
  bool of_branch;                  // from another stream than the one that began the capture
};
// The capture of a stream and of the streams that joined it through events.
struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  bool spoilt = false;
  std::vector<Captured> work;
  std::vector<cudaStream_t> streams;
};
struct CUstream_st {
  fettle::kernels::emulator::WorkQueue queue;
  std::shared_ptr<Capture> capture;  // nullptr: not capturing
  std::vector<std::size_t> last;     // captured work that this stream's next work waits for
};
struct CUevent_st {
  std::shared_ptr<fettle::kernels::emulator::Mark> mark;  // of the newest record, if any
  bool timed = true;
  std::shared_ptr<Capture> capture = nullptr;  // the capture of the newest record,
  std::vector<std::size_t> last = {};          // and the work before it
};
struct CUgraph_st {
  std::vector<Captured> work;
};
struct CUgraphExec_st {
  std::vector<Captured> work;
};
// NOLINTEND(readability-identifier-naming)

namespace fettle::kernels::emulator {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

// FETTLE_EMULATOR_DEVICES=0: a machine without a GPU, for tests of whole programs.
Machine first_machine() {
  Machine machine;
  const char* const devices = std::getenv("FETTLE_EMULATOR_DEVICES");
  if (devices != nullptr && std::strcmp(devices, "0") == 0) {
    machine.devices = 0;
    machine.count_error = cudaErrorNoDevice;
  }
  return machine;
}

// State shared by all threads of the process.
struct Shared {
  std::recursive_mutex lock;
  Machine machine = first_machine();
  std::map<void*, std::size_t> device_memory;
  std::map<const void*, std::size_t> shared_limits;  // by kernel
};

// Never destroyed: static objects may own emulated memory.
Shared& shared() {
  static Shared& the_one = *new Shared();
  return the_one;
}

thread_local cudaError_t last_error = cudaSuccess;
// This thread's capture, if any: calls that would wait or allocate are errors then.
thread_local std::shared_ptr<Capture> capturing = nullptr;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// Refuses calls that a capture forbids; they spoil it.
cudaError_t refuse_in_capture() {
  if (capturing == nullptr || capturing->mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  capturing->spoilt = true;
  return remember(cudaErrorStreamCaptureUnsupported);
}

WorkQueue& queue_of(cudaStream_t stream) {
  return stream == nullptr ? default_queue() : stream->queue;
}

bool is_capturing(cudaStream_t stream) { return stream != nullptr && stream->capture != nullptr; }

cudaError_t spoil(Capture& capture, cudaError_t error) {
  capture.spoilt = true;
  return remember(error);
}

// Adds `work` to the stream, or, given an event, its record (then `work` is empty). A stream that
// is being captured only notes it, and each launch of the graph does it. As on a GPU, a thread
// spoils its capture by using the default stream, which would wait for the captured stream.
cudaError_t enqueue(cudaStream_t stream, Work work, cudaEvent_t event = nullptr) {
  if (stream == nullptr && capturing != nullptr) {
    return spoil(*capturing, cudaErrorStreamCaptureImplicit);
  }
  if (is_capturing(stream)) {
    Capture& capture = *stream->capture;
    if (capture.spoilt) return remember(cudaErrorStreamCaptureInvalidated);
    capture.work.push_back({std::move(work), event, stream->last, stream != capture.origin});
    stream->last = {capture.work.size() - 1};
    return cudaSuccess;
  }
  if (event != nullptr) {
    event->capture = nullptr;
    event->mark = queue_of(stream).add_mark();
  } else {
    queue_of(stream).add(std::move(work));
  }
  return cudaSuccess;
}

// Waits for the stream, or for everything without one.
cudaError_t wait_for(cudaStream_t stream) {
  if (is_capturing(stream)) return spoil(*stream->capture, cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (stream == nullptr) {
    finish_all_queues();
  } else {
    stream->queue.finish();
  }
  return cudaSuccess;
}

// Adds this stream to the capture unless it is part of it.
cudaError_t wait_in_capture(cudaStream_t stream, const CUevent_st& event) {
  if (event.capture == nullptr) return spoil(*stream->capture, cudaErrorStreamCaptureIsolation);
  if (!is_capturing(stream)) {
    stream->capture = event.capture;
    stream->capture->streams.push_back(stream);
  } else if (stream->capture != event.capture) {
    return spoil(*stream->capture, cudaErrorStreamCaptureMerge);
  }
  stream->last.insert(stream->last.end(), event.last.begin(), event.last.end());
  return cudaSuccess;
}

// Whether the origin waits for all captured work.
bool is_joined(const Capture& capture) {
  std::vector<bool> awaited(capture.work.size());
  std::vector<std::size_t> open = capture.origin->last;
  while (!open.empty()) {
    const std::size_t number = open.back();
    open.pop_back();
    if (awaited[number]) continue;
    awaited[number] = true;
    const std::vector<std::size_t>& after = capture.work[number].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return std::find(awaited.begin(), awaited.end(), false) == awaited.end();
}

// Returns the numbers of a graph's work in an order that its dependencies allow. `streams` chooses
// among several: branches by turns with the rest, as late as possible, or as early.
std::vector<std::size_t> order_of(const std::vector<Captured>& work, Streams streams) {
  std::vector<std::size_t> ordered;
  std::vector<bool> done(work.size());
  const auto is_ready = [&](std::size_t number) {
    return !done[number] && std::all_of(work[number].after.begin(), work[number].after.end(),
                                        [&](std::size_t before) { return done[before]; });
  };
  bool prefers_branch = streams == Streams::kOthersFirst;
  while (ordered.size() < work.size()) {
    std::optional<std::size_t> next;
    for (std::size_t number = 0; number < work.size(); ++number) {
      if (!is_ready(number)) continue;
      if (!next) next = number;
      if (work[number].of_branch != prefers_branch) continue;
      next = number;
      break;
    }
    CHECK(next.has_value(), "no work waits for itself");
    done[*next] = true;
    ordered.push_back(*next);
    if (streams == Streams::kAtOnce) prefers_branch = !work[*next].of_branch;
  }
  return ordered;
}

std::size_t used_memory() {
  std::size_t used = 0;
  for (const auto& [memory, bytes] : shared().device_memory) used += bytes;
  return used;
}

}  // namespace

void order_slow(cudaStream_t stream, SlowWork work) {
  CHECK(!is_capturing(stream), "a communicator is not emulated within a graph");
  queue_of(stream).add_slow(std::move(work));
}

Machine set_machine(const Machine& machine) {
  const Lock lock(shared().lock);
  return std::exchange(shared().machine, machine);
}

Machine machine() {
  const Lock lock(shared().lock);
  return shared().machine;
}

std::vector<GraphWork> work_of(cudaGraph_t graph) {
  std::vector<GraphWork> work;
  for (const Captured& one : graph->work) work.push_back({one.after, one.of_branch});
  return work;
}

cudaError_t enqueue_launch(cudaStream_t stream, const void* kernel, Launch launch) {
  std::size_t limit = kSharedBytes;
  {
    const Lock lock(shared().lock);
    const auto raised = shared().shared_limits.find(kernel);
    if (raised != shared().shared_limits.end()) limit = raised->second;
  }
  const auto refused = static_cast<cudaError_t>(check_shape(launch, limit));
  if (refused != cudaSuccess) return remember(refused);
  return enqueue(stream, [launch = std::move(launch)] { run(launch); });
}

}  // namespace fettle::kernels::emulator

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
namespace {
using fettle::kernels::emulator::enqueue;
using fettle::kernels::emulator::finish;
using fettle::kernels::emulator::finish_all_queues;
using fettle::kernels::emulator::is_capturing;
using fettle::kernels::emulator::is_joined;
using fettle::kernels::emulator::Lock;
using fettle::kernels::emulator::machine;
using fettle::kernels::emulator::order_of;
using fettle::kernels::emulator::queue_of;
using fettle::kernels::emulator::refuse_in_capture;
using fettle::kernels::emulator::remember;
using fettle::kernels::emulator::shared;
using fettle::kernels::emulator::streams_in_use;
using fettle::kernels::emulator::used_memory;
using fettle::kernels::emulator::wait_for;
using fettle::kernels::emulator::wait_in_capture;
using fettle::kernels::emulator::Work;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
// CUDA's own messages.
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "attempt to merge two separate captures"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

const ErrorText& text_of(cudaError_t error) {
  static constexpr ErrorText kUnknown = {cudaSuccess, "unrecognized error code",
                                         "unrecognized error code"};
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known;
  }
  return kUnknown;
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  // Exactly the requested size, so that the address sanitizer sees an access beyond it.
  void* made = nullptr;
  if (posix_memalign(&made, kAlignment, bytes) != 0) return remember(cudaErrorMemoryAllocation);
  std::memset(made, 0xFF, bytes);  // like uninitialised memory: NaN
  *memory = made;
  shared().device_memory[made] = padded;
  return cudaSuccess;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
cudaError_t cudaGetLastError() {
  return std::exchange(fettle::kernels::emulator::last_error, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return fettle::kernels::emulator::last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = machine().devices;
  return remember(static_cast<cudaError_t>(machine().count_error));
}
cudaError_t cudaSetDevice(int device) {
  return device >= 0 && device < machine().devices ? cudaSuccess : remember(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= machine().devices) return remember(cudaErrorInvalidDevice);
  if (const int error = machine().properties_error; error != 0) {
    return remember(static_cast<cudaError_t>(error));
  }
  *properties = {};
  std::strncpy(properties->name, "emulated GPU", sizeof properties->name - 1);
  properties->uuid.bytes[0] =
      static_cast<char>(fettle::kernels::emulator::device_in_use() + device);
  properties->totalGlobalMem = machine().memory;
  properties->sharedMemPerBlock = fettle::kernels::emulator::kSharedBytes;
  properties->sharedMemPerBlockOptin = fettle::kernels::emulator::kSharedBytesOptIn;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  properties->major = machine().major;
  properties->minor = machine().minor;
  properties->multiProcessorCount = machine().multiprocessors;
  properties->integrated = 1;  // its memory is the host's
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return cudaSuccess;
  }
  return remember(cudaErrorInvalidValue);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = machine().driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return wait_for(nullptr); }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  const Lock lock(shared().lock);
  if (bytes > shared().machine.memory - used_memory()) return remember(cudaErrorMemoryAllocation);
  return allocate(memory, bytes);
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  finish_all_queues();  // cudaFree waits for the device
  const Lock lock(shared().lock);
  if (shared().device_memory.erase(memory) == 0) return remember(cudaErrorInvalidValue);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  return posix_memalign(memory, 4096, bytes) == 0 ? cudaSuccess
                                                  : remember(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* memory) {
  finish_all_queues();
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock(shared().lock);
  *total = shared().machine.memory;
  *free = *total - used_memory();
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind); error != cudaSuccess) {
    return error;
  }
  return wait_for(nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (to == nullptr || from == nullptr) return remember(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    if (bytes != 0) std::memcpy(to, from, bytes);
  });
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (memory == nullptr) return remember(cudaErrorInvalidValue);
  return enqueue(stream, [=] {
    if (bytes != 0) std::memset(memory, value, bytes);
  });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new CUstream_st();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  finish_all_queues();
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (is_capturing(stream) || event->capture != nullptr) return wait_in_capture(stream, *event);
  if (event->mark != nullptr) queue_of(stream).add_wait(event->mark);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st{nullptr, (flags & cudaEventDisableTiming) == 0};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  finish_all_queues();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!is_capturing(stream)) return enqueue(stream, {}, event);
  event->mark = nullptr;
  event->capture = stream->capture;
  event->last = stream->last;
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  if (!is_capturing(stream)) return remember(cudaErrorInvalidValue);
  return enqueue(stream, {}, event);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (event->mark != nullptr) finish(*event->mark);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->mark == nullptr || event->mark->done) return cudaSuccess;
  return remember(cudaErrorNotReady);  // as some versions do
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  for (cudaEvent_t event : {from, to}) {
    if (!event->timed || event->mark == nullptr) return remember(cudaErrorInvalidResourceHandle);
    if (!event->mark->done) return remember(cudaErrorNotReady);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->mark->when - from->mark->when).count();
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  if (value < 0 || static_cast<std::size_t>(value) > fettle::kernels::emulator::kSharedBytesOptIn) {
    return remember(cudaErrorInvalidValue);
  }
  const Lock lock(shared().lock);
  shared().shared_limits[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  using fettle::kernels::emulator::capturing;
  if (stream == nullptr || capturing != nullptr) {
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  capturing = std::make_shared<Capture>(Capture{stream, mode, false, {}, {stream}});
  stream->capture = capturing;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  using fettle::kernels::emulator::capturing;
  *graph = nullptr;
  if (stream == nullptr || capturing == nullptr || stream != capturing->origin) {
    return remember(cudaErrorStreamCaptureUnmatched);
  }
  const std::shared_ptr<Capture> ended = std::exchange(capturing, nullptr);
  const bool joined = is_joined(*ended);
  for (cudaStream_t one : ended->streams) {
    one->capture = nullptr;
    one->last = {};
  }
  if (ended->spoilt) return remember(cudaErrorStreamCaptureInvalidated);
  if (!joined) return remember(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(ended->work)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = !is_capturing(stream)     ? cudaStreamCaptureStatusNone
            : stream->capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const std::size_t number : order_of(executable->work, streams_in_use())) {
    const Captured& one = executable->work[number];
    if (const cudaError_t error = enqueue(stream, one.work, one.event); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
