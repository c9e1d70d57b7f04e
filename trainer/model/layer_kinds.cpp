#include "trainer/model/layer_kinds.h"

#include <array>

#include "base/check.h"

namespace fettle::trainer {

const LayerKind& kind_of(api::LayerType type) {
  static const std::array<const LayerKind*, 15> kKinds = {
      &kLinearKind,  &kConvKind,      &kBatchNormKind, &kLayerNormKind,   &kRmsNormKind,
      &kReluKind,    &kGeluKind,      &kMaxPoolKind,   &kAveragePoolKind, &kGlobalPoolKind,
      &kDropoutKind, &kEmbeddingKind, &kAttentionKind, &kHeadKind,        &kAddKind,
  };
  for (const LayerKind* kind : kKinds) {
    if (kind->type == type) return *kind;
  }
  check_failed(__FILE__, __LINE__, "kind_of", "a layer type without a kind");
}

BackwardReads reads_of(const LayerPlan& layer) {
  BackwardReads reads = kind_of(layer.type).reads;
  reads.output = reads.output || layer.relu;
  return reads;
}

}  // namespace fettle::trainer
