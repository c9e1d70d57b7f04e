// RandomSampler (Bergstra & Bengio 2012). Trial i is a function of (seed, i) and, if a draw was
// already tried, of the points tried.
#include "search/incremental_sampler.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

class RandomSampler final : public IncrementalSampler {
 public:
  RandomSampler(Space space, std::int64_t seed)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true) {}
  std::string description() const override { return "random"; }

 protected:
  std::optional<Point> propose(std::int64_t trial) override { return draw_untried(trial); }
};

}  // namespace

std::unique_ptr<Sampler> make_random(Space space, std::int64_t seed) {
  return std::make_unique<RandomSampler>(std::move(space), seed);
}

}  // namespace fettle::search
