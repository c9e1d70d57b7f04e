// Stage: brings a micro-batch to where the backend reads it.
//
// Where the backend shares the host's memory that is where the batch lies already. Elsewhere it is
// copied into buffers that stay where they are, so that a pass which was recorded finds the next
// batch in them. One thread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batch_writer.h"

namespace fettle::trainer {

// A micro-batch in the backend's memory.
struct StagedBatch {
  std::int64_t samples = 0;
  std::int64_t predictions = 0;  // labels
  kernels::ConstBuffer pixels = nullptr;
  const std::int32_t* labels = nullptr;
  const std::int64_t* indices = nullptr;
  const std::uint32_t* epoch = nullptr;
};

class Stage {
 public:
  struct Size {
    std::int64_t samples = 0;      // at most, in a batch
    std::int64_t bytes = 0;        // of a sample, as the network takes it
    std::int64_t predictions = 1;  // of a sample
  };
  // `backend` must outlive the stage. Errors: too little memory.
  static Result<Stage> create(kernels::Backend& backend, const Size& size);

  // `batch` must stay as it is until the backend has done what is ordered with the result.
  StagedBatch bring(const Batch& batch, std::int64_t epoch);

  // Every batch is brought to the same place, so passes can be recorded.
  bool is_fixed() const { return !backend_->shares_memory(); }

 private:
  explicit Stage(kernels::Backend& backend, const Size& size)
      : backend_(&backend), bytes_per_sample_(size.bytes) {}

  kernels::Backend* backend_;
  std::int64_t bytes_per_sample_;
  // Empty where memory is shared.
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
  kernels::DeviceArray<std::int64_t> indices_;
  kernels::DeviceArray<std::uint32_t> epoch_;
  std::uint32_t host_epoch_ = 0;
};

}  // namespace fettle::trainer
