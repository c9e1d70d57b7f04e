// The kinds of layers. A new kind is a new file and a line in layer_kinds.cpp.
#pragma once

#include <memory>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/model/layer.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// The parts of its layer's forward pass that a backward pass reads. A layer with a fused ReLU also
// reads its output.
struct BackwardReads {
  bool input = false;
  bool output = false;
};

struct LayerKind {
  api::LayerType type;
  // Completes `layer`, whose name, input and output (= input) are set. `before_norm`: a batchNorm
  // follows, so a bias would be subtracted again and is left out unless it is asked for.
  Status (*plan)(const api::ModelConfig& model, const api::LayerConfig& config, bool before_norm,
                 LayerPlan& layer);
  // Errors: the backend cannot run the layer.
  Result<std::unique_ptr<Layer>> (*make)(const LayerPlan& plan, const LayerContext& context);
  BackwardReads reads;
  bool fuses_relu = false;  // its operation can run a ReLU that follows
  bool decays = false;      // weight decay applies to its weights (never to biases)
  // Its backward pass can add to the contents of dx, which saves a temporary and two passes over
  // it.
  bool adds_gradients = false;
};

// Flatten, residual and shortcut have no kind: they change no number, and no plan has them.
const LayerKind& kind_of(api::LayerType type);
BackwardReads reads_of(const LayerPlan& layer);
// Whether one kernel runs both, if `second` reads the output of `first` and both outputs are
// wanted: a linear layer with the GELU behind it, a sum with the layer norm or RMS norm of it, a
// batch norm with the sum behind it.
bool run_together(const LayerPlan& first, const LayerPlan& second);

extern const LayerKind kLinearKind;     // linear_layer.cpp
extern const LayerKind kConvKind;       // conv_layer.cpp
extern const LayerKind kBatchNormKind;  // batch_norm_layer.cpp
extern const LayerKind kLayerNormKind;  // row_norm_layer.cpp
extern const LayerKind kRmsNormKind;
extern const LayerKind kReluKind;     // relu_layer.cpp
extern const LayerKind kGeluKind;     // gelu_layer.cpp
extern const LayerKind kMaxPoolKind;  // pool_layer.cpp
extern const LayerKind kAveragePoolKind;
extern const LayerKind kGlobalPoolKind;
extern const LayerKind kDropoutKind;    // dropout_layer.cpp
extern const LayerKind kEmbeddingKind;  // embedding_layer.cpp
extern const LayerKind kHeadKind;
extern const LayerKind kAttentionKind;  // attention_layer.cpp
extern const LayerKind kAddKind;        // add_layer.cpp
extern const LayerKind kCastKind;       // cast_layer.cpp
extern const LayerKind kQuantizeKind;   // quantize_layer.cpp

}  // namespace fettle::trainer
