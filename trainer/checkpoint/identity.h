// Identity: decides whether a checkpoint belongs to a training. Weights fit networks of the same
// layout; resuming bit for bit also needs the same seed, data and training.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "base/result.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// The shapes of all layers, as text: equal if and only if the networks' parameters are
// interchangeable.
std::string layout_of(const NetworkPlan& plan);

// The content of the files that a training reads besides its data, as hashes: "content 8f0c…"; ""
// if the configuration names no such file.
struct FileHashes {
  std::string start;    // model.from.file
  std::string teacher;  // training.distill.teacher
};

// Errors: a file cannot be read.
Result<FileHashes> hash_files(const api::TrainerConfig& config);

// The configuration and the seed, without fields that change only speed (backend, threads,
// maxPerWorker) or that nothing is learnt from (test files). `files` stand for their paths:
// another path to the same content changes nothing.
Json settings_of(const api::TrainerConfig& config, std::uint64_t seed,
                 const FileHashes& files = {});

// "training.learningRate is 0.1 there and 0.2 here", for the first field in which the two differ;
// "" if they are equal.
std::string difference(const Json& there, const Json& here, const std::string& path = "");

}  // namespace fettle::trainer
