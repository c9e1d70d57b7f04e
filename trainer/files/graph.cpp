#include "trainer/files/graph.h"

#include <utility>

#include "trainer/files/named_weights.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

enum class Form { kImage, kList, kSequence };

struct Value {
  std::int64_t id = 0;
  Form form = Form::kImage;
};

bool has_pixels(const kernels::ImageShape& shape) { return shape.height * shape.width > 1; }

class GraphBuilder {
 public:
  explicit GraphBuilder(const NetworkPlan& plan) : plan_(plan) {
    input_.form = plan.tokens              ? Form::kSequence
                  : has_pixels(plan.input) ? Form::kImage
                                           : Form::kList;
  }

  Result<Graph> run() {
    for (const LayerPlan& layer : plan_.layers) {
      layer_ = &layer - plan_.layers.data();
      if (plan_.tokens && takes_images(layer.type)) {
        return invalid(layer.name + " cannot be exported: it takes images, but is given a text");
      }
      values_.push_back(take(layer));
    }
    // The logits are a list in the trainer's order.
    const bool pixels = has_pixels(plan_.layers.back().output);
    as_list(values_.back(), pixels ? Flattening::kChannelsLast : Flattening::kChannelsFirst);
    return std::move(graph_);
  }

 private:
  static bool takes_images(LayerType type) {
    return type == LayerType::kConv || type == LayerType::kBatchNorm ||
           type == LayerType::kMaxPool || type == LayerType::kAveragePool ||
           type == LayerType::kGlobalPool;
  }

  Value take(const LayerPlan& layer) {
    const Value output = take_unfused(layer);
    return layer.relu ? add(GraphOp::kRelu, {output}, output.form) : output;
  }

  Value take_unfused(const LayerPlan& layer) {
    const Value x = source_of(layer);
    switch (layer.type) {
      case LayerType::kLinear:
        return add(GraphOp::kLinear, {as_list(x, Flattening::kChannelsFirst)}, list_form());
      case LayerType::kConv:
        return add(GraphOp::kConv, {as_image(x)}, Form::kImage);
      case LayerType::kMaxPool:
        return add(GraphOp::kMaxPool, {as_image(x)}, Form::kImage);
      case LayerType::kAveragePool:
        return add(GraphOp::kAveragePool, {as_image(x)}, Form::kImage);
      case LayerType::kGlobalPool:
        return add(GraphOp::kGlobalPool, {as_image(x)}, Form::kList);
      case LayerType::kBatchNorm:
        return add(GraphOp::kBatchNorm, {x}, x.form);
      case LayerType::kLayerNorm:
        return take_row_norm(GraphOp::kLayerNorm, x);
      case LayerType::kRmsNorm:
        return take_row_norm(GraphOp::kRmsNorm, x);
      case LayerType::kQuantize:
        return add(GraphOp::kQuantize, {x}, x.form);
      case LayerType::kRelu:
        return add(GraphOp::kRelu, {x}, x.form);
      case LayerType::kGelu:
        return add(GraphOp::kGelu, {x}, x.form);
      case LayerType::kEmbedding:
        return add(GraphOp::kEmbedding, {x}, Form::kSequence);
      case LayerType::kHead:
        return add(GraphOp::kHead, {x}, Form::kSequence);
      case LayerType::kAttention:
        return add(GraphOp::kAttention, {x}, Form::kSequence);
      case LayerType::kAdd:
        return take_add(layer, x);
      default:  // dropout; the others are no layers of an fp32 plan
        return x;
    }
  }

  Value take_row_norm(GraphOp op, Value x) {
    if (x.form != Form::kImage) return add(op, {x}, x.form);
    const Value last = add(GraphOp::kChannelsLast, {x}, Form::kImage);
    return add(GraphOp::kChannelsFirst, {add(op, {last}, Form::kImage)}, Form::kImage);
  }

  Value take_add(const LayerPlan& layer, Value x) {
    Value other = value_of(layer.shortcut);
    const Flattening flattening = flattening_of_shortcut(plan_, layer);
    if (flattening != Flattening::kNone) other = as_list(other, flattening);
    if (x.form != other.form) {  // an image of one pixel, and a list
      x = as_list(x, Flattening::kChannelsFirst);
      other = as_list(other, Flattening::kChannelsFirst);
    }
    return add(GraphOp::kAdd, {x, other}, x.form);
  }

  // The layer's input, flattened if the layer takes a list of an image.
  Value source_of(const LayerPlan& layer) {
    const Value x = value_of(layer.source);
    const Flattening flattening = flattening_of_source(plan_, layer);
    return flattening == Flattening::kNone ? x : as_list(x, flattening);
  }

  Value value_of(std::int64_t layer) const {
    return layer == kNetworkInput ? input_ : values_[static_cast<std::size_t>(layer)];
  }

  Form list_form() const { return plan_.tokens ? Form::kSequence : Form::kList; }

  Value as_list(Value x, Flattening order) {
    if (x.form != Form::kImage) return x;
    if (order == Flattening::kChannelsLast) x = add(GraphOp::kChannelsLast, {x}, Form::kImage);
    return add(GraphOp::kFlatten, {x}, Form::kList);
  }
  Value as_image(Value x) {
    return x.form == Form::kList ? add(GraphOp::kImage, {x}, Form::kImage) : x;
  }

  Value add(GraphOp op, const std::vector<Value>& inputs, Form form) {
    const bool on_image = inputs.front().form == Form::kImage;
    GraphStep step{.op = op, .layer = layer_, .on_image = on_image, .inputs = {}};
    for (const Value& value : inputs) step.inputs.push_back(value.id);
    graph_.steps.push_back(std::move(step));
    return {std::ssize(graph_.steps), form};
  }

  const NetworkPlan& plan_;
  Graph graph_;
  Value input_;
  std::vector<Value> values_;  // of the layers
  std::int64_t layer_ = 0;     // that is being taken
};

}  // namespace

Result<Graph> graph_of(const NetworkPlan& plan) { return GraphBuilder(plan).run(); }

}  // namespace fettle::trainer
