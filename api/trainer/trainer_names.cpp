#include <array>

#include "api/trainer/trainer_config.h"

namespace fettle::api {
namespace {

constexpr std::array<EnumName<LayerType>, 18> kLayerTypes{{
    {LayerType::kLinear, "linear"},
    {LayerType::kConv, "conv"},
    {LayerType::kBatchNorm, "batchNorm"},
    {LayerType::kLayerNorm, "layerNorm"},
    {LayerType::kRmsNorm, "rmsNorm"},
    {LayerType::kRelu, "relu"},
    {LayerType::kGelu, "gelu"},
    {LayerType::kMaxPool, "maxPool"},
    {LayerType::kAveragePool, "averagePool"},
    {LayerType::kGlobalPool, "globalPool"},
    {LayerType::kFlatten, "flatten"},
    {LayerType::kDropout, "dropout"},
    {LayerType::kEmbedding, "embedding"},
    {LayerType::kAttention, "attention"},
    {LayerType::kHead, "head"},
    {LayerType::kResidual, "residual"},
    {LayerType::kShortcut, "shortcut"},
    {LayerType::kAdd, "add"},
}};
constexpr std::array<EnumName<GeluApproximation>, 2> kGeluApproximations{{
    {GeluApproximation::kNone, "none"},
    {GeluApproximation::kTanh, "tanh"},
}};
constexpr std::array<EnumName<TensorNames>, 4> kTensorNames{{
    {TensorNames::kAuto, "auto"},
    {TensorNames::kFettle, "fettle"},
    {TensorNames::kGpt2, "gpt2"},
    {TensorNames::kResnet, "resnet"},
}};
constexpr std::array<EnumName<OptimizerKind>, 5> kOptimizers{{
    {OptimizerKind::kSgd, "sgd"},
    {OptimizerKind::kAdam, "adam"},
    {OptimizerKind::kAdamW, "adamw"},
    {OptimizerKind::kRmsprop, "rmsprop"},
    {OptimizerKind::kLamb, "lamb"},
}};
constexpr std::array<EnumName<Precision>, 5> kPrecisions{{
    {Precision::kAuto, "auto"},
    {Precision::kFp32, "fp32"},
    {Precision::kTf32, "tf32"},
    {Precision::kBf16, "bf16"},
    {Precision::kFp16, "fp16"},
}};
constexpr std::array<EnumName<ScheduleKind>, 4> kSchedules{{
    {ScheduleKind::kConstant, "constant"},
    {ScheduleKind::kStep, "step"},
    {ScheduleKind::kCosine, "cosine"},
    {ScheduleKind::kLinear, "linear"},
}};
constexpr std::array<EnumName<ScalingRule>, 4> kScalingRules{{
    {ScalingRule::kAuto, "auto"},
    {ScalingRule::kNone, "none"},
    {ScalingRule::kLinear, "linear"},
    {ScalingRule::kSqrt, "sqrt"},
}};
constexpr std::array<EnumName<Calibration>, 2> kCalibrations{{
    {Calibration::kMinMax, "minMax"},
    {Calibration::kPercentile, "percentile"},
}};
constexpr std::array<EnumName<QuantizeMethod>, 2> kQuantizeMethods{{
    {QuantizeMethod::kPtq, "ptq"},
    {QuantizeMethod::kQat, "qat"},
}};
constexpr std::array<EnumName<PrunePattern>, 2> kPrunePatterns{{
    {PrunePattern::kUnstructured, "unstructured"},
    {PrunePattern::kTwoOfFour, "2:4"},
}};
constexpr std::array<EnumName<BackendKind>, 4> kBackends{{
    {BackendKind::kAuto, "auto"},
    {BackendKind::kReference, "reference"},
    {BackendKind::kOnednn, "onednn"},
    {BackendKind::kCuda, "cuda"},
}};

}  // namespace

EnumNames<LayerType> names_of(LayerType /*any*/) { return kLayerTypes; }
EnumNames<GeluApproximation> names_of(GeluApproximation /*any*/) { return kGeluApproximations; }
EnumNames<TensorNames> names_of(TensorNames /*any*/) { return kTensorNames; }
EnumNames<OptimizerKind> names_of(OptimizerKind /*any*/) { return kOptimizers; }
EnumNames<Precision> names_of(Precision /*any*/) { return kPrecisions; }
EnumNames<ScheduleKind> names_of(ScheduleKind /*any*/) { return kSchedules; }
EnumNames<ScalingRule> names_of(ScalingRule /*any*/) { return kScalingRules; }
EnumNames<Calibration> names_of(Calibration /*any*/) { return kCalibrations; }
EnumNames<QuantizeMethod> names_of(QuantizeMethod /*any*/) { return kQuantizeMethods; }
EnumNames<PrunePattern> names_of(PrunePattern /*any*/) { return kPrunePatterns; }
EnumNames<BackendKind> names_of(BackendKind /*any*/) { return kBackends; }

}  // namespace fettle::api
