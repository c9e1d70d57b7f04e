// Teacher: the network of training.distill, read from its file and fitted to the student's samples.
//
// Both take the same batch, so the teacher must have been trained on samples of the same form,
// normalised alike. Pure but for reading the file; usable from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/training_data.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

struct Teacher {
  NetworkPlan plan;  // in the student's precision
  std::vector<float> weights;
  std::vector<float> statistics;
};

// The teacher of `config`; absent without training.distill. Errors: the file is missing, or no
// model of export-model; it takes other samples than the data, has other classes or another
// vocabulary, or normalises otherwise.
Result<std::optional<Teacher>> read_teacher(const api::TrainerConfig& config,
                                            const TrainingData& data);

}  // namespace fettle::trainer
