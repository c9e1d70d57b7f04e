// DifferentialEvolution (Storn and Price 1997), rand/1/bin, with the constants of DEHB (Awad et al.
// 2021, "DEHB: Evolutionary hyperband for scalable, robust and efficient hyperparameter
// optimization"): a new point is a member of the population with about half of its coordinates
// replaced by the coordinates of another member, moved by half the difference of two others.
//
// The population is the best of all ended trials, so members are replaced one by one, whenever a
// trial ends. Points are moved on the unit interval of each parameter; a coordinate that leaves it
// is drawn again, and so is a parameter that a parent does not have.
#include <algorithm>
#include <array>

#include "search/incremental_sampler.h"
#include "search/maths/ranking.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

constexpr std::size_t kLeastPopulation = 10;
constexpr std::size_t kMostPopulation = 50;
constexpr std::size_t kMembersPerParameter = 3;
constexpr double kScale = 0.5;
constexpr double kCrossover = 0.5;
constexpr int kMaxAttempts = 8;  // offspring that were already tried

class DifferentialEvolution final : public IncrementalSampler {
 public:
  DifferentialEvolution(Space space, std::int64_t seed, std::vector<api::Objective> objectives)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        objectives_(std::move(objectives)),
        ranking_(objectives_),
        population_(std::clamp(kMembersPerParameter * this->space().dimensions(), kLeastPopulation,
                               kMostPopulation)) {}

  std::string description() const override {
    return "differential evolution (the best " + std::to_string(population_) + ")";
  }

 protected:
  void add_trial(const Point* point) override { points_.push_back(point ? *point : Point()); }
  void remove_trial() override { points_.pop_back(); }
  void add_event(const Event& event) override { ranking_.add(event.trial, event.fact); }
  void reset() override {
    points_.clear();
    ranking_ = Ranking(objectives_);
  }

  std::optional<Point> propose(std::int64_t trial) override {
    std::optional<Offspring> found = evolve(trial);
    return found ? std::move(found->point) : draw_untried(trial);
  }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    Explanation out;
    // The origin of a point is not stored: it was evolved if evolving gives it again.
    const std::optional<Offspring> found = evolve(trial);
    if (!found || space().key(found->point) != space().key(point)) {
      out.words = "drawn from the prior; a population of " + std::to_string(kLeastPopulation) +
                  " evolves, and " + std::to_string(population().size()) + " have ended";
      return out;
    }
    // In the order of Offspring::parents: target, base, and the two members of the difference.
    const auto number = [&found](std::size_t i) { return std::to_string(found->parents[i] + 1); };
    out.words = "evolved from number " + number(0) +
                " of the ranking: some of its parameters are those of number " + number(1) +
                ", moved by half the way from number " + number(3) + " to number " + number(2);
    return out;
  }

 private:
  struct Offspring {
    Point point;
    // Positions in the ranking of the target, the base, and the two members of the difference.
    std::array<std::size_t, 4> parents{};
  };

  // Returns nullopt while the population is small, or if all offspring were already tried.
  std::optional<Offspring> evolve(std::int64_t trial) {
    const std::vector<const Point*> members = population();
    if (members.size() < kLeastPopulation) return std::nullopt;
    Random random(draw_key(seed(), Purpose::kModel), static_cast<std::uint64_t>(trial));
    for (int i = 0; i < kMaxAttempts; ++i) {
      Offspring offspring = offspring_of(members, random);
      if (!tried(offspring.point)) return offspring;
    }
    return std::nullopt;
  }

  std::vector<const Point*> population() {
    std::vector<const Point*> out;
    for (const std::int64_t trial : ranking_.order()) {
      const Point& point = points_[static_cast<std::size_t>(trial)];
      if (!point.empty()) out.push_back(&point);
      if (out.size() == population_) break;
    }
    return out;
  }

  // A position within the value's cell on the unit interval; random if the member lacks the
  // parameter.
  double place(const Point& member, std::size_t parameter, Random& random) const {
    const double drawn = random.uniform();
    if (!is_active(member[parameter])) return drawn;
    const Dimension::Interval interval = space().dimension(parameter).to_unit(member[parameter]);
    return interval.low + drawn * (interval.high - interval.low);
  }

  Offspring offspring_of(const std::vector<const Point*>& members, Random& random) const {
    Offspring out;
    auto& parents = out.parents;  // all different
    for (auto parent = parents.begin(); parent != parents.end(); ++parent) {
      do {
        *parent = random.below(members.size());
      } while (std::find(parents.begin(), parent, *parent) != parent);
    }
    const auto at = [&](std::size_t parent, std::size_t parameter) {
      return place(*members[parents[parent]], parameter, random);
    };
    std::vector<double> unit(space().dimensions());
    const std::size_t always = random.below(unit.size());  // at least this one is replaced
    for (std::size_t i = 0; i < unit.size(); ++i) {
      const bool replaced = random.uniform() < kCrossover || i == always;
      unit[i] = at(0, i);
      if (!replaced) continue;
      const double difference = at(2, i) - at(3, i);
      unit[i] = at(1, i) + kScale * difference;
      if (unit[i] < 0 || unit[i] > 1) unit[i] = random.uniform();
    }
    out.point = space().from_unit(unit);
    return out;
  }

  const std::vector<api::Objective> objectives_;
  Ranking ranking_;
  const std::size_t population_;
  std::vector<Point> points_;  // by trial; empty if outside the space
};

}  // namespace

std::unique_ptr<Sampler> make_differential_evolution(Space space, std::int64_t seed,
                                                     std::vector<api::Objective> objectives) {
  return std::make_unique<DifferentialEvolution>(std::move(space), seed, std::move(objectives));
}

}  // namespace fettle::search
