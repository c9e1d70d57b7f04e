#include "search/maths/ehvi.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Losses> front_of(const std::vector<Losses>& points) {
  const std::vector<std::size_t> fronts = front_numbers(points);
  std::vector<Losses> out;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (fronts[i] == 0) out.push_back(points[i]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Stacks the boxes of one slice on the `open` boxes below it: a box that continues stays open, the
// others end at `height` in the added objective. `open` has that objective's low face as an
// additional entry. Boxes of a slice differ in their last low face (all others are minus infinity)
// and both lists ascend by it, so this is a merge.
void stack(const std::vector<Box>& slice, double height, std::vector<Box>& open,
           std::vector<Box>& done) {
  const std::size_t key = slice.empty() ? 0 : slice[0].low.size() - 1;
  std::vector<Box> next;
  std::size_t below = 0;
  const auto close = [&](const Box& box) {
    done.push_back(box);
    done.back().high.push_back(height);
  };
  for (const Box& box : slice) {
    while (below < open.size() && open[below].low[key] < box.low[key]) close(open[below++]);
    next.push_back(box);
    next.back().low.push_back(height);
    if (below == open.size() || open[below].low[key] != box.low[key]) continue;
    if (open[below].high == box.high) {  // the same box: it began further down
      next.back().low.back() = open[below].low.back();
    } else {
      close(open[below]);
    }
    ++below;
  }
  while (below < open.size()) close(open[below++]);
  open = std::move(next);
}

// The derivatives of the expected improvement at a face, with respect to the loss's mean and sigma.
NormalMarginal slope_at(double face, const NormalMarginal& loss) {
  if (face == -kInfinity) return {};
  const double z = (face - loss.mean) / loss.sigma;
  return {-normal_cdf(z), normal_density(z)};
}

}  // namespace

double expected_improvement(double threshold, const NormalMarginal& loss) {
  if (threshold == -kInfinity) return 0;
  const double gap = threshold - loss.mean;
  if (loss.sigma <= 0) return std::max(gap, 0.0);
  const double z = gap / loss.sigma;
  return std::max(gap * normal_cdf(z) + loss.sigma * normal_density(z), 0.0);
}

// Sweeps along the last objective: between two neighbouring losses in it, the free region is the
// one that the points below leave free in the other objectives.
std::vector<Box> free_boxes(const std::vector<Losses>& points, const Losses& reference) {
  CHECK(reference.size() <= kMostObjectivesInBoxes, "boxes are of up to three objectives");
  const std::size_t last = reference.size() - 1;
  if (last == 0) {
    double least = reference[0];
    for (const Losses& point : points) least = std::min(least, point[0]);
    return {{{-kInfinity}, {least}}};
  }
  std::vector<Losses> order = points;
  std::sort(order.begin(), order.end(),
            [&](const Losses& a, const Losses& b) { return a[last] < b[last]; });
  const Losses rest(reference.begin(), reference.end() - 1);
  std::vector<Box> done;      // boxes whose upper end is known
  std::vector<Box> open;      // boxes that reach up to the sweep
  std::vector<Losses> below;  // the front of the points passed, in the other objectives
  stack(free_boxes(below, rest), -kInfinity, open, done);
  for (const Losses& point : order) {
    // In this order every later point lies beyond the reference, too.
    if (point[last] >= reference[last]) break;
    below.emplace_back(point.begin(), point.end() - 1);
    below = front_of(below);
    stack(free_boxes(below, rest), point[last], open, done);
  }
  stack({}, reference[last], open, done);
  // Points that share their last loss make slices of no height.
  std::erase_if(done, [&](const Box& box) { return box.low[last] == box.high[last]; });
  std::sort(done.begin(), done.end(), [&](const Box& a, const Box& b) {
    return a.low[last] != b.low[last] ? a.low[last] < b.low[last] : a.low < b.low;
  });
  return done;
}

// Many boxes share faces, so expected improvements are computed once per face.
ExpectedHypervolume::ExpectedHypervolume(const std::vector<Losses>& points,
                                         const Losses& reference) {
  CHECK(reference.size() >= 2, "a front has 2 or 3 objectives");
  const std::vector<Box> boxes = free_boxes(front_of(points), reference);
  faces_.resize(reference.size());
  cells_.resize(boxes.size());
  for (std::size_t i = 0; i < faces_.size(); ++i) {
    std::vector<double>& faces = faces_[i];
    for (const Box& box : boxes) faces.insert(faces.end(), {box.low[i], box.high[i]});
    std::sort(faces.begin(), faces.end());
    faces.erase(std::unique(faces.begin(), faces.end()), faces.end());
    const auto place = [&](double face) {
      return static_cast<std::size_t>(std::lower_bound(faces.begin(), faces.end(), face) -
                                      faces.begin());
    };
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      cells_[b].low.push_back(place(boxes[b].low[i]));
      cells_[b].high.push_back(place(boxes[b].high[i]));
    }
  }
}

// The improvement is the volume that the new point dominates and the front does not. It dominates a
// position u with probability P(Y1 < u1) P(Y2 < u2) ..., which integrates over a box to a product
// of differences of expected improvements.
double ExpectedHypervolume::improvement(const std::vector<NormalMarginal>& losses,
                                        std::vector<NormalMarginal>* slopes) const {
  const std::size_t objectives = losses.size();
  CHECK(objectives == faces_.size(), "one marginal an objective");
  struct Face {
    double gain = 0;
    NormalMarginal slope;
  };
  std::vector<std::vector<Face>> faces(objectives);
  for (std::size_t i = 0; i < objectives; ++i) {
    for (const double face : faces_[i]) {
      faces[i].push_back({expected_improvement(face, losses[i]),
                          slopes == nullptr ? NormalMarginal() : slope_at(face, losses[i])});
    }
  }
  if (slopes != nullptr) slopes->assign(objectives, {});
  double out = 0;
  Losses sides(objectives);
  for (const Cell& cell : cells_) {
    double volume = 1;
    for (std::size_t i = 0; i < objectives; ++i) {
      sides[i] = faces[i][cell.high[i]].gain - faces[i][cell.low[i]].gain;
      volume *= sides[i];
    }
    out += volume;
    for (std::size_t i = 0; slopes != nullptr && i < objectives; ++i) {
      double others = 1;
      for (std::size_t j = 0; j < objectives; ++j) others *= j == i ? 1 : sides[j];
      const NormalMarginal& high = faces[i][cell.high[i]].slope;
      const NormalMarginal& low = faces[i][cell.low[i]].slope;
      (*slopes)[i].mean += others * (high.mean - low.mean);
      (*slopes)[i].sigma += others * (high.sigma - low.sigma);
    }
  }
  return std::max(out, 0.0);
}

}  // namespace fettle::search
