// GridSampler: suggests the first untried point of the enumeration. The grid is never listed: point
// number k is computed from k (space.h), its position in the random order by a keyed permutation.
#include "search/incremental_sampler.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

class GridSampler final : public IncrementalSampler {
 public:
  GridSampler(Space space, std::int64_t seed, bool shuffle)
      : IncrementalSampler(std::move(space), seed, shuffle), shuffle_(shuffle) {}

  std::string description() const override {
    std::string out = shuffle_ ? "grid in random order" : "grid";
    if (space().finite()) out += " of " + std::to_string(space().size()) + " points";
    return out;
  }

 protected:
  std::optional<Point> propose(std::int64_t trial) override {
    // A grid of 2^63 points or more is never exhausted: its random order is random draws.
    return shuffle_ && !space().finite() ? draw_untried(trial) : next_untried();
  }

 private:
  bool shuffle_;
};

}  // namespace

std::unique_ptr<Sampler> make_grid(const Space& space, std::int64_t seed, std::int64_t points,
                                   bool shuffle) {
  return std::make_unique<GridSampler>(space.with_points(static_cast<std::uint64_t>(points)), seed,
                                       shuffle);
}

}  // namespace fettle::search
