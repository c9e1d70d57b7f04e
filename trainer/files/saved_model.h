// SavedModel: a trained network as its checkpoint describes it, without the data that it was
// trained on: the layers, the weights, and the form of its samples.
//
// A pure function; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/json.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/image_set.h"
#include "trainer/data/sample_format.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

struct SavedModel {
  api::TrainerConfig config;
  SampleFormat format;
  PixelType pixels = PixelType::kByte;
  api::NormalizeConfig normalize;  // of images
  NetworkPlan plan;                // in fp32
  Position position;
  Json metrics;  // reported after the newest whole epoch
  std::vector<float> weights;
  std::vector<float> statistics;
  std::vector<float> int8_ranges;  // of the 8-bit network that the trial has validated; or empty
};

// Errors name the file (`path`): a checkpoint of an early version, which does not describe its
// samples; settings that this version cannot read; another number of weights than the layers need.
Result<SavedModel> read_saved_model(Checkpoint checkpoint, const std::string& path);

}  // namespace fettle::trainer
