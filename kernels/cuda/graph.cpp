#include "kernels/cuda/graph.h"

#include "kernels/cuda/errors.h"

namespace fettle::kernels::cuda {
namespace {

class StreamGraph final : public Graph {
 public:
  StreamGraph(cudaStream_t stream, cudaGraphExec_t executable)
      : stream_(stream), executable_(executable) {}
  ~StreamGraph() override { cudaGraphExecDestroy(executable_); }
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;

  void launch() override { must_succeed(cudaGraphLaunch(executable_, stream_)); }

 private:
  const cudaStream_t stream_;
  const cudaGraphExec_t executable_;
};

}  // namespace

std::unique_ptr<Graph> capture(cudaStream_t stream, const std::function<void()>& work) {
  // Other threads may allocate and wait as they like meanwhile.
  must_succeed(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  cudaGraph_t graph = nullptr;
  must_succeed(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  must_succeed(cudaGraphInstantiate(&executable, graph, 0));
  must_succeed(cudaGraphDestroy(graph));
  return std::make_unique<StreamGraph>(stream, executable);
}

}  // namespace fettle::kernels::cuda
