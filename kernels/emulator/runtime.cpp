// The host's side of the emulator: the device's description, memory, streams, events and graphs.
// What is shared between threads is behind one lock; work itself runs outside it.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/emulator/cuda_runtime.h"
#include "kernels/emulator/emulator.h"
#include "kernels/emulator/streams.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's names.
struct Captured {
  std::function<void()> work;
  cudaEvent_t event;  // or that this one is recorded
};
struct CUstream_st {
  fettle::kernels::emulator::WorkQueue queue;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::vector<Captured> captured;
};
struct CUevent_st {
  std::shared_ptr<fettle::kernels::emulator::Mark> mark;  // of the newest record, if any
  bool timed = true;
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

// What all threads of the process share.
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
// The stream that this thread captures, if any: then calls that would wait or allocate are errors.
thread_local cudaStream_t capturing = nullptr;

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// For calls that a capture does not allow: they spoil it.
cudaError_t refuse_in_capture() {
  if (capturing == nullptr || capturing->mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  capturing->capture = cudaStreamCaptureStatusInvalidated;
  return remember(cudaErrorStreamCaptureUnsupported);
}

WorkQueue& queue_of(cudaStream_t stream) {
  return stream == nullptr ? default_queue() : stream->queue;
}

bool is_capturing(cudaStream_t stream) {
  return stream != nullptr && stream->capture != cudaStreamCaptureStatusNone;
}

cudaError_t enqueue(cudaStream_t stream, Work work, cudaEvent_t event = nullptr) {
  if (stream == nullptr && capturing != nullptr) {
    capturing->capture = cudaStreamCaptureStatusInvalidated;
    return remember(cudaErrorStreamCaptureImplicit);
  }
  if (stream != nullptr && stream->capture == cudaStreamCaptureStatusInvalidated) {
    return remember(cudaErrorStreamCaptureInvalidated);
  }
  if (stream != nullptr && stream->capture == cudaStreamCaptureStatusActive) {
    stream->captured.push_back({std::move(work), event});
    return cudaSuccess;
  }
  if (event != nullptr) {
    event->mark = queue_of(stream).add_mark();
  } else {
    queue_of(stream).add(std::move(work));
  }
  return cudaSuccess;
}

// Waits for the stream; without one for everything.
cudaError_t wait_for(cudaStream_t stream) {
  if (is_capturing(stream)) {
    stream->capture = cudaStreamCaptureStatusInvalidated;
    return remember(cudaErrorStreamCaptureUnsupported);
  }
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (stream == nullptr) {
    finish_all_queues();
  } else {
    stream->queue.finish();
  }
  return cudaSuccess;
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
using fettle::kernels::emulator::Lock;
using fettle::kernels::emulator::machine;
using fettle::kernels::emulator::queue_of;
using fettle::kernels::emulator::refuse_in_capture;
using fettle::kernels::emulator::remember;
using fettle::kernels::emulator::shared;
using fettle::kernels::emulator::used_memory;
using fettle::kernels::emulator::wait_for;
using fettle::kernels::emulator::Work;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
// CUDA's own words.
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
  // Exactly as large as asked for, so that the address sanitizer sees an access beyond.
  void* made = nullptr;
  if (posix_memalign(&made, kAlignment, bytes) != 0) return remember(cudaErrorMemoryAllocation);
  std::memset(made, 0xFF, bytes);  // as uninitialised memory may look: NaN
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
// Within a capture both are enqueued already: it is of one stream.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->mark != nullptr && !is_capturing(stream)) queue_of(stream).add_wait(event->mark);
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
  if (is_capturing(stream)) return enqueue(stream, [] {});  // CUDA has no use for it outside
  return enqueue(stream, {}, event);
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
  stream->capture = cudaStreamCaptureStatusActive;
  stream->mode = mode;
  capturing = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  using fettle::kernels::emulator::capturing;
  *graph = nullptr;
  if (stream == nullptr || stream != capturing) return remember(cudaErrorStreamCaptureUnmatched);
  capturing = nullptr;
  std::vector<Captured> captured = std::exchange(stream->captured, {});
  const cudaStreamCaptureStatus status =
      std::exchange(stream->capture, cudaStreamCaptureStatusNone);
  if (status == cudaStreamCaptureStatusInvalidated) {
    return remember(cudaErrorStreamCaptureInvalidated);
  }
  *graph = new CUgraph_st{std::move(captured)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream == nullptr ? cudaStreamCaptureStatusNone : stream->capture;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const auto& [work, event] : executable->work) {
    if (const cudaError_t error = enqueue(stream, work, event); error != cudaSuccess) return error;
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
