// BatchStaging: brings a micro-batch to where the backend reads it.
//
// Where the backend shares the host's memory that is where the batch lies already. Elsewhere the
// batch goes into one of a few places, in turn, so that a pass which was recorded for a place finds
// later batches there, too; it is on its way while the backend works on the batch before
// (kernels::UploadBuffers). Or the backend holds the samples themselves: then only their indices
// are brought, and the pass begins with gathering them. One thread.
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
#include "trainer/training_device.h"

namespace fettle::trainer {

// Samples that the backend is to hold, and how they look in training and in evaluation. What is
// pointed to must outlive the stage.
struct HeldSamples {
  const ImageSet* images = nullptr;
  const BatchWriter* training = nullptr;
  const BatchWriter* evaluation = nullptr;
};

// A micro-batch in the backend's memory. What was recorded for one fits all that are equal.
struct StagedBatch {
  std::int64_t samples = 0;
  std::int64_t predictions = 0;  // labels
  kernels::ConstBuffer pixels = nullptr;
  const std::int32_t* labels = nullptr;
  const std::int64_t* indices = nullptr;
  const std::uint32_t* epoch = nullptr;
  kernels::GatherOp* gather = nullptr;  // what fills in pixels and labels; none: they are there
  auto operator<=>(const StagedBatch&) const = default;
};

class BatchStaging {
 public:
  struct Size {
    std::int64_t samples = 0;      // at most, in a batch
    std::int64_t bytes = 0;        // of a sample, as the network takes it
    std::int64_t predictions = 1;  // of a sample
    kernels::DataType type = kernels::DataType::kFloat32;
  };
  // `device` must outlive the staging. Errors: too little memory.
  static Result<BatchStaging> create(TrainingDevice& device, const Size& size,
                                     const std::optional<HeldSamples>& held);

  // A batch that was only dealt is of the samples that are held, as they look in training. Where
  // the backend has memory of its own `batch` may change at once; elsewhere when it has done what
  // is enqueued with the result. The result is good until the call after the next.
  StagedBatch bring(const Batch& batch, std::int64_t epoch);

  // Whether a batch of these samples, as `writer` shows them, needs nothing but indices.
  bool holds(const ImageSet& images, const BatchWriter& writer) const;
  // Such a batch.
  StagedBatch bring(std::span<const std::int64_t> samples, const BatchWriter& writer,
                    std::int64_t epoch);

  // Fills in what is still to be gathered. To be enqueued before the batch is used; may be
  // captured.
  void gather(const StagedBatch& batch);

  // Batches are brought to the same places, so passes can be recorded.
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
  // Empty where memory is shared.
  std::unique_ptr<kernels::UploadBuffers> upload_buffers_;
  // Empty unless samples are held: what gathers them, and a batch of them.
  std::optional<HeldSamples> held_;
  std::unique_ptr<kernels::GatherOp> training_;
  std::unique_ptr<kernels::GatherOp> evaluation_;
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
};

}  // namespace fettle::trainer
