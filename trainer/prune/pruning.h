// Pruning: which weights become 0 and stay 0 (training.prune), and when.
//
// The weights of linear and conv layers are pruned, the last layer's included, as by
// torch.nn.utils.prune on each of them; embeddings, biases and norms are not. Each layer loses the
// same share of its weights: thresholds over all layers would compare weights of different scales,
// and could empty a layer. The share grows with the cube of Zhu and Gupta (2017). Before some steps
// the mask is renewed from the weights; weights that are 0 are the smallest and so stay 0.
//
// Zeros tell the mask: a weight that is kept is never exactly 0 (kernels::UpdateBuffers::mask). So
// checkpoints need no mask. Pure values; usable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// A bit for each of the first NetworkPlan::decayed parameters, as in UpdateBuffers: it is kept. The
// gaps between blocks are not, so that they stay 0.
using PruneMask = std::vector<std::uint16_t>;

class Pruning {
 public:
  // `steps`: of the whole training. Errors: a layer that the pattern does not fit, by its name.
  static Result<Pruning> create(const api::PruneConfig& config, const NetworkPlan& plan,
                                std::int64_t steps);

  // Whether the mask is renewed before this step; steps count from 0.
  bool renews_before(std::int64_t step) const;
  // Share of each layer's weights that are 0 from this step on.
  double share_at(std::int64_t step) const;

  // `weights`: all parameters. Keeps the nonzero weights.
  PruneMask mask_of_zeros(std::span<const float> weights) const;
  PruneMask mask_at(std::int64_t step, std::span<const float> weights) const;

  std::int64_t prunable() const { return prunable_; }  // weights
  std::int64_t mask_words() const { return std::ssize(whole_); }
  // The number of weights that the mask drops.
  std::int64_t dropped_by(const PruneMask& mask) const;

 private:
  // A layer's weights. In a row of the file that export-model writes, four in turn are a group of
  // 2:4; each row of the trainer's is [pixels, channels], and there [channels, pixels].
  struct Layer {
    Block weights;
    std::int64_t pixels = 1;
    std::int64_t channels = 1;
  };

  Pruning(const api::PruneConfig& config, std::int64_t steps);
  Status add(const LayerPlan& layer, const NetworkPlan& plan);
  void drop_smallest(const Layer& layer, double share, std::span<const float> weights,
                     PruneMask& mask) const;
  static void drop_in_fours(const Layer& layer, std::int64_t dropped,
                            std::span<const float> weights, PruneMask& mask);

  api::PrunePattern pattern_;
  double final_share_;
  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t interval_;
  std::vector<Layer> layers_;
  std::int64_t prunable_ = 0;
  PruneMask whole_;  // drops the gaps only
};

}  // namespace fettle::trainer
