// Checkpoint: everything a training needs to resume bit for bit, as one file.
//
// File: magic, version, length of the metadata, size of the file, checksum of the rest; then the
// metadata as JSON and the arrays of floats, little-endian. A reader trusts nothing before the size
// and the checksum agree, so a truncated or damaged file is never loaded.
// Pure functions; usable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "trainer/data/loader.h"

namespace fettle::trainer {

// Sums over the samples of an unfinished epoch.
struct EpochSums {
  double loss = 0;
  std::int64_t samples = 0;
  bool operator==(const EpochSums&) const = default;
};

struct Checkpoint {
  std::string layout;        // of the network: weights fit only the same layout
  Json settings;             // all else that the numbers depend on: seed, data, training
  Json data;                 // the fingerprint of the samples; null in older checkpoints
  Position position;         // samples used up
  std::int64_t updates = 0;  // of the optimiser, a parent's included
  EpochSums sums;
  kernels::LossScale loss_scale;  // fp16
  Json metrics = Json::object();  // reported after the newest whole epoch
  // The epoch's 8-bit network (trainer/quantize) has two numbers here for each of its ranges.
  std::vector<float> int8_ranges;
  std::vector<float> weights;
  std::vector<float> statistics;
  std::vector<float> state1;
  std::vector<float> state2;
  bool operator==(const Checkpoint&) const = default;
};

std::string encode_checkpoint(const Checkpoint& checkpoint);

// The same bytes without a copy of the arrays: the file is `head` followed by `arrays`.
struct CheckpointParts {
  std::string head;
  std::array<std::string_view, 4> arrays;  // of the checkpoint
};
CheckpointParts encode_in_parts(const Checkpoint& checkpoint);

// Errors, each with `name` (the file's): not a checkpoint, another version, truncated or too long,
// damaged.
Result<Checkpoint> decode_checkpoint(std::string_view bytes, const std::string& name);

}  // namespace fettle::trainer
