#include "trainer/model/layer_kinds.h"

#include <array>

#include "base/check.h"

namespace fettle::trainer {

const LayerKind& kind_of(api::LayerType type) {
  static const std::array<const LayerKind*, 17> kKinds = {
      &kLinearKind,  &kConvKind,      &kBatchNormKind, &kLayerNormKind,   &kRmsNormKind,
      &kReluKind,    &kGeluKind,      &kMaxPoolKind,   &kAveragePoolKind, &kGlobalPoolKind,
      &kDropoutKind, &kEmbeddingKind, &kAttentionKind, &kHeadKind,        &kAddKind,
      &kCastKind,    &kQuantizeKind,
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

bool run_together(const LayerPlan& first, const LayerPlan& second) {
  using api::LayerType;
  if (second.type == LayerType::kGelu) return first.gelu_after.has_value();
  if (second.type == LayerType::kAdd) return first.ends_block;
  const bool norm = second.type == LayerType::kLayerNorm || second.type == LayerType::kRmsNorm;
  return norm && first.type == LayerType::kAdd && !first.relu;
}

}  // namespace fettle::trainer
