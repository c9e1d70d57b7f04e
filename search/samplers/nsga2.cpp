// Nsga2Sampler: NSGA-II (Deb et al. 2002) as a sampler, for several objectives; it spreads over the
// whole front.
//
// Steady-state (Durillo et al. 2009): each result immediately competes for a place in the
// population, by front of non-domination and then by crowding distance, so any number of trials may
// run and end in any order. A child has two parents, each the better of two drawn from the
// population; they are crossed (simulated binary crossover on the unit interval of numeric
// parameters, either value for the others) and mutated (polynomial; any choice). A parameter that
// only one parent has comes from that parent, one that neither has from the prior. Feasibility
// first: a trial that failed, violated a constraint or was stopped early never becomes a parent.
// Trial i is a function of (seed, i) and the history.
#include <algorithm>
#include <cmath>

#include "search/incremental_sampler.h"
#include "search/maths/pareto.h"
#include "search/maths/ranking.h"
#include "search/samplers/quasi_random_start.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

constexpr double kCrossoverIndex = 15;  // the larger, the closer children stay to their parents
constexpr double kMutationIndex = 20;
constexpr double kCrossoverProbability = 0.9;
constexpr int kMaxAttempts = 16;  // children that were already tried

class Nsga2Sampler final : public IncrementalSampler {
 public:
  Nsga2Sampler(Space space, std::int64_t seed, std::int64_t population,
               std::vector<api::Objective> objectives)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        population_(static_cast<std::size_t>(population)),
        objectives_(std::move(objectives)),
        results_(objectives_),
        start_(this->space().dimensions(), seed) {}  // `space` was moved from

  std::string description() const override {
    return "nsga2 (population of " + std::to_string(population_) + ")";
  }

 protected:
  void add_trial(const Point* point) override { points_.push_back(point ? *point : Point()); }
  void remove_trial() override { points_.pop_back(); }
  void reset() override {
    points_.clear();
    results_ = Ranking(objectives_);
    members_.clear();
  }

  void add_event(const Event& event) override {
    if (event.fact.kind == api::FactKind::kRung) return;
    results_.add(event.trial, event.fact);
    // A trial that paused and resumed ends again: its new losses replace the old.
    std::erase_if(members_, [&](const Member& member) { return member.trial == event.trial; });
    const std::vector<double>* losses = results_.losses(event.trial);
    const bool usable =
        losses != nullptr && !points_[static_cast<std::size_t>(event.trial)].empty();
    if (usable) members_.push_back({event.trial, *losses, 0, 0});
    rank();
    if (members_.size() > population_) drop_worst();
  }

  std::optional<Point> propose(std::int64_t trial) override {
    // The start lasts until as many trials have ended as the population holds, and until two of
    // them can be parents.
    if (results_.size() < population_ || members_.size() < 2) {
      return untried_at(start_.at(trial), trial);
    }
    Random random(draw_key(seed(), Purpose::kModel), static_cast<std::uint64_t>(trial));
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
      Point child = this->child(random);
      if (!tried(child)) return child;
    }
    return draw_untried(trial);
  }

 private:
  struct Member {
    std::int64_t trial = 0;
    Losses losses;
    std::size_t front = 0;
    double crowding = 0;  // large if the neighbours on the front are far away
  };

  static bool better(const Member& a, const Member& b) {
    return a.front != b.front ? a.front < b.front : a.crowding > b.crowding;
  }

  void rank() {
    std::vector<Losses> losses;
    for (const Member& member : members_) losses.push_back(member.losses);
    const std::vector<std::size_t> fronts = front_numbers(losses);
    for (std::size_t front = 0; front < members_.size(); ++front) {
      std::vector<Losses> within;
      std::vector<Member*> members;
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if (fronts[i] != front) continue;
        within.push_back(losses[i]);
        members.push_back(&members_[i]);
      }
      if (members.empty()) break;
      const std::vector<double> crowding = crowding_distances(within);
      for (std::size_t i = 0; i < members.size(); ++i) {
        members[i]->front = front;
        members[i]->crowding = crowding[i];
      }
    }
  }

  // Removes the worst member; the newest one among equals.
  void drop_worst() {
    auto worst = members_.begin();
    for (auto member = members_.begin(); member != members_.end(); ++member) {
      if (!better(*worst, *member)) continue;
      worst = member;
    }
    const auto equal = [&](const Member& m) { return !better(*worst, m) && !better(m, *worst); };
    const auto newest = std::find_if(members_.rbegin(), members_.rend(), equal);
    members_.erase(std::next(newest).base());
    rank();
  }

  const Point& parent(Random& random) const {
    const Member& a = members_[random.below(members_.size())];
    const Member& b = members_[random.below(members_.size())];
    return points_[static_cast<std::size_t>((better(b, a) ? b : a).trial)];
  }

  // In the order of declaration, so that conditions are settled before the parameters under them.
  Point child(Random& random) const {
    const Point& mother = parent(random);
    const Point& father = parent(random);
    const bool cross = random.uniform() < kCrossoverProbability;
    // One parameter of a child on average.
    const double mutation = 1 / static_cast<double>(std::max<std::size_t>(space().dimensions(), 1));
    Point out(space().dimensions(), kInactive);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!space().active(i, out)) continue;
      const Dimension& dimension = space().dimension(i);
      const bool from_mother = is_active(mother[i]);
      // Without a crossing the child has all of its mother's values.
      const bool from_father = is_active(father[i]) && (cross || !from_mother);
      if (!from_mother && !from_father) {
        out[i] = dimension.from_unit(random.uniform());
      } else if (from_mother && from_father) {
        out[i] = crossed(dimension, mother[i], father[i], random);
      } else {
        out[i] = from_mother ? mother[i] : father[i];
      }
      if (random.uniform() < mutation) out[i] = mutated(dimension, out[i], random);
    }
    return out;
  }

  static double crossed(const Dimension& dimension, double mother, double father, Random& random) {
    // After Deb & Agrawal 1995 half of the parameters are crossed; the others come from either
    // parent. From here on `mother` is the parent drawn.
    const bool keep = random.below(2) == 0;
    if (random.below(2) == 0) std::swap(mother, father);
    if (keep || dimension.categorical() || mother == father) return mother;
    const double u = random.uniform();
    const double exponent = 1 / (kCrossoverIndex + 1);
    // Distance of the child from the middle of its parents, in half distances between them.
    const double spread =
        u < 0.5 ? std::pow(2 * u, exponent) : std::pow(1 / (2 * (1 - u)), exponent);
    const double a = dimension.to_unit(mother).centre();
    const double b = dimension.to_unit(father).centre();
    return dimension.from_unit(0.5 * ((1 + spread) * a + (1 - spread) * b));
  }

  static double mutated(const Dimension& dimension, double coordinate, Random& random) {
    const double u = random.uniform();
    if (dimension.categorical()) return dimension.from_unit(u);
    const double exponent = 1 / (kMutationIndex + 1);
    const double shift =
        u < 0.5 ? std::pow(2 * u, exponent) - 1 : 1 - std::pow(2 * (1 - u), exponent);
    // Discrete values move by at least one cell, or mutation would mostly do nothing.
    const Dimension::Interval place = dimension.to_unit(coordinate);
    const double half_cell = 0.5 * (place.high - place.low);
    return dimension.from_unit(place.centre() + shift + std::copysign(half_cell, shift));
  }

  std::size_t population_;
  std::vector<api::Objective> objectives_;
  Ranking results_;
  std::vector<Point> points_;  // by trial; empty if outside the space
  std::vector<Member> members_;
  QuasiRandomStart start_;
};

}  // namespace

std::unique_ptr<Sampler> make_nsga2(Space space, std::int64_t seed, std::int64_t population,
                                    std::vector<api::Objective> objectives) {
  return std::make_unique<Nsga2Sampler>(std::move(space), seed, population, std::move(objectives));
}

}  // namespace fettle::search
