#include "trainer/data/loader.h"

#include <algorithm>
#include <chrono>

namespace fettle::trainer {

Loader::Loader(const ImageSet& images, const Indices& train, const BatchWriter& writer,
               const LoaderSettings& settings, Position start)
    : images_(images), train_(train), writer_(writer), settings_(settings), start_(start) {
  for (LoadedBatch& loaded : slots_) {
    if (!settings.deals_only) loaded.batch = writer_.make_batch(images, settings.max_samples);
  }
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const LoadedBatch& Loader::next() {
  std::unique_lock lock(mutex_);
  ++consumed_;  // frees the slot of the batch that the caller held
  changed_.notify_all();
  if (produced_ <= consumed_) {
    const auto before = std::chrono::steady_clock::now();
    changed_.wait(lock, [this] { return produced_ > consumed_; });
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
  return slot(consumed_);
}

LoadedBatch* Loader::wait_for_free_slot() {
  std::unique_lock lock(mutex_);
  // Before the first next() no batch is held, and consumed_ is -1.
  changed_.wait(lock, [this] {
    return stopping_ || produced_ - std::max<std::int64_t>(consumed_, 0) < kSlots;
  });
  return stopping_ ? nullptr : &slot(produced_);
}

bool Loader::load_step(const Indices& order, std::int64_t epoch, Range global) {
  std::vector<Range> pieces = deal(global, settings_.dealing());
  // An empty micro-batch makes a worker without samples take the step, too.
  if (pieces.empty()) pieces.push_back({global.begin, global.begin});
  for (const Range& piece : pieces) {
    LoadedBatch* loaded = wait_for_free_slot();
    if (loaded == nullptr) return false;
    const std::span<const std::int64_t> samples(order.data() + piece.begin,
                                                static_cast<std::size_t>(piece.size()));
    if (settings_.deals_only) {
      loaded->batch.indices.assign(samples.begin(), samples.end());
    } else {
      writer_.write(images_, samples, epoch, loaded->batch);
    }
    loaded->global = global;
    loaded->last_of_step = &piece == &pieces.back();
    {
      const std::lock_guard lock(mutex_);
      ++produced_;
    }
    changed_.notify_all();
  }
  return true;
}

void Loader::run() {
  const std::int64_t samples = std::ssize(train_);
  std::int64_t offset = start_.offset;
  for (std::int64_t epoch = start_.epoch; epoch < settings_.epochs; ++epoch, offset = 0) {
    const Indices order = epoch_order(train_, settings_.seed, epoch);
    while (offset < samples) {
      const Range global{offset, std::min(offset + settings_.global_batch, samples)};
      if (!load_step(order, epoch, global)) return;
      offset = global.end;
    }
  }
}

}  // namespace fettle::trainer
