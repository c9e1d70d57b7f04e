#include "trainer/stage.h"

#include <span>
#include <utility>

namespace fettle::trainer {

Result<Stage> Stage::create(kernels::Backend& backend, const Size& size) {
  using kernels::DeviceArray;
  Stage stage(backend, size);
  if (!stage.is_fixed()) return stage;
  FETTLE_ASSIGN(stage.pixels_,
                DeviceArray<std::uint8_t>::create(backend, size.samples * size.bytes));
  FETTLE_ASSIGN(stage.labels_,
                DeviceArray<std::int32_t>::create(backend, size.samples * size.predictions));
  FETTLE_ASSIGN(stage.indices_, DeviceArray<std::int64_t>::create(backend, size.samples));
  FETTLE_ASSIGN(stage.epoch_, DeviceArray<std::uint32_t>::create(backend, 1));
  return stage;
}

StagedBatch Stage::bring(const Batch& batch, std::int64_t epoch) {
  host_epoch_ = static_cast<std::uint32_t>(epoch);
  if (!is_fixed()) {
    return {batch.size(),        std::ssize(batch.labels), batch.pixels.data(),
            batch.labels.data(), batch.indices.data(),     &host_epoch_};
  }
  const auto bytes = static_cast<std::size_t>(batch.size() * bytes_per_sample_);
  pixels_.upload({batch.pixels.data(), bytes});
  labels_.upload(batch.labels);
  indices_.upload(batch.indices);
  epoch_.upload(std::span(&host_epoch_, 1));
  return {batch.size(),   std::ssize(batch.labels), pixels_.data(),
          labels_.data(), indices_.data(),          epoch_.data()};
}

}  // namespace fettle::trainer
