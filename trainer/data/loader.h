// Loader: prepares the micro-batches of one worker ahead of the training, on one background thread:
// writes their samples or, if the backend holds these, only names them.
//
// The batches are a pure function of the settings and the starting position; the thread only
// decides when they are computed. At most kSlots batches are ready or in work.
// Used from one thread; the ImageSet must outlive the loader.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "trainer/data/batch_writer.h"
#include "trainer/data/batching.h"
#include "trainer/data/image_set.h"
#include "trainer/data/split.h"

namespace fettle::trainer {

// Progress of a training: `offset` samples of epoch `epoch`'s order are used up.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t offset = 0;
  bool operator==(const Position&) const = default;
};

struct LoaderSettings {
  std::uint64_t seed = 0;   // of the epochs' orders
  std::int64_t epochs = 1;  // ends before this epoch
  std::int64_t global_batch = 1;
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  std::int64_t max_samples = 1;  // in a micro-batch
  std::int64_t norm_group = 0;   // as in Dealing
  bool deals_only = false;       // batches have only indices
  Dealing dealing() const { return {world_size, rank, max_samples, norm_group}; }
};

// A micro-batch and its place: samples `global` of the epoch's order make the optimiser step.
struct LoadedBatch {
  Batch batch;
  Range global;
  bool last_of_step = false;
};

class Loader {
 public:
  static constexpr std::int64_t kSlots = 3;  // batches

  Loader(const ImageSet& images, const Indices& train, const BatchWriter& writer,
         const LoaderSettings& settings, Position start);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next micro-batch, valid until the next call. A worker without samples in a step gets an
  // empty batch, so that every worker takes every step. Must not be called after the last epoch.
  const LoadedBatch& next();

  // Seconds that next() has waited for data.
  double waited() const { return waited_; }

 private:
  void run();
  // Prepares one optimiser step's micro-batches; returns false if the loader is being destroyed.
  bool load_step(const Indices& order, std::int64_t epoch, Range global);
  LoadedBatch* wait_for_free_slot();
  LoadedBatch& slot(std::int64_t number) {
    return slots_[static_cast<std::size_t>(number % kSlots)];
  }

  const ImageSet& images_;
  const Indices& train_;
  const BatchWriter writer_;
  const LoaderSettings settings_;
  const Position start_;
  std::array<LoadedBatch, kSlots> slots_;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t produced_ = 0;   // batches written; guarded by mutex_, as the two below
  std::int64_t consumed_ = -1;  // batches the consumer is done with; it still holds the next one
  bool stopping_ = false;

  std::thread thread_;  // last: starts when all other members exist
};

}  // namespace fettle::trainer
