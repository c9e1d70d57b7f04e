// DataFingerprint: tells whether two workers, or two runs, train on the same samples.
//
// It covers the content as it was loaded, independent of paths: counts, classes, shape, a hash of
// all pixels (or tokens), a hash of all labels, and the normalisation. Workers compare it before
// they train; a checkpoint keeps it, and a resume or a population's child compares it (decision
// 59).
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "trainer/data/image_set.h"

namespace fettle::trainer {

// A hash of every byte; equal on machines of one byte order.
std::uint64_t content_hash(std::span<const std::uint8_t> bytes);
// The last digits of a number in base 16.
std::string hexadecimal(std::uint64_t value, int digits = 16);

struct DataFingerprint {
  Json train;      // the set that training and validation samples come from; null: unknown
  Json normalize;  // of its training samples
  Json test;       // null: no test set
  bool operator==(const DataFingerprint&) const = default;

  bool is_known() const { return !train.is_null(); }
  // Eight digits, for people who compare the first lines of two runs.
  std::string digest() const;
};

DataFingerprint fingerprint_of(const ImageSet& train, const api::NormalizeConfig& normalize,
                               const ImageSet* test);

// As JSON, for other workers and for checkpoints. JSON of another form reads as unknown.
Json to_json(const DataFingerprint& fingerprint);
DataFingerprint read_fingerprint(const Json& json);

// "600 samples there, 720 here", for the first property in which two sets differ; "" if they are
// equal or one is unknown.
std::string difference_of_sets(const Json& there, const Json& here);

}  // namespace fettle::trainer
