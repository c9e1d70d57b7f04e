// Plans of cuDNN (9.19, by its graph API) for convolutions and attention. The only header that
// other files need for cuDNN: cudnn_frontend.h costs 20 to 50 seconds of compile time and stays in
// cudnn.cpp.
//
// A plan is made for one shape and number of samples, either for the present device or for a
// description of a device, so that plans can be checked without a GPU. Only deterministic engines
// are used (except for kBackwardFast), and for fp32 only engines that multiply and sum in fp32,
// unless TF32 is allowed: no Winograd and no FFT, which give 1e-7 where a sum is 0. The first few
// plans that the heuristics rank are timed (plan_chooser.h). Running a plan allocates nothing on
// the device and can be captured in a CUDA graph.
//
// cudnn.cpp catches the exceptions of cuDNN's frontend and reports them like the errors it returns.
//
// Host code; compiled only with CUDA. Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/libraries/library_plans.h"

struct cudnnContext;  // cudnnHandle_t
namespace cudnn_frontend {
class DeviceProperties;
namespace graph {
class Graph;
}
}  // namespace cudnn_frontend

namespace fettle::kernels::cuda {

class Cudnn;

// The tensors of a plan.
enum class Role : std::int64_t {
  kInput = 1,
  kWeights,
  kBias,  // in the plan's type
  kOutput,
  kQueries,
  kKeys,
  kValues,
  kStatistics,  // log-sum-exp of each query's scores: [samples, heads, length], fp32
  kOutputGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient,
};

// Copies share the plan. One plan may be run for several layers in turn, on one stream.
class CudnnPlan {
 public:
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // The engine and its settings, in cuDNN's notation.
  const std::string& name() const { return name_; }

  // Microseconds of one run, if it was timed in this process or an earlier one.
  std::optional<double> microseconds() const { return microseconds_; }

  using Pointers = std::unordered_map<std::int64_t, void*>;
  static std::pair<std::int64_t, void*> at(Role role, const void* pointer) {
    return {static_cast<std::int64_t>(role), const_cast<void*>(pointer)};
  }
  // `workspace`: workspace_bytes() bytes, 256-byte aligned.
  void run(const Device& device, const Cudnn& cudnn, Pointers pointers, void* workspace) const;

 private:
  Status enqueue(const Device& device, const Cudnn& cudnn, Pointers& pointers,
                 void* workspace) const;

  friend class GraphBuilder;
  std::shared_ptr<cudnn_frontend::graph::Graph> graph_;
  std::int64_t index_ = 0;  // of the engine, within the graph
  std::int64_t workspace_bytes_ = 0;
  std::string name_;
  std::optional<double> microseconds_;
};

// The target of plans: the current device (device.library<Cudnn>()), or a description.
class Cudnn {
 public:
  // Opens the current device. Errors: cuDNN's message if it cannot start.
  static Result<std::unique_ptr<Cudnn>> open();
  // A device described in cuDNN's JSON (DeviceProperties::serialize), which need not exist. Plans
  // for it cannot be run. Engines that are compiled at run time, and attention, cannot be planned
  // without a driver.
  static Result<std::unique_ptr<Cudnn>> described(std::string_view device_json);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  cudnnContext* handle() const { return handle_; }
  const std::shared_ptr<cudnn_frontend::DeviceProperties>& properties() const {
    return properties_;
  }

  // All properties on which a plan depends, as numbers.
  using Key = std::vector<std::int64_t>;
  // Returns make()'s plan or error, made once for a key and kept: a network has many layers of one
  // shape, and heuristics and compilers take time for each. Beyond kMostKept: made each time.
  Result<CudnnPlan> plan_once(const Key& key, const std::function<Result<CudnnPlan>()>& make) const;
  std::size_t plans_kept() const { return plans_.size(); }

 private:
  Cudnn() = default;
  static constexpr std::size_t kMostKept = 1000;

  cudnnContext* handle_ = nullptr;  // or
  std::shared_ptr<cudnn_frontend::DeviceProperties> properties_;
  mutable std::map<Key, Result<CudnnPlan>> plans_;
};

// How plans are tried before one is chosen.
struct TryOn {
  // nullptr: plans are not run, and the first that can be built is chosen, as while a device
  // measures.
  LibraryPlans* plans = nullptr;
  // Chooses by time (plan_chooser.h); otherwise the first plan that runs.
  bool timed = false;

  bool runs() const { return plans != nullptr && !plans->device().is_measuring(); }
};

enum class ConvPass : std::uint8_t {
  kForward,       // kInput, kWeights -> kOutput
  kForwardFused,  // the same with kBias, then max(0, .) if the shape has a ReLU
  kInput,         // kOutput (its gradient), kWeights -> kInput (its gradient)
  kWeights,       // kOutput (its gradient), kInput -> kWeights (their gradient, in the plan's type)
  kWeightsFloat32,  // the same, the gradient in fp32
};

// Whether cuDNN's message names a cause unrelated to the shape: for example, an engine that cannot
// be built because NVRTC is missing also "has no plan".
bool names_another_cause(std::string_view message);

// Errors: kNotFound if cuDNN has no plan, with its message and the shape; other errors do not
// concern the shape.
Result<CudnnPlan> plan_conv(const Cudnn& cudnn, const ConvShape& shape, const PlanOptions& plan,
                            std::int64_t samples, ConvPass pass, TryOn on = {});

enum class AttentionPass : std::uint8_t {
  kForward,       // kQueries, kKeys, kValues -> kOutput, kStatistics
  kBackward,      // these and kOutputGradient -> kQueryGradient, kKeyGradient, kValueGradient
  kBackwardFast,  // the same, not deterministic
};

// Causal, with queries, keys and values side by side (AttentionOp in operations.h). Errors as
// above.
Result<CudnnPlan> plan_attention(const Cudnn& cudnn, const AttentionShape& shape, DataType type,
                                 std::int64_t samples, AttentionPass pass, TryOn on = {});

}  // namespace fettle::kernels::cuda
