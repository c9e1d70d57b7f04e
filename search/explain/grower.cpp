#include "search/explain/grower.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

namespace fettle::explain {
namespace {

// Few enough leaves for a loop over all pairs of leaves, enough for a smooth curve.
constexpr std::size_t kMaxLeaves = 256;
constexpr std::size_t kLeastRows = 2;
// Columns tried for one split: 5 of 6, as in the paper, and at most these.
constexpr std::size_t kMaxCandidates = 48;

std::size_t cell_of(const Column& column, double coordinate) {
  const auto cells = static_cast<double>(column.cells);
  return std::min(static_cast<std::size_t>(std::max(coordinate, 0.0) * cells), column.cells - 1);
}

}  // namespace

Grower::Grower(const std::vector<Column>& columns, const std::vector<Sample>& samples,
               std::vector<std::size_t> rows, Random& random)
    : columns_(columns), samples_(samples), rows_(std::move(rows)), random_(random) {
  least_ = std::max(kLeastRows, rows_.size() / kMaxLeaves + 1);
  candidates_.resize(columns.size());
  std::iota(candidates_.begin(), candidates_.end(), std::size_t{0});
}

Tree Grower::grow() {
  // In this order: places need the order of categories, and columns are sorted by places.
  order_categories();
  fill_rows();
  sort_columns();
  tree_.nodes_.emplace_back();
  open_.push_back({0, 0, values_.size()});
  while (!open_.empty()) {
    const Task task = open_.back();
    open_.pop_back();
    summarise(task);  // before best_split(), which reads the mean and variance of the node
    const std::optional<Split> split = best_split(task);
    if (split) divide(task, *split);
  }
  return std::move(tree_);
}

// Orders categories by the mean of their values (Breiman et al. 1984: no grouping of one column is
// better). Categories without a sample get the overall mean.
void Grower::order_categories() {
  tree_.orders_.resize(columns_.size());
  double total = 0;
  for (const std::size_t row : rows_) total += samples_[row].value;
  const double middle = total / static_cast<double>(rows_.size());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    if (!columns_[column].categorical) continue;
    std::vector<std::pair<double, double>> sums(columns_[column].cells);
    for (const std::size_t row : rows_) {
      const double coordinate = samples_[row].at[column];
      if (std::isnan(coordinate)) continue;
      auto& [sum, count] = sums[cell_of(columns_[column], coordinate)];
      sum += samples_[row].value;
      count += 1;
    }
    std::vector<std::size_t> cells(sums.size());
    std::iota(cells.begin(), cells.end(), std::size_t{0});
    const auto mean = [&](std::size_t cell) {
      return sums[cell].second > 0 ? sums[cell].first / sums[cell].second : middle;
    };
    std::ranges::stable_sort(cells,
                             [&](std::size_t a, std::size_t b) { return mean(a) < mean(b); });
    std::vector<double>& order = tree_.orders_[column];
    order.resize(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      // The middle of the i-th of equal parts of [0, 1].
      order[cells[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(cells.size());
    }
  }
}

void Grower::fill_rows() {
  places_.resize(rows_.size() * columns_.size());
  values_.resize(rows_.size());
  for (std::size_t draw = 0; draw < rows_.size(); ++draw) {
    const Sample& sample = samples_[rows_[draw]];
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      double coordinate = sample.at[column];
      if (std::isnan(coordinate)) coordinate = random_.uniform();
      places_[column * rows_.size() + draw] = tree_.place(column, coordinate);
    }
    values_[draw] = sample.value;
  }
}

// Breaks ties by value, so that sums over equal coordinates do not depend on the order of samples.
void Grower::sort_columns() {
  orders_.resize(places_.size());
  is_below_.resize(values_.size());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::span<std::uint32_t> draws = draws_of({0, 0, values_.size()}, column);
    std::iota(draws.begin(), draws.end(), std::uint32_t{0});
    std::ranges::sort(draws, [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(at(a, column), values_[a], a) < std::tuple(at(b, column), values_[b], b);
    });
  }
}

void Grower::summarise(const Task& task) {
  const std::span<const std::uint32_t> draws = draws_of(task, 0);  // any column has the same draws
  double sum = 0;
  for (const std::uint32_t draw : draws) sum += values_[draw];
  const auto count = static_cast<double>(draws.size());
  const double mean = sum / count;
  double squares = 0;
  for (const std::uint32_t draw : draws) {
    const double off = values_[draw] - mean;
    squares += off * off;
  }
  tree_.nodes_[task.node].mean = mean;
  tree_.nodes_[task.node].variance = squares / count;
}

std::optional<Grower::Split> Grower::best_split(const Task& task) {
  if (task.last - task.first < 2 * least_ || tree_.nodes_[task.node].variance <= 0) return {};
  // Five sixths, rounded up (see kMaxCandidates).
  const std::size_t wanted = std::min((columns_.size() * 5 + 5) / 6, kMaxCandidates);
  Split best;
  // The first `wanted` columns of a shuffle, each drawn from the columns that are left.
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::size_t other = i + random_.below(candidates_.size() - i);
    std::swap(candidates_[i], candidates_[other]);
    try_column(task, candidates_[i], best);
  }
  if (best.gain <= 0) return {};
  return best;
}

// The split with the smallest sum of squares around the two means is the one with the largest sum^2
// / count on both sides.
void Grower::try_column(const Task& task, std::size_t column, Split& best) {
  const std::span<const std::uint32_t> draws = draws_of(task, column);
  const double middle = tree_.nodes_[task.node].mean;
  double left = 0;
  double gain = best.gain;
  std::size_t found = 0;
  for (std::size_t i = 1; i < draws.size(); ++i) {
    left += values_[draws[i - 1]] - middle;
    if (i < least_ || draws.size() - i < least_) continue;
    // No threshold separates equal coordinates.
    if (at(draws[i - 1], column) >= at(draws[i], column)) continue;
    const auto below = static_cast<double>(i);
    const double above = static_cast<double>(draws.size()) - below;
    const double here = left * left * (1 / below + 1 / above);  // the sums are left and -left
    if (here <= gain) continue;
    gain = here;
    found = i;
  }
  if (found == 0) return;
  best = {gain, column,
          threshold_between(column, at(draws[found - 1], column), at(draws[found], column))};
}

double Grower::threshold_between(std::size_t column, double below, double above) {
  const double share = columns_[column].cells > 0 ? 0.5 : random_.uniform();
  const double threshold = below + share * (above - below);
  return threshold > below ? threshold : above;  // values below it go left
}

void Grower::divide(const Task& task, const Split& split) {
  std::size_t below = 0;
  for (const std::uint32_t draw : draws_of(task, split.column)) {
    is_below_[draw] = at(draw, split.column) < split.threshold;
    below += is_below_[draw] ? 1 : 0;
  }
  // A stable partition of each column's range: both halves stay sorted.
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const std::span<std::uint32_t> draws = draws_of(task, column);
    above_.clear();
    std::size_t kept = 0;
    for (const std::uint32_t draw : draws) {
      if (is_below_[draw]) {
        draws[kept++] = draw;
      } else {
        above_.push_back(draw);
      }
    }
    std::ranges::copy(above_, draws.begin() + static_cast<std::ptrdiff_t>(kept));
  }
  const std::size_t left = tree_.nodes_.size();
  const std::size_t cut = task.first + below;
  Node& node = tree_.nodes_[task.node];
  node.left = left;
  node.column = split.column;
  node.threshold = split.threshold;
  // Invalidates `node`. The right child comes after the left one (Node::left).
  tree_.nodes_.resize(left + 2);
  open_.push_back({left, task.first, cut});
  open_.push_back({left + 1, cut, task.last});
}

}  // namespace fettle::explain
