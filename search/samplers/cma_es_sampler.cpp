// CmaesSampler: CMA-ES as a sampler: numeric parameters by CmaEs (cma_es_distribution.h),
// parameters whose values have no order by CategoricalDistribution.
//
// Asynchronous: any number of trials is drawn from the current distribution. It learns as soon as
// the number of results reaches a generation, whichever trials they belong to, so results that are
// out of order or never come delay nothing. The draw of a trial is not stored but recomputed: draws
// are keyed by (seed, trial), so a trial belongs to a remembered distribution if a draw from that
// distribution gives the trial's parameters. All others (drawn long ago, by another sampler, by
// hand) are adopted. With many trials at once, most of a generation would come from forgotten
// distributions; then generations grow.
//
// Before its first own result it chooses its start from the results already present (another
// Study's trials, points to try first): at the best of a few, or over the best tenth of many. After
// convergence it restarts elsewhere with a generation twice as large (IPOP, Auger & Hansen 2005).
// Parameters that do not exist in a trial are drawn like the others but not learnt from, so they
// neither attract nor narrow the distribution. How trials compare: ranking.h.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "search/incremental_sampler.h"
#include "search/maths/ranking.h"
#include "search/samplers/categorical_distribution.h"
#include "search/samplers/cma_es_distribution.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

constexpr double kFirstSigma = 0.2;                 // of a parameter's range
constexpr std::size_t kRemembered = 4;              // distributions whose draws are recognised
constexpr std::int64_t kMaxPopulation = 1024;       // limit for growing generations
constexpr int kMaxAttempts = 16;                    // draws for a point of a finite space
constexpr int kMaxContinuousAttempts = 2;           // in other spaces, where repeats are rare
constexpr int kAttemptsBeforeWidening = 4;          // after them the distribution is twice as wide
constexpr std::size_t kFewKnown = 10;               // fewer results show a start, but not its width
constexpr std::int64_t kMaxStrangeGenerations = 3;  // with no own draw among them
// Purposes of other draws: streams distinct from attempt numbers.
constexpr std::uint64_t kAdoptStream = 1000;
constexpr std::uint64_t kRestartStream = 1001;

// The parts of a space. Parameters with one value are in neither part.
struct Axes {
  std::vector<std::size_t> numeric;
  std::vector<std::size_t> categorical;
};

Axes axes_of(const Space& space) {
  Axes out;
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    if (space.dimension(i).cells() == 1) continue;
    (space.dimension(i).categorical() ? out.categorical : out.numeric).push_back(i);
  }
  return out;
}

// A draw of all parameters, active or not.
struct Draw {
  Eigen::VectorXd position;
  Choices choices;
};

struct Distribution {
  std::optional<CmaEs> numeric;  // nullopt without numeric parameters
  CategoricalDistribution categorical;
  std::int64_t restart = 0;
};

class CmaesSampler final : public IncrementalSampler {
 public:
  CmaesSampler(Space space, std::int64_t seed, std::optional<std::int64_t> population,
               std::vector<api::Objective> objectives)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        axes_(axes_of(this->space())),  // `space` was moved from
        usual_population_(population.value_or(
            CmaEs::usual_population(axes_.numeric.size() + axes_.categorical.size()))),
        objectives_(std::move(objectives)),
        known_(objectives_),
        generation_(objectives_) {
    begin();
  }

  std::string description() const override {
    return "cmaes (" + std::to_string(usual_population_) + " trials a generation)";
  }

 protected:
  void add_trial(const Point* point) override { points_.push_back(point ? *point : Point()); }
  void remove_trial() override { points_.pop_back(); }

  void reset() override {
    points_.clear();
    begin();
  }

  std::optional<Point> propose(std::int64_t trial) override {
    for (int attempt = 0; attempt < attempts(); ++attempt) {
      Point point = point_of(draw(remembered_.front(), trial, attempt));
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

  void add_event(const Event& event) override {
    const auto trial = static_cast<std::size_t>(event.trial);
    if (event.fact.kind == api::FactKind::kRung) return;
    if (points_[trial].empty()) return;  // a point outside this space
    if (axes_.numeric.empty() && axes_.categorical.empty()) return;
    // A trial that pauses at rungs ends several times. Only its first end counts in a generation.
    counted_.resize(std::max(counted_.size(), trial + 1), false);
    if (counted_[trial]) return;
    counted_[trial] = true;
    const std::optional<Origin> origin = origin_of(event.trial);
    if (!searching_ && !origin) return start_from(event);  // it ended before the search began
    searching_ = true;
    if (origin && origin->restart != restarts_) return;  // from before a restart
    own_ += origin ? 1 : 0;
    members_.emplace_back(event.trial, origin ? origin->draw : adopted(event.trial));
    generation_.add(event.trial, event.fact);
    if (static_cast<std::int64_t>(members_.size()) >= population_) end_generation();
  }

 private:
  struct Origin {
    std::int64_t restart = 0;
    Draw draw;
  };
  using Member = std::pair<std::int64_t, Draw>;

  int attempts() const { return space().finite() ? kMaxAttempts : kMaxContinuousAttempts; }

  // `purpose`: the number of an attempt, or one of the streams above.
  Random stream(std::int64_t trial, std::uint64_t purpose) const {
    return Random(mix_keys(draw_key(seed(), Purpose::kModel), purpose),
                  static_cast<std::uint64_t>(trial));
  }

  Draw draw(const Distribution& from, std::int64_t trial, int attempt) const {
    Random random = stream(trial, static_cast<std::uint64_t>(attempt));
    Draw out;
    out.choices = from.categorical.draw(random);
    // Integer division: the width doubles after each kAttemptsBeforeWidening attempts.
    const double stretch = std::exp2(attempt / kAttemptsBeforeWidening);
    if (from.numeric) out.position = from.numeric->draw(random, stretch);
    return out;
  }

  Point point_of(const Draw& draw) const {
    std::vector<double> unit(space().dimensions(), 0);
    for (std::size_t i = 0; i < axes_.numeric.size(); ++i) {
      unit[axes_.numeric[i]] = draw.position[static_cast<Eigen::Index>(i)];
    }
    for (std::size_t i = 0; i < axes_.categorical.size(); ++i) {
      const std::size_t parameter = axes_.categorical[i];
      // A draw() chooses a value for every parameter; only place_of() leaves some out.
      const auto choice = static_cast<double>(*draw.choices[i]);
      unit[parameter] = space().dimension(parameter).to_unit(choice).centre();
    }
    return space().from_unit(unit);  // clamps positions beyond the outermost cells
  }

  // The position and choices of a trial; NaN and no choice for inactive parameters.
  Draw place_of(std::int64_t trial) const {
    const Point& point = points_[static_cast<std::size_t>(trial)];
    Draw out;
    out.position.resize(static_cast<Eigen::Index>(axes_.numeric.size()));
    for (std::size_t i = 0; i < axes_.numeric.size(); ++i) {
      const std::size_t parameter = axes_.numeric[i];
      const double at = point[parameter];
      out.position[static_cast<Eigen::Index>(i)] =
          is_active(at) ? space().dimension(parameter).to_unit(at).centre() : at;
    }
    for (const std::size_t parameter : axes_.categorical) {
      const double at = point[parameter];
      out.choices.push_back(is_active(at) ? std::optional(static_cast<std::size_t>(at))
                                          : std::nullopt);
    }
    return out;
  }

  // Returns the draw that made a trial, and the restart it belongs to, if its distribution is
  // remembered.
  std::optional<Origin> origin_of(std::int64_t trial) const {
    if (trial < unnumbered()) return std::nullopt;
    const std::uint64_t key = space().key(points_[static_cast<std::size_t>(trial)]);
    for (const Distribution& distribution : remembered_) {
      for (int attempt = 0; attempt < attempts(); ++attempt) {
        // The number that propose() was given leaves out the first unnumbered() trials.
        Draw found = draw(distribution, trial - unnumbered(), attempt);
        if (space().key(point_of(found)) != key) continue;
        // Drops the choices drawn for parameters that the trial does not have.
        found.choices = place_of(trial).choices;
        return Origin{distribution.restart, std::move(found)};
      }
    }
    return std::nullopt;
  }

  Draw adopted(std::int64_t trial) const {
    Draw out = place_of(trial);
    Random random = stream(trial, kAdoptStream);
    const std::optional<CmaEs>& numeric = remembered_.front().numeric;
    if (numeric) out.position = numeric->adopt(out.position, random);
    return out;
  }

  void begin() {
    counted_.clear();
    known_ = Ranking(objectives_);
    next_start_ = 1;
    searching_ = false;
    population_ = usual_population_;
    restarts_ = 0;
    flat_ = 0;
    strange_ = 0;
    remembered_.assign(1, start_at_centre());
    begin_generation();
  }

  void begin_generation() {
    members_.clear();
    generation_ = Ranking(objectives_);
    own_ = 0;
  }

  void end_generation() {
    const std::vector<std::int64_t>& order = generation_.order();
    std::vector<RankedPosition> positions;
    std::vector<RankedChoices> choices;
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool ties = i > 0 && generation_.tied(order[i - 1], order[i]);
      // Always found: add_event() adds each trial to generation_ and to members_.
      const auto member =
          std::lower_bound(members_.begin(), members_.end(), order[i],
                           [](const Member& a, std::int64_t trial) { return a.first < trial; });
      positions.push_back({member->second.position, ties});
      choices.push_back({member->second.choices, ties});
    }
    Distribution next = remembered_.front();
    if (next.numeric) next.numeric->update(positions);
    next.categorical.update(choices);
    // Generations in a row in which all losses were equal, or without a trial drawn here: several
    // of either end the search.
    flat_ = generation_.tied(order.front(), order.back()) ? flat_ + 1 : 0;
    strange_ = own_ == 0 ? strange_ + 1 : 0;
    // Most trials come from forgotten distributions: many run at once, so generations must grow.
    if (2 * own_ < population_) population_ = std::min(2 * population_, kMaxPopulation);
    if (is_over(next)) next = start_anew();
    remembered_.push_front(std::move(next));
    if (remembered_.size() > kRemembered) remembered_.pop_back();
    begin_generation();
  }

  bool is_over(const Distribution& distribution) const {
    const auto parameters = static_cast<std::int64_t>(axes_.numeric.size());
    // The tutorial's limit: 10 + 30 n / lambda generations, rounded up.
    const std::int64_t most_flat = 10 + (30 * parameters + population_ - 1) / population_;
    if (flat_ >= most_flat || strange_ >= kMaxStrangeGenerations) return true;
    return distribution.numeric && distribution.numeric->converged();
  }

  Distribution start_anew() {
    ++restarts_;
    flat_ = 0;
    strange_ = 0;
    population_ = usual_population_;
    for (std::int64_t i = 0; i < restarts_ && population_ < kMaxPopulation; ++i) population_ *= 2;
    Random random = stream(restarts_, kRestartStream);
    Eigen::VectorXd mean(static_cast<Eigen::Index>(axes_.numeric.size()));
    for (double& coordinate : mean) coordinate = random.uniform();
    return distribution(start_round(std::move(mean)));
  }

  Distribution start_at_centre() {
    const auto parameters = static_cast<Eigen::Index>(axes_.numeric.size());
    return distribution(start_round(Eigen::VectorXd::Constant(parameters, 0.5)));
  }

  static CmaEs::Start start_round(Eigen::VectorXd mean) {
    const Eigen::Index parameters = mean.size();
    return {std::move(mean), kFirstSigma, Eigen::MatrixXd::Identity(parameters, parameters)};
  }

  Distribution distribution(CmaEs::Start start) const {
    std::vector<std::size_t> sizes;
    for (const std::size_t parameter : axes_.categorical) {
      sizes.push_back(static_cast<std::size_t>(space().dimension(parameter).cells()));
    }
    Distribution out{std::nullopt, CategoricalDistribution(sizes), restarts_};
    std::vector<const Dimension*> numeric;
    for (const std::size_t parameter : axes_.numeric) {
      numeric.push_back(&space().dimension(parameter));
    }
    // Without numeric parameters `start` has no axes and is not used.
    if (!numeric.empty()) out.numeric.emplace(std::move(numeric), std::move(start));
    return out;
  }

  // Results that precede the search move its start: at the first one, then whenever there are a
  // quarter more.
  void start_from(const Event& event) {
    known_.add(event.trial, event.fact);
    if (known_.size() < next_start_) return;
    next_start_ = known_.size() + 1 + known_.size() / 4;
    std::vector<Eigen::VectorXd> positions;
    std::vector<Choices> choices;
    const std::size_t most = std::max<std::size_t>(known_.size() / 10, 1);
    for (const std::int64_t trial : known_.order()) {
      // Best first: after the first trial without losses, no trial has a feasible result.
      if (positions.size() >= most || known_.losses(trial) == nullptr) break;
      Draw place = place_of(trial);
      for (double& coordinate : place.position) {
        if (!is_active(coordinate)) coordinate = 0.5;
      }
      positions.push_back(std::move(place.position));
      choices.push_back(std::move(place.choices));
    }
    if (positions.empty()) return;
    const bool few = known_.size() < kFewKnown;
    Distribution start = start_at_centre();
    if (!axes_.numeric.empty()) {
      start = distribution(few ? start_round(positions.front()) : warm_start(positions));
    }
    start.categorical.favour(choices);
    remembered_.assign(1, start);  // draws from earlier starts now count as any other point
  }

  Axes axes_;
  std::int64_t usual_population_;
  std::vector<api::Objective> objectives_;
  std::vector<Point> points_;            // by trial; empty if outside the space
  std::vector<bool> counted_;            // trials whose end was learnt
  Ranking known_;                        // trials that ended before the search began
  std::size_t next_start_ = 1;           // number of known trials that moves the start again
  bool searching_ = false;               // a result of an own draw was seen
  std::deque<Distribution> remembered_;  // the current one first
  std::int64_t population_ = 0;
  std::int64_t restarts_ = 0;
  Ranking generation_;
  std::vector<Member> members_;
  std::int64_t own_ = 0;      // members drawn from a remembered distribution
  std::int64_t flat_ = 0;     // generations in a row with equal losses
  std::int64_t strange_ = 0;  // generations in a row without own draws
};

}  // namespace

Result<std::unique_ptr<Sampler>> make_cmaes(Space space, std::int64_t seed,
                                            std::optional<std::int64_t> population,
                                            std::vector<api::Objective> objectives) {
  const std::size_t numeric = axes_of(space).numeric.size();
  if (numeric > kMaxCmaesParameters) {
    return invalid("cmaes searches at most " + std::to_string(kMaxCmaesParameters) +
                   " numeric parameters; found " + std::to_string(numeric) +
                   "; use random or tpe instead");
  }
  return std::unique_ptr<Sampler>(
      std::make_unique<CmaesSampler>(std::move(space), seed, population, std::move(objectives)));
}

}  // namespace fettle::search
