// BatchStaging: brings a micro-batch to the memory from which the backend reads it.
//
// If the backend shares the host's memory, the batch stays in place. Otherwise it goes into one of
// a few fixed places, in turn: a pass that was recorded for a place finds later batches there, too.
// The upload overlaps with the backend's work on the previous batch (kernels::UploadBuffers). If
// the backend holds the samples itself, only their indices are uploaded, and the pass begins with
// gathering the samples. One thread.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batch_writer.h"
#include "trainer/step/training_device.h"

namespace fettle::trainer {

// Samples that the backend is to hold, and their writers for training and evaluation. The pointees
// must outlive the staging.
struct HeldSamples {
  const ImageSet* images = nullptr;
  const BatchWriter* training = nullptr;
  const BatchWriter* evaluation = nullptr;
};

// A micro-batch in the backend's memory. A recorded pass fits all micro-batches that compare equal.
struct StagedBatch {
  std::int64_t samples = 0;
  std::int64_t predictions = 0;  // labels
  kernels::ConstBuffer pixels = nullptr;
  const std::int32_t* labels = nullptr;
  const std::int64_t* indices = nullptr;
  const std::uint32_t* epoch = nullptr;
  kernels::GatherOp* gather = nullptr;  // fills in pixels and labels; nullptr: they are in place
  auto operator<=>(const StagedBatch&) const = default;
};

class BatchStaging {
 public:
  struct Size {
    std::int64_t samples = 0;      // at most, in a batch
    std::int64_t bytes = 0;        // of a sample, in the network's input format
    std::int64_t predictions = 1;  // of a sample
    kernels::DataType type = kernels::DataType::kFloat32;
  };
  // `device` must outlive the staging. Errors: too little memory.
  static Result<BatchStaging> create(TrainingDevice& device, const Size& size,
                                     const std::optional<HeldSamples>& held);

  // A batch that was only dealt (indices without pixels) consists of held samples as training shows
  // them. If the backend has memory of its own, `batch` may change at once; otherwise only after
  // the work enqueued with the result is done. The result is valid until the call after the next.
  StagedBatch bring(const Batch& batch, std::int64_t epoch);

  // Whether a batch of these samples, as `writer` shows them, needs only indices.
  bool holds(const ImageSet& images, const BatchWriter& writer) const;
  // Stages a batch for which holds() is true.
  StagedBatch bring(std::span<const std::int64_t> samples, const BatchWriter& writer,
                    std::int64_t epoch);

  // Gathers the held samples of `batch`, if there is anything to gather. To be enqueued before the
  // batch is used; may be captured.
  void gather(const StagedBatch& batch);

  // Whether batches are always brought to the same places, so that passes can be recorded.
  bool is_fixed() const { return !backend_->shares_memory(); }

  // Seconds that the backend has stood still because a batch was still on its way.
  double waited() const { return upload_buffers_ ? upload_buffers_->waited() : 0; }

 private:
  BatchStaging(kernels::Backend& backend, const Size& size) : backend_(&backend), size_(size) {}
  Status hold(const HeldSamples& held, TrainingDevice& device);
  std::byte* begin_block(std::span<const std::int64_t> samples, std::int64_t epoch);

  kernels::Backend* backend_;
  Size size_;
  std::uint32_t host_epoch_ = 0;
  // Null if memory is shared.
  std::unique_ptr<kernels::UploadBuffers> upload_buffers_;
  // Empty unless samples are held: the set, its gather operations, and one gathered batch.
  std::optional<HeldSamples> held_;
  std::unique_ptr<kernels::GatherOp> training_;
  std::unique_ptr<kernels::GatherOp> evaluation_;
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
};

}  // namespace fettle::trainer
