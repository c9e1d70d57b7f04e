// Add ends a residual block (He et al. 2016): the sum of what its layers and its shortcut give. It
// takes two inputs, so the network itself runs it (network.cpp); there is nothing to make.
#include "trainer/model/layer_kinds.h"

namespace fettle::trainer {

namespace {

Status plan_add(const api::ModelConfig&, const api::LayerConfig&, bool, LayerPlan&) {
  return success();
}

Result<std::unique_ptr<Layer>> make_none(const LayerPlan&, const LayerContext&) {
  return std::unique_ptr<Layer>();
}

}  // namespace

const LayerKind kAddKind{api::LayerType::kAdd, plan_add, make_none, /*reads=*/{}};

}  // namespace fettle::trainer
