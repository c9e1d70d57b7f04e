// LossScaler: the dynamic loss scale of fp16 training, as torch.amp.GradScaler has it.
//
// Gradients are multiplied by the scale, so that small ones do not vanish below 2^-24. A step whose
// gradients overflow is skipped and halves the scale; after kGrowthInterval good steps in a row it
// doubles. The scale is that of the mean loss, as in PyTorch. A pure value: the same steps give the
// same scales on all workers.
#pragma once

#include <cstdint>

namespace fettle::trainer {

struct LossScaler {
  static constexpr double kFirstScale = 65536;
  static constexpr double kSmallestScale = 1;  // below, the numbers are too large for fp16 as such
  static constexpr double kLargestScale = 0x1p127;
  static constexpr double kGrowth = 2;
  static constexpr double kBackoff = 0.5;
  static constexpr std::int64_t kGrowthInterval = 2000;

  double scale = kFirstScale;
  std::int64_t good_steps = 0;     // since the scale last changed
  std::int64_t skipped_steps = 0;  // of the whole training
  bool operator==(const LossScaler&) const = default;

  void count_good_step() {
    if (++good_steps < kGrowthInterval) return;
    good_steps = 0;
    if (scale < kLargestScale) scale *= kGrowth;
  }

  // False, and nothing changed, at the smallest scale: a smaller one would not help.
  bool skip_step() {
    if (scale <= kSmallestScale) return false;
    scale *= kBackoff;
    good_steps = 0;
    ++skipped_steps;
    return true;
  }
};

}  // namespace fettle::trainer
