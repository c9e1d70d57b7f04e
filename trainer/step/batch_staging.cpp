#include "trainer/step/batch_staging.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace fettle::trainer {

namespace {

// Layout of an upload block: epoch | indices | labels | pixels, each on a cache line of its own.
// Labels and pixels are absent if the backend holds the samples.
constexpr std::int64_t kLine = 64;

std::int64_t in_lines(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

struct Layout {
  explicit Layout(const BatchStaging::Size& size)
      : labels(indices + in_lines(size.samples * std::int64_t{sizeof(std::int64_t)})),
        pixels(labels +
               in_lines(size.samples * size.predictions * std::int64_t{sizeof(std::int32_t)})),
        end(pixels + size.samples * size.bytes) {}
  std::int64_t indices = kLine;
  std::int64_t labels;
  std::int64_t pixels;
  std::int64_t end;
};

template <class T>
void write(std::span<const T> values, std::byte* to) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size_bytes());
}

template <class T>
const T* at(const std::byte* block, std::int64_t offset) {
  return reinterpret_cast<const T*>(block + offset);
}

}  // namespace

Result<BatchStaging> BatchStaging::create(TrainingDevice& device, const Size& size,
                                          const std::optional<HeldSamples>& held) {
  BatchStaging staging(device.backend(), size);
  if (!staging.is_fixed()) return staging;
  const Layout layout(size);
  FETTLE_ASSIGN(staging.upload_buffers_,
                device.backend().upload_buffers(held ? layout.labels : layout.end));
  if (held) FETTLE_TRY(staging.hold(*held, device));
  return staging;
}

Status BatchStaging::hold(const HeldSamples& held, TrainingDevice& device) {
  using Pixels = kernels::DeviceArray<std::uint8_t>;
  using Labels = kernels::DeviceArray<std::int32_t>;
  FETTLE_ASSIGN(const kernels::Samples samples, device.hold(*held.images));
  const kernels::PlanOptions plan{.max_samples = size_.samples, .type = size_.type};
  FETTLE_ASSIGN(training_, backend_->gather(samples, held.training->look(), plan));
  FETTLE_ASSIGN(evaluation_, backend_->gather(samples, held.evaluation->look(), plan));
  FETTLE_ASSIGN(pixels_, Pixels::create(*backend_, size_.samples * size_.bytes));
  FETTLE_ASSIGN(labels_, Labels::create(*backend_, size_.samples * size_.predictions));
  held_ = held;
  return success();
}

std::byte* BatchStaging::begin_block(std::span<const std::int64_t> samples, std::int64_t epoch) {
  CHECK(std::ssize(samples) <= size_.samples, "a batch that is larger than its stage");
  host_epoch_ = static_cast<std::uint32_t>(epoch);
  std::byte* const block = upload_buffers_->next();
  write(std::span<const std::uint32_t>(&host_epoch_, 1), block);
  write(samples, block + Layout(size_).indices);
  return block;
}

StagedBatch BatchStaging::bring(const Batch& batch, std::int64_t epoch) {
  if (batch.is_dealt()) {
    CHECK(held_.has_value(), "a batch without samples, which nobody holds");
    return bring(batch.indices, *held_->training, epoch);
  }
  const std::int64_t predictions = std::ssize(batch.labels);
  if (!is_fixed()) {  // the backend reads host memory: the batch stays where it lies
    host_epoch_ = static_cast<std::uint32_t>(epoch);
    return {
        batch.size(), predictions, batch.pixels.data(), batch.labels.data(), batch.indices.data(),
        &host_epoch_, nullptr};
  }
  // nullptr at the end of each result: nothing is left to gather.
  const Layout layout(size_);
  std::byte* const block = begin_block(batch.indices, epoch);
  const std::span pixels(batch.pixels.data(), static_cast<std::size_t>(batch.size() * size_.bytes));
  if (held_) {  // not the held samples (the test set); the blocks have no room for these
    // The upload ends where labels would begin: it carries epoch and indices only.
    const std::byte* const there = upload_buffers_->enqueue(layout.labels);
    pixels_.upload(pixels);
    labels_.upload(batch.labels);
    return {batch.size(),
            predictions,
            pixels_.data(),
            labels_.data(),
            at<std::int64_t>(there, layout.indices),
            at<std::uint32_t>(there, 0),
            nullptr};
  }
  write(std::span<const std::int32_t>(batch.labels), block + layout.labels);
  write(pixels, block + layout.pixels);
  // Pixels come last in a block, so the unfilled end of a smaller batch is not sent.
  const std::byte* const there = upload_buffers_->enqueue(layout.pixels + std::ssize(pixels));
  return {batch.size(),
          predictions,
          there + layout.pixels,
          at<std::int32_t>(there, layout.labels),
          at<std::int64_t>(there, layout.indices),
          at<std::uint32_t>(there, 0),
          nullptr};
}

bool BatchStaging::holds(const ImageSet& images, const BatchWriter& writer) const {
  return held_ && held_->images == &images &&
         (held_->training == &writer || held_->evaluation == &writer);
}

StagedBatch BatchStaging::bring(std::span<const std::int64_t> samples, const BatchWriter& writer,
                                std::int64_t epoch) {
  CHECK(held_ && holds(*held_->images, writer), "samples are gathered as they were to be held");
  const Layout layout(size_);
  begin_block(samples, epoch);
  // Uploads epoch and indices only; gather() fills in labels_ and pixels_.
  const std::byte* const there = upload_buffers_->enqueue(layout.labels);
  return {std::ssize(samples),
          std::ssize(samples) * size_.predictions,
          pixels_.data(),
          labels_.data(),
          at<std::int64_t>(there, layout.indices),
          at<std::uint32_t>(there, 0),
          (&writer == held_->training ? training_ : evaluation_).get()};
}

void BatchStaging::gather(const StagedBatch& batch) {
  if (batch.gather == nullptr) return;
  batch.gather->run(batch.samples, batch.indices, batch.epoch, pixels_.data(), labels_.data());
}

}  // namespace fettle::trainer
