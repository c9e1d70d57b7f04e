// Makes a backend's objects on its stream: graphs, events, readbacks and timelines (backend.h,
// profiling.h). Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

// Captures the work that `work` enqueues on `stream` as a CUDA graph, without doing it. Kernel
// arguments are fixed; each launch reads again the memory they point to. `work` enqueues on no
// other stream, allocates nothing and waits for nothing: CUDA would invalidate the capture, and
// this function abort.
std::unique_ptr<Graph> capture(cudaStream_t stream, const std::function<void()>& work);

// Makes an event by which other streams wait for this one, and it for them. Recorded into a graph
// it is an external event (cudaEventRecordExternal): it is reached in the middle of the graph, and
// another stream may begin there.
std::unique_ptr<kernels::Event> make_event(cudaStream_t stream);

// For values of `bytes`: results of a step reach the host while the GPU does the next step. Never
// captured: every copy has its own place.
std::unique_ptr<Readback> make_readback(cudaStream_t stream, std::int64_t bytes);

// For a stream on which all enqueued work is done. A mark costs the host a microsecond or two, and
// delays no work on the GPU.
std::unique_ptr<Timeline> make_timeline(cudaStream_t stream);

}  // namespace fettle::kernels::cuda
