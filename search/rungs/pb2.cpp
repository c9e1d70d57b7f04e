#include "search/rungs/pb2.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/gp/process/likelihood.h"
#include "search/gp/process/posterior.h"

namespace fettle::search {
namespace {

// Bounds of the number of changes in the model: fewer say nothing about most parameters, and the
// oldest of more say nothing about the present.
constexpr std::size_t kFewestChanges = 4;
constexpr std::size_t kMostChanges = 200;
constexpr int kEvaluations = 40;  // of the likelihood
// Weight of the uncertainty, which grows with the number of changes: the paper's c1 and c2.
constexpr double kCuriosity = 0.2;
constexpr double kCuriosityGrowth = 0.4;
// Candidates: from the prior, then near the best one so far, ever nearer.
constexpr int kWideCandidates = 500;
constexpr int kNearCandidates = 60;
constexpr double kWidths[] = {0.1, 0.03, 0.01};
constexpr double kOtherChoice = 0.2;

// A trial over one interval.
struct TrainedInterval {
  Point point;
  std::int64_t rung = 0;
  double score = 0;  // the larger the better
};

// Returns the objective at the beginning of the interval. All trainings start alike, so the first
// interval is judged by its end.
std::optional<double> loss_before(const RungTable& table, const History& history,
                                  std::int64_t trial, std::int64_t rung) {
  if (rung == 0) return 0;
  const Stage& stage = history.stages[static_cast<std::size_t>(trial)];
  // A replacement's first interval ends at `bracket` and begins at its parent's checkpoint.
  const bool inherited = stage.parent && stage.bracket == rung;
  return table.loss(inherited ? stage.parent->trial : trial, rung - 1);
}

// The changes of the objective over the interval that ends at `rung`, as normal scores.
std::vector<TrainedInterval> changes_at(const Space& space, const RungTable& table,
                                        const History& history, std::int64_t rung) {
  std::vector<RungTable::Entry> changes;
  for (const RungTable::Entry& entry : table.at(rung)) {
    const std::optional<double> before = loss_before(table, history, entry.trial, rung);
    // The change from one infinite loss to another is NaN, which has no place.
    if (!before || (std::isinf(*before) && std::isinf(entry.loss))) continue;
    changes.push_back({entry.trial, entry.loss - *before});
  }
  std::sort(changes.begin(), changes.end(),
            [](const RungTable::Entry& a, const RungTable::Entry& b) {
              return a.loss != b.loss ? a.loss < b.loss : a.trial < b.trial;
            });
  const std::vector<double> scores = normal_scores(changes);
  std::vector<TrainedInterval> out;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto point = space.read(history.trials[static_cast<std::size_t>(changes[i].trial)]);
    // A loss that falls is a large score.
    if (point) out.push_back({std::move(*point), rung, -scores[i]});
  }
  return out;
}

// Returns the newest changes.
std::vector<TrainedInterval> changes_of(const Space& space, const RungTable& table,
                                        const History& history) {
  std::vector<TrainedInterval> out;
  for (std::int64_t rung = table.rungs() - 1; rung >= 0 && out.size() < kMostChanges; --rung) {
    for (TrainedInterval& change : changes_at(space, table, history, rung)) {
      if (out.size() < kMostChanges) out.push_back(std::move(change));
    }
  }
  return out;
}

std::vector<TrainedInterval> pending_of(const Space& space, const RungTable& table,
                                        const History& history) {
  std::vector<TrainedInterval> out;
  for (std::size_t trial = 0; trial < history.stages.size(); ++trial) {
    const Stage& stage = history.stages[trial];
    if (!table.runs(static_cast<std::int64_t>(trial), stage)) continue;
    auto point = space.read(history.trials[trial]);
    // The score, 0, is not read: pending rows have no target.
    if (point && out.size() < kMostChanges) out.push_back({std::move(*point), stage.rung, 0});
  }
  return out;
}

class Bandit {
 public:
  Bandit(const Space& space, const RungTable& table, const std::vector<TrainedInterval>& known,
         const std::vector<TrainedInterval>& pending)
      : space_(space),
        axes_(gp::axes_of(space)),
        last_rung_(static_cast<double>(std::max<std::int64_t>(1, table.rungs() - 1))) {
    axes_.numbers.push_back(static_cast<gp::Index>(axes_.list.size()));
    axes_.list.emplace_back();  // time, a coordinate of every point beside the parameters
    inputs_ = gp::Inputs(static_cast<gp::Index>(known.size()), columns());
    targets_.resize(static_cast<gp::Index>(known.size()));
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto row = static_cast<gp::Index>(i);
      set(inputs_, row, known[i].point, known[i].rung);
      targets_(row) = known[i].score;
    }
    const gp::Likelihood likelihood(axes_, inputs_, targets_);
    // Two starts, since the likelihood may have several maxima: the priors' modes, and length
    // scales shorter by a factor of e. Inputs are not warped.
    const gp::Hyperparameters fitted =
        likelihood.fit({likelihood.prior_mode(/*log_factor=*/0, /*warps=*/false),
                        likelihood.prior_mode(/*log_factor=*/-1, /*warps=*/false)},
                       kEvaluations);
    const auto rows = static_cast<gp::Index>(known.size() + pending.size());
    posterior_.emplace(axes_, fitted, inputs_, rows);
    gp::Inputs waiting(1, columns());
    // Pending rows come last and have no target: they narrow the uncertainty near them and leave
    // the mean alone.
    for (const TrainedInterval& interval : pending) {
      set(waiting, 0, interval.point, interval.rung);
      posterior_->append(waiting, 0);
    }
    posterior_->set_targets(targets_);
    const double beta =
        kCuriosity + std::max(0.0, std::log(kCuriosityGrowth * static_cast<double>(known.size())));
    curiosity_ = std::sqrt(beta);
  }

  // The upper confidence bound of the change's score over the interval that ends at `rung`.
  double bound(const Point& point, std::int64_t rung) const {
    gp::Inputs inputs(1, columns());
    set(inputs, 0, point, rung);
    const gp::Posterior::Prediction seen = posterior_->predict_without_slopes(inputs, 0);
    return seen.mean + curiosity_ * seen.sd;
  }

 private:
  gp::Index columns() const { return static_cast<gp::Index>(axes_.list.size()); }

  void set(gp::Inputs& inputs, gp::Index row, const Point& point, std::int64_t rung) const {
    inputs.set(row, space_, point);
    inputs.at(row, columns() - 1) = static_cast<double>(rung) / last_rung_;
    inputs.active(row, columns() - 1) = 1;
  }

  const Space& space_;
  gp::Axes axes_;
  const double last_rung_;
  gp::Inputs inputs_;
  Eigen::VectorXd targets_;
  std::optional<gp::Posterior> posterior_;
  double curiosity_ = 1;
};

// Draws a point whose numbers lie about `width` of their ranges from the numbers of `point`.
// Choices stay, except a share of kOtherChoice; parameters that `point` lacks are drawn from the
// prior.
Point near(const Space& space, const Point& point, double width, Random& random) {
  std::vector<double> unit(space.dimensions());
  for (std::size_t i = 0; i < unit.size(); ++i) {
    const double anywhere = random.uniform();
    const double by = width * random.normal();
    const Dimension& dimension = space.dimension(i);
    const bool is_new = dimension.categorical() && random.uniform() < kOtherChoice;
    unit[i] = anywhere;
    if (is_new || !is_active(point[i])) continue;
    const double centre = dimension.to_unit(point[i]).centre();
    unit[i] = dimension.categorical() ? centre : std::clamp(centre + by, 0.0, 1.0);
  }
  return space.from_unit(unit);
}

}  // namespace

std::optional<Point> choose_by_bandit(const Space& space, const RungTable& table,
                                      const History& history, std::int64_t rung, Random& random) {
  const std::vector<TrainedInterval> known = changes_of(space, table, history);
  if (known.size() < kFewestChanges) return std::nullopt;
  const Bandit bandit(space, table, known, pending_of(space, table, history));
  Point best;
  double highest = -std::numeric_limits<double>::infinity();
  const auto consider = [&](Point point) {
    const double bound = bandit.bound(point, rung);
    // The first point is taken whatever its bound.
    if (bound <= highest && !best.empty()) return;
    highest = bound;
    best = std::move(point);
  };
  for (int i = 0; i < kWideCandidates; ++i) consider(space.draw(random));
  for (const double width : kWidths) {
    // All are drawn around the best so far, before any of them becomes the best.
    std::vector<Point> around;
    for (int i = 0; i < kNearCandidates; ++i) around.push_back(near(space, best, width, random));
    for (Point& point : around) consider(std::move(point));
  }
  return best;
}

}  // namespace fettle::search
