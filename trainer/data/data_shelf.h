// DataShelf: the data of the newest trainings, for trainings that follow in the same process.
//
// Data is loaded anew when one of its files has another size, time or place. Thread-safe: a second
// training waits while the first loads the same data.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/cache.h"
#include "trainer/data/training_data.h"

namespace fettle::trainer {

class DataShelf {
 public:
  using MakeCache = std::function<DataCache()>;

  // Keeps `most` sets of data; trainings that still use others keep them alive. `cache`: of one
  // set, since a cache holds the files that it has mapped.
  DataShelf(MakeCache cache, std::size_t most) : cache_(std::move(cache)), most_(most) {}

  // As load_training_data().
  Result<std::shared_ptr<const TrainingData>> load(const api::DataConfig& config);

 private:
  struct Loaded {
    DataCache cache;
    TrainingData data;
  };
  struct Kept {
    api::DataConfig config;
    std::string files;  // their sizes, times and places
    std::shared_ptr<const TrainingData> data;
  };

  std::mutex mutex_;
  const MakeCache cache_;
  const std::size_t most_;
  std::vector<Kept> kept_;  // the newest last
};

}  // namespace fettle::trainer
