#include "trainer/files/torch_module.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "trainer/files/graph.h"

namespace fettle::trainer {
namespace {

using api::LayerType;

std::string text_of(std::int64_t number) { return std::to_string(number); }

// Digits that name one float, as a Python float.
std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", number);
  const std::string digits = text.data();
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

// A Python string literal's inside.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out;
}

// ---- Modules -----------------------------------------------------------------------------------

std::string linear_module(const LayerPlan& layer) {
  const std::int64_t outputs = layer.output.channels;
  return "nn.Linear(" + text_of(layer.weights.count / outputs) + ", " + text_of(outputs) +
         (layer.bias ? ")" : ", bias=False)");
}

std::string conv_module(const LayerPlan& layer) {
  std::string text = "nn.Conv2d(" + text_of(layer.input.channels) + ", " +
                     text_of(layer.output.channels) + ", " + text_of(layer.kernel_height);
  if (layer.stride != 1) text += ", stride=" + text_of(layer.stride);
  if (layer.padding != 0) text += ", padding=" + text_of(layer.padding);
  return text + (layer.bias ? ")" : ", bias=False)");
}

std::string norm_module(const LayerPlan& layer, bool image) {
  const std::string channels = text_of(layer.weights.count);
  switch (layer.type) {
    case LayerType::kBatchNorm:
      return std::string("nn.BatchNorm") + (image ? "2d(" : "1d(") + channels + ")";
    case LayerType::kLayerNorm:
      return "nn.LayerNorm(" + channels + ")";
    default:
      return "nn.RMSNorm(" + channels + ", eps=1e-5)";
  }
}

// The module of a step that has tensors of its own; "" for others.
std::string module_of(const GraphStep& step, const LayerPlan& layer) {
  switch (step.op) {
    case GraphOp::kLinear:
      return linear_module(layer);
    case GraphOp::kConv:
      return conv_module(layer);
    case GraphOp::kBatchNorm:
    case GraphOp::kLayerNorm:
    case GraphOp::kRmsNorm:
      return norm_module(layer, step.on_image);
    case GraphOp::kEmbedding:
      return "Embedding(" + text_of(layer.vocabulary) + ", " + text_of(layer.output.height) + ", " +
             text_of(layer.output.channels) + ")";
    default:
      return "";
  }
}

constexpr const char* kEmbedding = R"(

class Embedding(nn.Module):
    """Vectors of tokens, and of their positions."""

    def __init__(self, vocabulary, length, units):
        super().__init__()
        self.token = nn.Embedding(vocabulary, units)
        self.position = nn.Embedding(length, units)

    def forward(self, ids):
        return self.token(ids.long()) + self.position.weight[:ids.shape[1]]
)";

constexpr const char* kAttention = R"(

def attention(x, heads):
    """Causal; x has queries, keys and values side by side."""
    parts = [part.unflatten(2, (heads, -1)).transpose(1, 2) for part in x.chunk(3, dim=2)]
    return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)
)";

// ---- The module's source -----------------------------------------------------------------------

class ModuleWriter {
 public:
  ModuleWriter(const SavedModel& model, const Graph& graph) : model_(model), graph_(graph) {}

  std::string source(const ExportOrigin& origin, const std::string& weights) const {
    std::string text = head(origin, weights);
    if (uses(GraphOp::kEmbedding)) text += kEmbedding;
    if (uses(GraphOp::kAttention)) text += kAttention;
    text += "\n\nclass Network(nn.Module):\n    def __init__(self):\n        super().__init__()\n";
    text += "        self.layers = nn.ModuleDict({\n" + modules() + "        })\n\n";
    text += "    def forward(self, x):\n        layers = self.layers\n" + normalisation() + steps();
    text += "        return " + name_of(std::ssize(graph_.steps)) + "\n";
    text += R"(
    @classmethod
    def load(cls, file=None):
        """The trained network, from the file beside this module or another one, in evaluation mode."""
        network = cls()
        network.load_state_dict(load_file(file or pathlib.Path(__file__).with_name(")" +
            quoted(weights) + R"(")))
        return network.eval()
)";
    return text;
  }

 private:
  bool uses(GraphOp op) const {
    return std::ranges::any_of(graph_.steps, [op](const GraphStep& one) { return one.op == op; });
  }

  std::string head(const ExportOrigin& origin, const std::string& weights) const {
    const std::string from = origin.trial.empty()
                                 ? std::string("A network")
                                 : "Trial " + origin.trial + " of study " + origin.study;
    return "\"\"\"" + quoted(from) + ", written by Fettle " + quoted(origin.version) +
           ".\n\nNetwork.load() reads the weights from " + quoted(weights) +
           "; needs torch and safetensors. The network takes\nsamples as the data files have them "
           "(" +
           form_of_input() + ") and gives logits.\n\"\"\"\n\n" +
           "import pathlib\n\nimport torch.nn.functional as F\nfrom safetensors.torch import "
           "load_file\nfrom torch import nn\n";
  }

  std::string form_of_input() const {
    const kernels::ImageShape& shape = model_.format.input;
    if (model_.format.tokens) return "token ids [samples, " + text_of(shape.height) + "]";
    const std::string type = model_.pixels == PixelType::kByte ? ", bytes" : ", floats";
    return "[samples, " + text_of(shape.height) + ", " + text_of(shape.width) + ", " +
           text_of(shape.channels) + "]" + type;
  }

  const LayerPlan& layer_of(const GraphStep& step) const { return model_.plan.layer(step.layer); }

  std::string modules() const {
    std::string text;
    for (const GraphStep& step : graph_.steps) {
      const LayerPlan& layer = layer_of(step);
      const std::string module = module_of(step, layer);
      if (!module.empty()) {
        text += "            \"" + text_of(layer.index) + "\": " + module + ",\n";
      }
    }
    return text;
  }

  std::string normalisation() const {
    if (model_.format.tokens) return name_of(0) == "x" ? "" : "        " + name_of(0) + " = x\n";
    const kernels::ImageShape& shape = model_.format.input;
    std::string value = "x.float()";
    if (model_.pixels == PixelType::kByte) value += " / 255";
    value = "(" + value + " - " + text_of(model_.normalize.mean) + ") / " +
            text_of(model_.normalize.std);
    const bool list = shape.height * shape.width == 1;
    const std::string sides =
        list ? text_of(shape.channels)
             : text_of(shape.height) + ", " + text_of(shape.width) + ", " + text_of(shape.channels);
    return "        x = " + value + "\n        " + name_of(0) + " = x.reshape(len(x), " + sides +
           ")" + (list ? "" : ".permute(0, 3, 1, 2)") + "\n";
  }

  std::string steps() const {
    std::string text;
    for (std::size_t i = 0; i < graph_.steps.size(); ++i) {
      text += "        " + name_of(static_cast<std::int64_t>(i) + 1) + " = " +
              expression(graph_.steps[i]) + "\n";
    }
    return text;
  }

  // "x" where only the next step reads it; others stay until a later step.
  std::string name_of(std::int64_t value) const {
    for (std::int64_t i = value + 1; i < std::ssize(graph_.steps); ++i) {
      const auto& inputs = graph_.steps[static_cast<std::size_t>(i)].inputs;
      if (std::ranges::find(inputs, value) != inputs.end()) return "x" + text_of(value);
    }
    return "x";
  }

  std::string expression(const GraphStep& step) const {
    const LayerPlan& layer = layer_of(step);
    const std::string x = name_of(step.inputs[0]);
    const std::string sizes = ", " + text_of(layer.kernel_height) + ", " + text_of(layer.stride);
    switch (step.op) {
      case GraphOp::kRelu:
        return "F.relu(" + x + ")";
      case GraphOp::kGelu:
        return "F.gelu(" + x +
               (layer.gelu == kernels::GeluForm::kTanh ? ", approximate=\"tanh\")" : ")");
      case GraphOp::kMaxPool:
        return "F.max_pool2d(" + x + sizes + ")";
      case GraphOp::kAveragePool:
        return "F.avg_pool2d(" + x + sizes + ")";
      case GraphOp::kGlobalPool:
        return x + ".mean((2, 3))";
      case GraphOp::kHead:
        return "F.linear(" + x + ", layers[\"" + text_of(model_.plan.layers.front().index) +
               "\"].token.weight)";
      case GraphOp::kAttention:
        return "attention(" + x + ", " + text_of(layer.heads) + ")";
      case GraphOp::kAdd:
        return x + " + " + name_of(step.inputs[1]);
      case GraphOp::kChannelsLast:
        return x + ".permute(0, 2, 3, 1)";
      case GraphOp::kChannelsFirst:
        return x + ".permute(0, 3, 1, 2)";
      case GraphOp::kFlatten:
        return x + ".flatten(1)";
      case GraphOp::kImage:
        return x + "[:, :, None, None]";
      default:
        return "layers[\"" + text_of(layer.index) + "\"](" + x + ")";
    }
  }

  const SavedModel& model_;
  const Graph& graph_;
};

}  // namespace

Result<std::string> torch_module(const SavedModel& model, const ExportOrigin& origin,
                                 const std::string& weights) {
  FETTLE_ASSIGN(const Graph graph, graph_of(model.plan));
  return ModuleWriter(model, graph).source(origin, weights);
}

}  // namespace fettle::trainer
