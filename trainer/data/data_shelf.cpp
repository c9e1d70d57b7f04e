#include "trainer/data/data_shelf.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace fettle::trainer {
namespace {

// The data does not depend on the augmentation of its batches.
api::DataConfig without_augmentation(api::DataConfig config) {
  config.augment = {};
  return config;
}

std::string stamps_of(const api::DataConfig& config) {
  std::string stamps;
  for (const std::string* path : {&config.train_images, &config.train_labels, &config.test_images,
                                  &config.test_labels, &config.train_text, &config.test_text}) {
    struct stat about {};
    if (path->empty() || ::stat(path->c_str(), &about) != 0) continue;
    stamps += std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino) + ":" +
              std::to_string(about.st_size) + ":" + std::to_string(about.st_mtim.tv_sec) + "." +
              std::to_string(about.st_mtim.tv_nsec) + " ";
  }
  return stamps;
}

}  // namespace

Result<std::shared_ptr<const TrainingData>> DataShelf::load(const api::DataConfig& config) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const api::DataConfig wanted = without_augmentation(config);
  std::string files = stamps_of(wanted);  // before loading: a later change shows next time
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.config == wanted && kept.files == files; });
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    return kept_.back().data;
  }
  std::erase_if(kept_, [&](const Kept& kept) { return kept.config == wanted; });
  const auto loaded = std::make_shared<Loaded>(cache_(), TrainingData{});
  FETTLE_ASSIGN(loaded->data, load_training_data(config, loaded->cache));
  std::shared_ptr<const TrainingData> data(loaded, &loaded->data);
  kept_.push_back({wanted, std::move(files), data});
  if (kept_.size() > most_) kept_.erase(kept_.begin());
  return data;
}

}  // namespace fettle::trainer
