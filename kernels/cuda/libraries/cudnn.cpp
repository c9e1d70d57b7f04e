#include "kernels/cuda/libraries/cudnn.h"

// Plans are not written to files, and without this the header takes three times as long.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/fall_back.h"
#include "kernels/cuda/libraries/plan_timer.h"
#include "kernels/shapes.h"

namespace fettle::kernels::cuda {
namespace {

namespace frontend = cudnn_frontend;
using frontend::graph::Graph;
using frontend::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

frontend::DataType_t library_type(DataType type) {
  if (type == DataType::kBFloat16) return frontend::DataType_t::BFLOAT16;
  return type == DataType::kFloat16 ? frontend::DataType_t::HALF : frontend::DataType_t::FLOAT;
}

// cuDNN writes pages about every engine that it tried.
std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

// Returns the result of `call`, or an error with the exception that the frontend threw.
template <class Call>
auto guarded(const std::string& what, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    const std::string words = first_line(thrown.what());
    // Some versions throw this for a graph that they do not support.
    if (words.find("No suitable implementation") != std::string::npos) {
      return not_found("cuDNN has no plan for " + what + ": its frontend threw \"" + words + "\"");
    }
    return io_error("cuDNN's frontend threw \"" + words + "\" for " + what);
  }
}

// Whether cuDNN merely has no plan for a graph.
bool is_unsupported(frontend::error_object error) {
  using frontend::error_code_t;
  const error_code_t code = error.get_code();
  if (names_another_cause(error.get_message())) return false;
  if (code == error_code_t::CUDNN_BACKEND_API_FAILED) {
    return error.get_message().find("NOT_SUPPORTED") != std::string::npos;
  }
  return code == error_code_t::GRAPH_NOT_SUPPORTED ||
         code == error_code_t::HEURISTIC_QUERY_FAILED ||
         code == error_code_t::GRAPH_EXECUTION_PLAN_CREATION_FAILED;
}

std::int64_t bytes_of(const Tensor_attributes& tensor, DataType type) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.get_dim().size(); ++i) {
    last += (tensor.get_dim()[i] - 1) * tensor.get_stride()[i];
  }
  return (last + 1) * size_of(type);  // `last`: offset of the last element
}

}  // namespace

bool names_another_cause(std::string_view message) {
  constexpr std::string_view kOther[] = {"RUNTIME_PREREQUISITE_MISSING",
                                         "INCOMPATIBLE_CUDART",
                                         "SUBLIBRARY",
                                         "ALLOC_FAILED",
                                         "INTERNAL_ERROR",
                                         "NOT_INITIALIZED",
                                         "EXECUTION_FAILED"};
  return std::any_of(std::begin(kOther), std::end(kOther), [&](std::string_view other) {
    return message.find(other) != std::string_view::npos;
  });
}

// Builds one graph, step by step, and keeps cuDNN's first error.
class GraphBuilder {
 public:
  GraphBuilder(const Cudnn& cudnn, DataType type, std::string what)
      : cudnn_(cudnn), what_(std::move(what)), graph_(std::make_shared<Graph>()) {
    graph_->set_io_data_type(library_type(type))
        .set_intermediate_data_type(frontend::DataType_t::FLOAT)
        .set_compute_data_type(frontend::DataType_t::FLOAT);
    if (cudnn.properties() != nullptr) graph_->set_device_properties(cudnn.properties());
  }

  Graph& graph() { return *graph_; }

  static Tensor_attributes describe(Role role, std::vector<std::int64_t> sizes,
                                    std::vector<std::int64_t> strides) {
    Tensor_attributes tensor;
    tensor.set_dim(std::move(sizes)).set_stride(std::move(strides));
    tensor.set_uid(static_cast<std::int64_t>(role));
    return tensor;
  }

  // cuDNN orders sizes as N, C, H, W, and expresses by strides that channels come last.
  static Tensor_attributes describe_image(Role role, std::int64_t samples,
                                          const ImageShape& image) {
    return describe(role, {samples, image.channels, image.height, image.width},
                    {image.size(), 1, image.width * image.channels, image.channels});
  }

  // Makes a tensor a result with the sizes and strides of `like`.
  static void make_output(const Tensor& tensor, const Tensor_attributes& like) {
    tensor->set_output(true).set_uid(like.get_uid());
    tensor->set_dim(like.get_dim()).set_stride(like.get_stride());
  }

  // Notes the bytes of a tensor of the graph, for timing.
  void add_operand(const Tensor_attributes& tensor, DataType type) {
    operands_.emplace_back(tensor.get_uid(), bytes_of(tensor, type));
  }

  // Builds a plan whose engine has none of the `barred` properties: the fastest of the first few,
  // or the first of cuDNN's heuristics that runs, or that can be built (TryOn). `key`: in the file
  // of timed plans.
  Result<CudnnPlan> build(const std::vector<frontend::NumericalNote_t>& barred,
                          const std::string& key, TryOn on) {
    FETTLE_TRY(status_of(graph_->validate()));
    FETTLE_TRY(status_of(graph_->build_operation_graph(cudnn_.handle())));
    FETTLE_TRY(status_of(
        graph_->create_execution_plans({frontend::HeurMode_t::A, frontend::HeurMode_t::FALLBACK})));
    graph_->deselect_numeric_notes(barred);
    if (on.timed) {
      if (const TimedPlan* known = on.plans->chooser().known(key)) {
        if (auto plan = build_named(known->plan)) {
          plan->microseconds_ = known->microseconds;
          return *plan;
        }
      }
      if (on.runs() && on.plans->chooser().times()) return build_fastest(key, *on.plans);
    }
    return build_first(on);
  }

 private:
  // Builds the engine at this index; nullopt if it is barred or cannot be built.
  std::optional<CudnnPlan> plan_at(std::int64_t index) {
    CudnnPlan plan;
    if (graph_->build_plan_at_index(index).is_bad()) return std::nullopt;
    if (graph_->get_workspace_size_plan_at_index(index, plan.workspace_bytes_).is_bad() ||
        graph_->get_plan_name_at_index(index, plan.name_).is_bad()) {
      return std::nullopt;
    }
    plan.graph_ = graph_;
    plan.index_ = index;
    return plan;
  }

  std::optional<CudnnPlan> build_named(const std::string& name) {
    for (std::int64_t i = 0; i < graph_->get_execution_plan_count(); ++i) {
      std::string found;
      if (graph_->get_plan_name_at_index(i, found).is_good() && found == name) return plan_at(i);
    }
    return std::nullopt;
  }

  // Returns the first plan that runs; if plans are not run, the first that can be built.
  Result<CudnnPlan> build_first(TryOn on) {
    std::optional<CudnnPlan> plan;
    bool built = false;  // any
    const auto count = static_cast<std::size_t>(graph_->get_execution_plan_count());
    const Result<std::size_t> first = first_that_runs(count, [&](std::size_t i) -> Status {
      plan = plan_at(static_cast<std::int64_t>(i));
      if (!plan) return not_found("cuDNN has no plan for " + what_);
      built = true;
      return on.runs() ? try_once(*plan, on.plans->device()) : success();
    });
    if (first.ok()) return *plan;
    return built ? first.error() : none_built();
  }

  Status try_once(const CudnnPlan& plan, Device& device) const {
    const std::vector<std::int64_t> bytes = bytes_to_try(plan.workspace_bytes_);
    return run_once(device, bytes, [&](std::span<void* const> arrays) {
      CudnnPlan::Pointers pointers = pointers_to(arrays);
      return plan.enqueue(device, cudnn_, pointers, arrays.back());  // the last: workspace
    });
  }

  // Bytes of the operands, then of the workspace.
  std::vector<std::int64_t> bytes_to_try(std::int64_t workspace_bytes) const {
    std::vector<std::int64_t> bytes;
    for (const auto& operand : operands_) bytes.push_back(operand.second);
    bytes.push_back(workspace_bytes);
    return bytes;
  }
  CudnnPlan::Pointers pointers_to(std::span<void* const> arrays) const {
    CudnnPlan::Pointers pointers;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      pointers.emplace(operands_[i].first, arrays[i]);
    }
    return pointers;
  }

  Result<CudnnPlan> build_fastest(const std::string& key, LibraryPlans& libraries) {
    std::vector<CudnnPlan> plans;
    std::vector<std::string> names;
    std::int64_t workspace_bytes = 0;
    for (std::int64_t i = 0;
         i < graph_->get_execution_plan_count() && plans.size() < PlanChooser::kMostTimed; ++i) {
      if (auto plan = plan_at(i)) {
        names.push_back(plan->name_);
        workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes_);
        plans.push_back(std::move(*plan));
      }
    }
    if (plans.empty()) return none_built();
    const std::vector<std::int64_t> bytes = bytes_to_try(workspace_bytes);
    const auto enqueue = [&](std::size_t candidate, std::span<void* const> arrays) {
      CudnnPlan::Pointers pointers = pointers_to(arrays);
      return plans[candidate].enqueue(libraries.device(), cudnn_, pointers, arrays.back());
    };
    FETTLE_ASSIGN(const std::size_t best, fastest_plan(libraries, key, names, bytes, enqueue));
    if (const TimedPlan* timed = libraries.chooser().known(key)) {  // nullptr: no memory to time
      plans[best].microseconds_ = timed->microseconds;
    }
    return std::move(plans[best]);
  }

  // Why no engine could be built, in cuDNN's words.
  Error none_built() {
    const Status tried =
        status_of(graph_->build_plans(frontend::BuildPlanPolicy_t::HEURISTICS_CHOICE));
    return tried.ok() ? not_found("cuDNN has no plan for " + what_) : tried.error();
  }

  Status status_of(frontend::error_object error) const {
    if (error.is_good()) return success();
    const std::string words = first_line(error.get_message());
    if (is_unsupported(error)) {
      return not_found("cuDNN has no plan for " + what_ + ": " + words);
    }
    return io_error("cuDNN could not plan " + what_ + ": " + words);
  }

  const Cudnn& cudnn_;
  const std::string what_;
  std::shared_ptr<Graph> graph_;
  std::vector<std::pair<std::int64_t, std::int64_t>> operands_;  // uid, bytes
};

// ---- The device of a plan ----------------------------------------------------------------------

Result<std::unique_ptr<Cudnn>> Cudnn::open() {
  std::unique_ptr<Cudnn> cudnn(new Cudnn());
  const cudnnStatus_t status = cudnnCreate(&cudnn->handle_);
  if (status != CUDNN_STATUS_SUCCESS) {
    return io_error(std::string("starting cuDNN: ") + cudnnGetErrorString(status));
  }
  return cudnn;
}

Result<std::unique_ptr<Cudnn>> Cudnn::described(std::string_view device_json) {
  std::unique_ptr<Cudnn> cudnn(new Cudnn());
  cudnn->properties_ = std::make_shared<frontend::DeviceProperties>();
  auto error = cudnn->properties_->deserialize({device_json.begin(), device_json.end()});
  if (error.is_good()) return cudnn;
  return invalid("cuDNN does not take this description of a device: " +
                 first_line(error.get_message()));
}

Result<CudnnPlan> Cudnn::plan_once(const Key& key,
                                   const std::function<Result<CudnnPlan>()>& make) const {
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  Result<CudnnPlan> made = make();
  if (plans_.size() < kMostKept) plans_.emplace(key, made);
  return made;
}

Cudnn::~Cudnn() {
  plans_.clear();  // they belong to the handle
  if (handle_ != nullptr) cudnnDestroy(handle_);
}

Status CudnnPlan::enqueue(const Device& device, const Cudnn& cudnn, Pointers& pointers,
                          void* workspace) const {
  const cudnnStatus_t status = cudnnSetStream(cudnn.handle(), device.stream());
  if (status != CUDNN_STATUS_SUCCESS) return io_error(cudnnGetErrorString(status));
  return guarded(name_, [&]() -> Status {
    auto error = graph_->execute_plan_at_index(cudnn.handle(), pointers, workspace, index_);
    return error.is_good() ? success() : io_error(name_ + ": " + error.get_message());
  });
}

void CudnnPlan::run(const Device& device, const Cudnn& cudnn, Pointers pointers,
                    void* workspace) const {
  const Status done = enqueue(device, cudnn, pointers, workspace);
  CHECK(done.ok(), done.error().message + kHowToGoOn);
}

// ---- Convolution -------------------------------------------------------------------------------

namespace {

template <class Attributes>
Attributes conv_attributes(const ConvShape& shape) {
  Attributes attributes;
  attributes.set_padding({shape.padding, shape.padding})
      .set_stride({shape.stride, shape.stride})
      .set_dilation({1, 1});
  return attributes;
}

// The three tensors of a convolution.
struct ConvTensors {
  Tensor_attributes input, weights, output;
  ConvTensors(const ConvShape& shape, std::int64_t samples)
      : input(GraphBuilder::describe_image(Role::kInput, samples, shape.input)),
        weights(GraphBuilder::describe_image(Role::kWeights, shape.channels,
                                             {shape.kernel, shape.kernel, shape.input.channels})),
        output(GraphBuilder::describe_image(Role::kOutput, samples, shape.output())) {}
};

Tensor_attributes bias_tensor(const ConvShape& shape) {
  return GraphBuilder::describe_image(Role::kBias, 1, {1, 1, shape.channels});
}

void add_forward(Graph& graph, const ConvShape& shape, const ConvTensors& tensors, bool fused) {
  Tensor y = graph.conv_fprop(graph.tensor(tensors.input), graph.tensor(tensors.weights),
                              conv_attributes<frontend::graph::Conv_fprop_attributes>(shape));
  if (fused && shape.bias) {
    const Tensor bias = graph.tensor(bias_tensor(shape));
    y = graph.pointwise(
        y, bias, frontend::graph::Pointwise_attributes().set_mode(frontend::PointwiseMode_t::ADD));
  }
  if (fused && shape.relu) {
    y = graph.pointwise(
        y, frontend::graph::Pointwise_attributes().set_mode(frontend::PointwiseMode_t::RELU_FWD));
  }
  GraphBuilder::make_output(y, tensors.output);
}

void add_backward(Graph& graph, const ConvShape& shape, const ConvTensors& tensors, ConvPass pass) {
  if (pass == ConvPass::kInput) {
    const Tensor dx =
        graph.conv_dgrad(graph.tensor(tensors.output), graph.tensor(tensors.weights),
                         conv_attributes<frontend::graph::Conv_dgrad_attributes>(shape));
    GraphBuilder::make_output(dx, tensors.input);
    return;
  }
  const Tensor dw =
      graph.conv_wgrad(graph.tensor(tensors.output), graph.tensor(tensors.input),
                       conv_attributes<frontend::graph::Conv_wgrad_attributes>(shape));
  GraphBuilder::make_output(dw, tensors.weights);
  if (pass == ConvPass::kWeightsFloat32) dw->set_data_type(frontend::DataType_t::FLOAT);
}

// Properties that no engine may have; cudnn.h has the reasons.
std::vector<frontend::NumericalNote_t> barred_for(const PlanOptions& plan) {
  using frontend::NumericalNote_t;
  std::vector barred = {NumericalNote_t::NONDETERMINISTIC};
  if (plan.type == DataType::kFloat32) {
    barred.insert(barred.end(), {NumericalNote_t::WINOGRAD, NumericalNote_t::WINOGRAD_TILE_4x4,
                                 NumericalNote_t::WINOGRAD_TILE_6x6,
                                 NumericalNote_t::WINOGRAD_TILE_13x13, NumericalNote_t::FFT});
  }
  if (plan.type == DataType::kFloat32 && !plan.tf32) {
    barred.push_back(NumericalNote_t::TENSOR_CORE);
    barred.push_back(NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  return barred;
}

Result<CudnnPlan> make_conv_plan(const Cudnn& cudnn, const ConvShape& shape,
                                 const PlanOptions& plan, std::int64_t samples, ConvPass pass,
                                 const std::string& key, TryOn on) {
  GraphBuilder builder(cudnn, plan.type, "a " + describe(shape, plan, samples));
  const ConvTensors tensors(shape, samples);
  const bool forward = pass == ConvPass::kForward || pass == ConvPass::kForwardFused;
  if (forward) {
    add_forward(builder.graph(), shape, tensors, pass == ConvPass::kForwardFused);
  } else {
    add_backward(builder.graph(), shape, tensors, pass);
  }
  const bool fp32_gradient = pass == ConvPass::kWeightsFloat32;
  builder.add_operand(tensors.input, plan.type);
  builder.add_operand(tensors.weights, fp32_gradient ? DataType::kFloat32 : plan.type);
  builder.add_operand(tensors.output, plan.type);
  if (pass == ConvPass::kForwardFused && shape.bias) {
    builder.add_operand(bias_tensor(shape), plan.type);
  }
  return builder.build(barred_for(plan), key, on);
}

// The first number of a plan's key.
enum class PlanOf : std::uint8_t { kConv, kAttention };

template <class... Numbers>
Cudnn::Key key_of(Numbers... numbers) {
  return {static_cast<std::int64_t>(numbers)...};
}

void add_way_of_trying(Cudnn::Key& key, TryOn on) {
  key.insert(key.end(), {std::int64_t{on.runs()}, std::int64_t{on.timed}});
}

// The key as stored in the file of timed plans, with the version of the library that made the plan.
std::string text_of(const Cudnn::Key& key) {
  std::string text = "cudnn " + std::to_string(cudnnGetVersion());
  for (const std::int64_t number : key) text += " " + std::to_string(number);
  return text;
}

}  // namespace

Result<CudnnPlan> plan_conv(const Cudnn& cudnn, const ConvShape& shape, const PlanOptions& plan,
                            std::int64_t samples, ConvPass pass, TryOn on) {
  const bool fused = pass == ConvPass::kForwardFused;
  Cudnn::Key key = key_of(PlanOf::kConv, pass, plan.type, plan.tf32, samples, shape.input.height,
                          shape.input.width, shape.input.channels, shape.channels, shape.kernel,
                          shape.stride, shape.padding, fused && shape.bias, fused && shape.relu);
  // Names the plan in the file of timed plans. Plans in memory also differ in how they were tried.
  const std::string text = text_of(key);
  add_way_of_trying(key, on);
  return cudnn.plan_once(key, [&] {
    return guarded("a " + describe(shape, plan, samples),
                   [&] { return make_conv_plan(cudnn, shape, plan, samples, pass, text, on); });
  });
}

// ---- Attention ---------------------------------------------------------------------------------

namespace {

// Describes [samples, heads, length, width] whose tokens are `columns` x heads x width apart.
Tensor_attributes describe_tokens(Role role, const AttentionShape& shape, std::int64_t samples,
                                  std::int64_t columns) {
  const std::int64_t token = columns * shape.channels();
  return GraphBuilder::describe(role, {samples, shape.heads, shape.length, shape.width},
                                {token * shape.length, shape.width, token, 1});
}

struct AttentionTensors {
  static constexpr std::int64_t kAlone = 1;   // one part in a token
  static constexpr std::int64_t kPacked = 3;  // queries, keys and values side by side in a token
  // `statistics`: the log-sum-exp of each query's scores, which the backward pass reads.
  Tensor_attributes queries, keys, values, output, statistics;
  // For the backward pass.
  Tensor_attributes output_gradient, query_gradient, key_gradient, value_gradient;
  AttentionTensors(const AttentionShape& shape, std::int64_t samples)
      : queries(describe_tokens(Role::kQueries, shape, samples, kPacked)),
        keys(describe_tokens(Role::kKeys, shape, samples, kPacked)),
        values(describe_tokens(Role::kValues, shape, samples, kPacked)),
        output(describe_tokens(Role::kOutput, shape, samples, kAlone)),
        statistics(GraphBuilder::describe(Role::kStatistics,
                                          {samples, shape.heads, shape.length, 1},
                                          {shape.heads * shape.length, shape.length, 1, 1})),
        output_gradient(describe_tokens(Role::kOutputGradient, shape, samples, kAlone)),
        query_gradient(describe_tokens(Role::kQueryGradient, shape, samples, kPacked)),
        key_gradient(describe_tokens(Role::kKeyGradient, shape, samples, kPacked)),
        value_gradient(describe_tokens(Role::kValueGradient, shape, samples, kPacked)) {
    // The others have the graph's type (GraphBuilder).
    statistics.set_data_type(frontend::DataType_t::FLOAT);
  }
};

template <class Attributes>
Attributes causal(const AttentionShape& shape) {
  Attributes attributes;
  attributes.set_attn_scale(1 / std::sqrt(static_cast<float>(shape.width)));
  attributes.set_diagonal_alignment(frontend::DiagonalAlignment_t::TOP_LEFT);
  attributes.set_diagonal_band_right_bound(0);  // from the top left: query t sees keys 0 to t
  return attributes;
}

void add_attention(Graph& graph, const AttentionShape& shape, const AttentionTensors& tensors) {
  auto attributes = causal<frontend::graph::SDPA_attributes>(shape);
  attributes.set_generate_stats(true);
  const auto [y, statistics] = graph.sdpa(graph.tensor(tensors.queries), graph.tensor(tensors.keys),
                                          graph.tensor(tensors.values), attributes);
  GraphBuilder::make_output(y, tensors.output);
  GraphBuilder::make_output(statistics, tensors.statistics);
  statistics->set_data_type(frontend::DataType_t::FLOAT);
}

void add_attention_backward(Graph& graph, const AttentionShape& shape,
                            const AttentionTensors& tensors, bool deterministic) {
  auto attributes = causal<frontend::graph::SDPA_backward_attributes>(shape);
  attributes.set_deterministic_algorithm(deterministic);
  const auto [dq, dk, dv] = graph.sdpa_backward(
      graph.tensor(tensors.queries), graph.tensor(tensors.keys), graph.tensor(tensors.values),
      graph.tensor(tensors.output), graph.tensor(tensors.output_gradient),
      graph.tensor(tensors.statistics), attributes);
  GraphBuilder::make_output(dq, tensors.query_gradient);
  GraphBuilder::make_output(dk, tensors.key_gradient);
  GraphBuilder::make_output(dv, tensors.value_gradient);
}

Result<CudnnPlan> make_attention_plan(const Cudnn& cudnn, const AttentionShape& shape,
                                      DataType type, std::int64_t samples, AttentionPass pass,
                                      const std::string& key, TryOn on) {
  GraphBuilder builder(cudnn, type, describe(shape, {samples, type}, samples));
  const AttentionTensors tensors(shape, samples);
  for (const auto* tensor : {&tensors.queries, &tensors.keys, &tensors.values, &tensors.output}) {
    builder.add_operand(*tensor, type);
  }
  builder.add_operand(tensors.statistics, DataType::kFloat32);
  if (pass == AttentionPass::kForward) {
    add_attention(builder.graph(), shape, tensors);
  } else {
    add_attention_backward(builder.graph(), shape, tensors, pass == AttentionPass::kBackward);
    for (const auto* tensor : {&tensors.output_gradient, &tensors.query_gradient,
                               &tensors.key_gradient, &tensors.value_gradient}) {
      builder.add_operand(*tensor, type);
    }
  }
  // An attribute requests determinism; barring engines by their notes could leave no engine.
  return builder.build({}, key, on);
}

}  // namespace

Result<CudnnPlan> plan_attention(const Cudnn& cudnn, const AttentionShape& shape, DataType type,
                                 std::int64_t samples, AttentionPass pass, TryOn on) {
  Cudnn::Key key =
      key_of(PlanOf::kAttention, pass, type, samples, shape.length, shape.heads, shape.width);
  // Names the plan in the file of timed plans. Plans in memory also differ in how they were tried.
  const std::string text = text_of(key);
  add_way_of_trying(key, on);
  return cudnn.plan_once(key, [&] {
    return guarded(describe(shape, {samples, type}, samples), [&] {
      return make_attention_plan(cudnn, shape, type, samples, pass, text, on);
    });
  });
}

}  // namespace fettle::kernels::cuda
