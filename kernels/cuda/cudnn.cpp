#include "kernels/cuda/cudnn.h"

// Plans are not written to files, and without this the header takes three times as long.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cmath>
#include <utility>
#include <vector>

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

// cuDNN goes on for pages about every engine that it tried.
std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

std::string words_of(const ConvShape& s, std::int64_t samples) {
  return "a convolution of " + std::to_string(samples) + " x " + std::to_string(s.input.height) +
         " x " + std::to_string(s.input.width) + " x " + std::to_string(s.input.channels) + " to " +
         std::to_string(s.channels) + " channels, kernel " + std::to_string(s.kernel) +
         ", stride " + std::to_string(s.stride) + ", padding " + std::to_string(s.padding);
}

std::string words_of(const AttentionShape& s, std::int64_t samples) {
  return "attention of " + std::to_string(samples) + " x " + std::to_string(s.length) +
         " tokens with " + std::to_string(s.heads) + " heads of " + std::to_string(s.width);
}

}  // namespace

// Builds one graph, step by step, and keeps the first thing that cuDNN had to say against it.
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

  // cuDNN says sizes as N, C, H, W, and by the strides that channels come last.
  static Tensor_attributes describe_image(Role role, std::int64_t samples,
                                          const ImageShape& image) {
    return describe(role, {samples, image.channels, image.height, image.width},
                    {image.size(), 1, image.width * image.channels, image.channels});
  }

  // A result: the sizes and strides of `like`.
  static void make_output(const Tensor& tensor, const Tensor_attributes& like) {
    tensor->set_output(true).set_uid(like.get_uid());
    tensor->set_dim(like.get_dim()).set_stride(like.get_stride());
  }

  // By the first engine of cuDNN's heuristics that has none of the `barred` properties.
  Result<CudnnPlan> build(const std::vector<frontend::NumericalNote_t>& barred) {
    FETTLE_TRY(status_of(graph_->validate()));
    FETTLE_TRY(status_of(graph_->build_operation_graph(cudnn_.handle())));
    FETTLE_TRY(status_of(
        graph_->create_execution_plans({frontend::HeurMode_t::A, frontend::HeurMode_t::FALLBACK})));
    graph_->deselect_numeric_notes(barred);
    // Without a device this would ask for one; build_plans looks at the same.
    if (cudnn_.handle() != nullptr) FETTLE_TRY(status_of(graph_->check_support()));
    FETTLE_TRY(status_of(graph_->build_plans(frontend::BuildPlanPolicy_t::HEURISTICS_CHOICE)));
    CudnnPlan plan;
    FETTLE_TRY(status_of(graph_->get_workspace_size(plan.workspace_bytes_)));
    FETTLE_TRY(status_of(graph_->get_plan_name(plan.name_)));
    plan.graph_ = graph_;
    return plan;
  }

 private:
  Status status_of(frontend::error_object error) const {
    if (error.is_good()) return success();
    return not_found("cuDNN has no plan for " + what_ + ": " + first_line(error.get_message()));
  }

  const Cudnn& cudnn_;
  const std::string what_;
  std::shared_ptr<Graph> graph_;
};

// ---- What plans are made for -------------------------------------------------------------------

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
  plans_.clear();  // they are the handle's
  if (handle_ != nullptr) cudnnDestroy(handle_);
}

void CudnnPlan::run(const Device& device, const Cudnn& cudnn, Pointers pointers,
                    void* workspace) const {
  const cudnnStatus_t status = cudnnSetStream(cudnn.handle(), device.stream());
  CHECK(status == CUDNN_STATUS_SUCCESS, cudnnGetErrorString(status));
  auto error = graph_->execute(cudnn.handle(), pointers, workspace);
  CHECK(error.is_good(), error.get_message());
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

void add_forward(Graph& graph, const ConvShape& shape, const ConvTensors& tensors, bool fused) {
  Tensor y = graph.conv_fprop(graph.tensor(tensors.input), graph.tensor(tensors.weights),
                              conv_attributes<frontend::graph::Conv_fprop_attributes>(shape));
  if (fused && shape.bias) {
    const Tensor bias =
        graph.tensor(GraphBuilder::describe_image(Role::kBias, 1, {1, 1, shape.channels}));
    y = graph.pointwise(
        y, bias, frontend::graph::Pointwise_attributes().set_mode(frontend::PointwiseMode_t::ADD));
  }
  if (fused && shape.relu) {
    y = graph.pointwise(
        y, frontend::graph::Pointwise_attributes().set_mode(frontend::PointwiseMode_t::RELU_FWD));
  }
  GraphBuilder::make_output(y, tensors.output);
}

Result<CudnnPlan> plan_conv_anew(const Cudnn& cudnn, const ConvShape& shape,
                                 const PlanOptions& plan, std::int64_t samples, ConvPass pass) {
  GraphBuilder builder(cudnn, plan.type, words_of(shape, samples));
  Graph& graph = builder.graph();
  const ConvTensors tensors(shape, samples);
  if (pass == ConvPass::kInput) {
    const Tensor dx =
        graph.conv_dgrad(graph.tensor(tensors.output), graph.tensor(tensors.weights),
                         conv_attributes<frontend::graph::Conv_dgrad_attributes>(shape));
    GraphBuilder::make_output(dx, tensors.input);
  } else if (pass == ConvPass::kWeights) {
    const Tensor dw =
        graph.conv_wgrad(graph.tensor(tensors.output), graph.tensor(tensors.input),
                         conv_attributes<frontend::graph::Conv_wgrad_attributes>(shape));
    GraphBuilder::make_output(dw, tensors.weights);
  } else {
    add_forward(graph, shape, tensors, pass == ConvPass::kForwardFused);
  }
  std::vector barred = {frontend::NumericalNote_t::NONDETERMINISTIC};
  if (plan.type == DataType::kFloat32 && !plan.tf32) {
    barred.push_back(frontend::NumericalNote_t::TENSOR_CORE);
    barred.push_back(frontend::NumericalNote_t::DOWN_CONVERT_INPUTS);
  }
  return builder.build(barred);
}

// The first number of a plan's key.
enum class PlanOf : std::uint8_t { kConv, kAttention };

template <class... Numbers>
Cudnn::Key key_of(Numbers... numbers) {
  return {static_cast<std::int64_t>(numbers)...};
}

}  // namespace

Result<CudnnPlan> plan_conv(const Cudnn& cudnn, const ConvShape& shape, const PlanOptions& plan,
                            std::int64_t samples, ConvPass pass) {
  const bool fused = pass == ConvPass::kForwardFused;
  const Cudnn::Key key =
      key_of(PlanOf::kConv, pass, plan.type, plan.tf32, samples, shape.input.height,
             shape.input.width, shape.input.channels, shape.channels, shape.kernel, shape.stride,
             shape.padding, fused && shape.bias, fused && shape.relu);
  return cudnn.plan_once(key, [&] { return plan_conv_anew(cudnn, shape, plan, samples, pass); });
}

// ---- Attention ---------------------------------------------------------------------------------

namespace {

// [samples, heads, length, width], where a token's `channels` are `columns` x heads x width apart.
Tensor_attributes describe_tokens(Role role, const AttentionShape& shape, std::int64_t samples,
                                  std::int64_t columns) {
  const std::int64_t token = columns * shape.channels();
  return GraphBuilder::describe(role, {samples, shape.heads, shape.length, shape.width},
                                {token * shape.length, shape.width, token, 1});
}

struct AttentionTensors {
  static constexpr std::int64_t kPacked = 3;  // queries, keys and values in a token
  Tensor_attributes queries, keys, values, output, statistics;
  AttentionTensors(const AttentionShape& shape, std::int64_t samples)
      : queries(describe_tokens(Role::kQueries, shape, samples, kPacked)),
        keys(describe_tokens(Role::kKeys, shape, samples, kPacked)),
        values(describe_tokens(Role::kValues, shape, samples, kPacked)),
        output(describe_tokens(Role::kOutput, shape, samples, 1)),
        statistics(GraphBuilder::describe(Role::kStatistics,
                                          {samples, shape.heads, shape.length, 1},
                                          {shape.heads * shape.length, shape.length, 1, 1})) {
    statistics.set_data_type(frontend::DataType_t::FLOAT);
  }
};

template <class Attributes>
Attributes causal(const AttentionShape& shape) {
  Attributes attributes;
  attributes.set_attn_scale(1 / std::sqrt(static_cast<float>(shape.width)));
  attributes.set_diagonal_alignment(frontend::DiagonalAlignment_t::TOP_LEFT);
  attributes.set_diagonal_band_right_bound(0);
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

void add_attention_backward(Graph& graph, const AttentionShape& shape, std::int64_t samples,
                            const AttentionTensors& tensors, bool deterministic) {
  auto attributes = causal<frontend::graph::SDPA_backward_attributes>(shape);
  attributes.set_deterministic_algorithm(deterministic);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(graph.tensor(tensors.queries), graph.tensor(tensors.keys),
                          graph.tensor(tensors.values), graph.tensor(tensors.output),
                          graph.tensor(describe_tokens(Role::kOutputGradient, shape, samples, 1)),
                          graph.tensor(tensors.statistics), attributes);
  constexpr std::int64_t kPacked = AttentionTensors::kPacked;
  GraphBuilder::make_output(dq, describe_tokens(Role::kQueryGradient, shape, samples, kPacked));
  GraphBuilder::make_output(dk, describe_tokens(Role::kKeyGradient, shape, samples, kPacked));
  GraphBuilder::make_output(dv, describe_tokens(Role::kValueGradient, shape, samples, kPacked));
}

Result<CudnnPlan> plan_attention_anew(const Cudnn& cudnn, const AttentionShape& shape,
                                      DataType type, std::int64_t samples, AttentionPass pass) {
  GraphBuilder builder(cudnn, type, words_of(shape, samples));
  const AttentionTensors tensors(shape, samples);
  if (pass == AttentionPass::kForward) {
    add_attention(builder.graph(), shape, tensors);
  } else {
    add_attention_backward(builder.graph(), shape, samples, tensors,
                           pass == AttentionPass::kBackward);
  }
  // The attribute says whether it is deterministic; a bar by its engines' notes could leave none.
  return builder.build({});
}

}  // namespace

Result<CudnnPlan> plan_attention(const Cudnn& cudnn, const AttentionShape& shape, DataType type,
                                 std::int64_t samples, AttentionPass pass) {
  const Cudnn::Key key =
      key_of(PlanOf::kAttention, pass, type, samples, shape.length, shape.heads, shape.width);
  return cudnn.plan_once(key,
                         [&] { return plan_attention_anew(cudnn, shape, type, samples, pass); });
}

}  // namespace fettle::kernels::cuda
