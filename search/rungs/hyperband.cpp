// hyperband: points from the prior; promotion.h decides which trials are promoted.
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

class Hyperband final : public Sampler {
 public:
  Hyperband(std::unique_ptr<Sampler> points, std::vector<std::int64_t> rungs)
      : points_(std::move(points)), rungs_(std::move(rungs)) {}

  Suggestion suggest(const History& history, std::int64_t n) override {
    return points_->suggest(history, n);
  }
  std::string description() const override {
    return "hyperband (random points, rungs at " + list_steps(rungs_) + ")";
  }

 private:
  std::unique_ptr<Sampler> points_;
  std::vector<std::int64_t> rungs_;
};

}  // namespace

std::unique_ptr<Sampler> make_hyperband(const Problem& problem, Space space) {
  return std::make_unique<Hyperband>(make_random(std::move(space), problem.algorithm.seed),
                                     ladder_of(problem));
}

}  // namespace fettle::search
