// Split: chooses the samples held out for validation, and the order in which an epoch visits the
// others. Both are keyed functions, without state: every worker and every restart computes the
// same.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"

namespace fettle::trainer {

using Indices = std::vector<std::int64_t>;  // of samples in an ImageSet

struct Split {
  Indices train;
  Indices validation;
};

// A permutation of 0, ..., n - 1 that depends on `key` alone (Fisher-Yates under Philox); O(n).
Indices keyed_permutation(std::int64_t n, std::uint64_t key);

// Splits `count` samples by data.splitSeed, validationSamples and trainSamples. The held-out
// samples do not depend on trainSamples, so Studies of different sizes are judged alike.
// Errors: fewer samples than the two ask for; no sample left to train on.
Result<Split> split_samples(std::int64_t count, const api::DataConfig& data);

// The same for a text's pieces, by position: the last are held out, the first are trained on.
Result<Split> split_text(std::int64_t count, const api::DataConfig& data);

// The training samples in the order of this epoch.
Indices epoch_order(const Indices& train, std::uint64_t seed, std::int64_t epoch);

}  // namespace fettle::trainer
