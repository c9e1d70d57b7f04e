// Paths of the fields of the built-in trainer's configuration that a parameter may set, as in
// `sets`: "training.learningRate", "model.layers[0].units". Pure.
#pragma once

#include <string>
#include <vector>

namespace fettle::crds {

struct TrainerPaths {
  std::vector<std::string> plain;
  std::vector<std::string> in_lists;  // "model.layers[].units"
};

TrainerPaths trainer_paths();

}  // namespace fettle::crds
