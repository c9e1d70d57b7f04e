// SobolSampler: trial i takes point i of a scrambled Sobol sequence with one dimension per
// parameter; if that point was already tried (finite spaces), it draws an untried one.
#include "search/incremental_sampler.h"
#include "search/maths/sobol_sequence.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

class SobolSampler final : public IncrementalSampler {
 public:
  SobolSampler(Space space, std::int64_t seed)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        sequence_(this->space().dimensions(), draw_key(seed, Purpose::kScramble)) {}
  std::string description() const override { return "sobol"; }

 protected:
  std::optional<Point> propose(std::int64_t trial) override {
    return untried_at(sequence_.at(static_cast<std::uint64_t>(trial)), trial);
  }

 private:
  SobolSequence sequence_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> make_sobol(Space space, std::int64_t seed) {
  if (space.dimensions() == 0 || space.dimensions() > SobolSequence::kMaxDimensions) {
    return invalid("sobol searches 1 to " + std::to_string(SobolSequence::kMaxDimensions) +
                   " parameters; found " + std::to_string(space.dimensions()) +
                   "; use random or tpe instead");
  }
  return std::unique_ptr<Sampler>(std::make_unique<SobolSampler>(std::move(space), seed));
}

}  // namespace fettle::search
