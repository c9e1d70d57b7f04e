// Names of the numbers in the built-in trainer's reports: their only list. docs/trainer.md explains
// each; a test checks that none is missing there.
#pragma once

#include "api/trial/display.h"
#include "api/trial/report.h"

namespace fettle::api::metric {

// Results.
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kValidationLoss = "validation_loss";
inline constexpr const char* kValidationAccuracy = "validation_accuracy";
inline constexpr const char* kValidationPerplexity = "validation_perplexity";
inline constexpr const char* kValidationBits = "validation_bits_per_character";
inline constexpr const char* kTestLoss = "test_loss";
inline constexpr const char* kTestAccuracy = "test_accuracy";
inline constexpr const char* kDivergedEpoch = "diverged_epoch";

// The network's cost in use: results, too.
inline constexpr const char* kParameters = "parameters";
inline constexpr const char* kModelSize = "model_mib";
inline constexpr const char* kFlopsPerSample = "flops_per_sample";
inline constexpr const char* kInferenceMs = "inference_ms";
inline constexpr const char* kSparsity = "sparsity";
inline constexpr const char* kNonzeroParameters = "nonzero_parameters";

// The same network in 8 bits: training.quantize.
inline constexpr const char* kInt8Accuracy = "int8_validation_accuracy";
inline constexpr const char* kInt8Size = "int8_model_mib";

// Speed.
inline constexpr const char* kImages = kImagesPerSecond.name;
inline constexpr const char* kTokens = kTokensPerSecond.name;
inline constexpr const char* kStepMedian = "step_ms_median";
inline constexpr const char* kStepP95 = "step_ms_p95";
inline constexpr const char* kStepP99 = "step_ms_p99";
inline constexpr const char* kDataWait = "data_wait";
inline constexpr const char* kFallbacks = "fallbacks";
inline constexpr const char* kSeconds = "seconds";
inline constexpr const char* kFlops = "flops_per_second";
inline constexpr const char* kMfu = "mfu";
inline constexpr const char* kCommunicationShare = "communication_share";

// Use of the machine.
inline constexpr const char* kMemory = "memory_mib";
inline constexpr const char* kOptimizer = "optimizer_mib";
inline constexpr const char* kGpuUtilization = "gpu_utilization";
inline constexpr const char* kGpuMemory = api::kGpuMemoryUsed;
inline constexpr const char* kGpuMemoryPlanned = api::kGpuMemoryPlanned;
inline constexpr const char* kGpuPower = "gpu_power_watts";
inline constexpr const char* kGpuEnergy = "gpu_energy_joules";

// Settings in force.
inline constexpr const char* kLearningRate = "learning_rate";
inline constexpr const char* kGlobalBatch = "global_batch";
inline constexpr const char* kWorldSize = "world_size";
inline constexpr const char* kAccumulation = "accumulation";
inline constexpr const char* kLossScale = "loss_scale";
inline constexpr const char* kSkippedSteps = "skipped_steps";

inline constexpr const char* kAll[] = {kLoss,
                                       kValidationLoss,
                                       kValidationAccuracy,
                                       kValidationPerplexity,
                                       kValidationBits,
                                       kTestLoss,
                                       kTestAccuracy,
                                       kDivergedEpoch,
                                       kParameters,
                                       kModelSize,
                                       kFlopsPerSample,
                                       kInferenceMs,
                                       kInt8Accuracy,
                                       kInt8Size,
                                       kSparsity,
                                       kNonzeroParameters,
                                       kImages,
                                       kTokens,
                                       kStepMedian,
                                       kStepP95,
                                       kStepP99,
                                       kDataWait,
                                       kSeconds,
                                       kFlops,
                                       kMfu,
                                       kCommunicationShare,
                                       kFallbacks,
                                       kMemory,
                                       kOptimizer,
                                       kGpuUtilization,
                                       kGpuMemory,
                                       kGpuMemoryPlanned,
                                       kGpuPower,
                                       kGpuEnergy,
                                       kLearningRate,
                                       kGlobalBatch,
                                       kWorldSize,
                                       kAccumulation,
                                       kLossScale,
                                       kSkippedSteps};

}  // namespace fettle::api::metric
