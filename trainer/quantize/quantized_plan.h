// QuantizedPlan: a trained network as one that computes in 8 bits. A batch norm right behind a
// linear or conv layer is folded into that layer's weights. Inputs of the remaining linear and conv
// layers, and of images the summands of residual blocks, pass a `quantize` layer
// (model/quantized_inputs.h), whose range lies in the statistics. All else stays fp32: its outputs
// are quantised where such a layer reads them.
//
// A network trained on the grids (LayerPlan::weight_bits) keeps its norms, and has a range for each
// range of the folded one, in the same order. Rounding commutes with folding, because a channel's
// weights have their own scale: so both compute the same.
// Pure values and functions; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/sample_format.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// A network with its numbers in host memory.
struct NetworkValues {
  NetworkPlan plan;
  std::vector<float> weights;
  std::vector<float> statistics;
};

// `weights`, `statistics`: of plan_network(model, format). The ranges are still empty. Errors: as
// plan_network().
Result<NetworkValues> quantized_network(const api::ModelConfig& model, const SampleFormat& format,
                                        std::span<const float> weights,
                                        std::span<const float> statistics);

// Its plan.
Result<NetworkPlan> quantized_plan(const api::ModelConfig& model, const SampleFormat& format);

// Errors: as plan_network(); no layer that can compute in 8 bits.
Status check_quantizable(const api::ModelConfig& model, const SampleFormat& format);

// Whether the layer computes in 8 bits: it is linear or conv, behind a quantize layer.
bool is_quantized(const NetworkPlan& plan, const LayerPlan& layer);

// The ranges of all quantize layers, two numbers each, in the order of the layers; and back.
// Errors: another number of ranges.
std::vector<float> ranges_of(const NetworkPlan& plan, std::span<const float> statistics);
Status set_ranges(std::span<const float> ranges, const NetworkPlan& plan,
                  std::span<float> statistics);

// Bytes of such a network: a byte for each weight of the layers that compute in 8 bits, with a
// scale for each output; four for any other number.
std::int64_t int8_bytes(const NetworkPlan& plan);

}  // namespace fettle::trainer
