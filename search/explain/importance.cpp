// Over one tree with leaves a of volume w and value v, the variance of the function averaged over
// all coordinates except U is
//   sum over pairs (a, b) of w_a v_a w_b v_b prod_{j in U} |a_j and b_j| / (|a_j| |b_j|)  -  mean^2
// where a_j is the extent of leaf a in coordinate j.
#include "search/explain/importance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "search/explain/pieces.h"

namespace fettle::explain {
namespace {

// The most important columns, whose pairs are computed.
constexpr std::size_t kPaired = 6;
// Variance below this share of the squared values is a rounding error.
constexpr double kFlat = 1e-18;

double extent(const Leaf& leaf, std::size_t column) { return leaf.high[column] - leaf.low[column]; }

// Returns the overlap of two leaves along a column; 0 or less if the column separates them.
double overlap(const Leaf& a, const Leaf& b, std::size_t column) {
  return std::min(a.high[column], b.high[column]) - std::max(a.low[column], b.low[column]);
}

// The variance of one tree over a slice of the cube, and the shares that columns explain, all by
// the formula above. Values are centred first: then mean^2 in it is 0.
class TreeVariance {
 public:
  TreeVariance(std::vector<Leaf> leaves, std::size_t columns)
      : leaves_(std::move(leaves)), columns_(columns) {
    double squares = 0;  // of the values before centring, for kFlat
    double mean = 0;
    // The volumes of a slice's leaves sum to 1, so sums weighted by them are means.
    for (const Leaf& leaf : leaves_) mean += leaf.volume * leaf.value;
    for (Leaf& leaf : leaves_) {
      squares += leaf.volume * leaf.value * leaf.value;
      leaf.value -= mean;
      variance_ += leaf.volume * leaf.value * leaf.value;
    }
    if (variance_ <= kFlat * squares) variance_ = 0;
    find_used();
  }

  double variance() const { return variance_; }

  double main(std::size_t column) const {
    double sum = 0;
    for (const Piece& piece : pieces_along(leaves_, column)) {
      sum += (piece.high - piece.low) * piece.mean * piece.mean;
    }
    return sum;
  }

  // Returns for each column the variance that is lost when the tree is averaged over it: U in the
  // formula is all other columns. Two leaves then have a term for a column if that column alone
  // separates them; leaves that two columns separate have no term.
  std::vector<double> totals() const {
    std::vector<double> known(columns_, 0.0);  // variance without the column
    for (std::size_t a = 0; a < leaves_.size(); ++a) {
      const Leaf& leaf = leaves_[a];
      const double square = leaf.volume * leaf.value * leaf.value;
      // The pair (a, a): w^2 v^2 over the extents of all other columns, which are w / extent.
      for (const std::size_t column : used_) known[column] += square * extent(leaf, column);
      for (std::size_t b = a + 1; b < leaves_.size(); ++b) add_pair(leaf, leaves_[b], known);
    }
    std::vector<double> out(columns_, 0.0);
    for (const std::size_t column : used_) out[column] = std::max(variance_ - known[column], 0.0);
    return out;
  }

  // Returns the variance of two columns together, including that of each alone: U in the formula is
  // the two. A pair of different leaves occurs once here and twice in the formula.
  double both(std::size_t first, std::size_t second) const {
    double sum = 0;
    for (std::size_t a = 0; a < leaves_.size(); ++a) {
      for (std::size_t b = a; b < leaves_.size(); ++b) {
        const double shared = std::max(overlap(leaves_[a], leaves_[b], first), 0.0) *
                              std::max(overlap(leaves_[a], leaves_[b], second), 0.0);
        if (shared <= 0) continue;
        sum += (a == b ? 1 : 2) * shared * density(leaves_[a], first, second) *
               density(leaves_[b], first, second);
      }
    }
    return sum;
  }

 private:
  void find_used() {
    for (std::size_t column = 0; column < columns_; ++column) {
      const bool cut =
          std::ranges::any_of(leaves_, [&](const Leaf& leaf) { return extent(leaf, column) < 1; });
      if (cut) used_.push_back(column);
    }
  }

  // Adds the term of a pair to the column that separates it. A leaf's volume is the product of its
  // extents, so the formula leaves the overlaps, and the extents along the column averaged over.
  void add_pair(const Leaf& a, const Leaf& b, std::vector<double>& known) const {
    std::size_t apart = columns_;  // none yet
    double shared = 1;
    for (const std::size_t column : used_) {
      const double length = overlap(a, b, column);
      if (length > 0) {
        shared *= length;
      } else if (apart == columns_) {
        apart = column;
      } else {
        return;  // a second column separates them: no term in any total
      }
    }
    if (apart == columns_) return;  // leaves do not overlap, so one of them is empty
    known[apart] += 2 * a.value * b.value * shared * extent(a, apart) * extent(b, apart);
  }

  // Returns w_a v_a / (|a_j| |a_k|) of the formula.
  static double density(const Leaf& leaf, std::size_t first, std::size_t second) {
    return leaf.volume * leaf.value / (extent(leaf, first) * extent(leaf, second));
  }

  std::vector<Leaf> leaves_;
  std::size_t columns_;
  std::vector<std::size_t> used_;
  double variance_ = 0;
};

// Turns sums over trees into means and deviations.
class Sums {
 public:
  explicit Sums(std::size_t columns) : main_(columns), total_(columns), square_(columns) {}

  void add(const TreeVariance& tree) {
    count_ += 1;
    const std::vector<double> totals = tree.totals();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (totals[i] <= 0) continue;
      // Not 0: shares_of() leaves out flat trees.
      const double share = totals[i] / tree.variance();
      main_[i] += tree.main(i) / tree.variance();
      total_[i] += share;
      square_[i] += share * share;
    }
  }

  std::vector<ColumnShare> shares() const {
    std::vector<ColumnShare> out(main_.size());
    for (std::size_t i = 0; i < out.size() && count_ > 0; ++i) {
      const double mean = total_[i] / count_;
      out[i] = {main_[i] / count_, mean,
                std::sqrt(std::max(square_[i] / count_ - mean * mean, 0.0))};
    }
    return out;
  }

 private:
  std::vector<double> main_;
  std::vector<double> total_;
  std::vector<double> square_;
  double count_ = 0;
};

std::vector<std::size_t> most_important(const std::vector<ColumnShare>& columns) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].total > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&columns](std::size_t a, std::size_t b) {
    return columns[a].total > columns[b].total;
  });
  if (order.size() > kPaired) order.resize(kPaired);
  std::ranges::sort(order);  // by index again: PairShare::first < second
  return order;
}

// Trees have a variance above 0 (shares_of). Without trees no column is important, so there is no
// pair and no division.
std::vector<PairShare> pairs_of(const std::vector<TreeVariance>& trees,
                                const std::vector<ColumnShare>& columns) {
  const std::vector<std::size_t> chosen = most_important(columns);
  std::vector<PairShare> out;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t j = i + 1; j < chosen.size(); ++j) {
      double sum = 0;
      for (const TreeVariance& tree : trees) {
        const double alone = tree.main(chosen[i]) + tree.main(chosen[j]);
        sum += std::max(tree.both(chosen[i], chosen[j]) - alone, 0.0) / tree.variance();
      }
      out.push_back({chosen[i], chosen[j], sum / static_cast<double>(trees.size())});
    }
  }
  std::ranges::stable_sort(out, std::greater(), &PairShare::share);
  return out;
}

}  // namespace

Shares shares_of(const Forest& forest, const Place& given) {
  std::vector<TreeVariance> trees;
  Sums sums(forest.columns());
  for (const Tree& tree : forest.trees()) {
    TreeVariance variance(tree.leaves(given), forest.columns());
    if (variance.variance() <= 0) continue;
    sums.add(variance);
    trees.push_back(std::move(variance));
  }
  Shares out;
  out.columns = sums.shares();
  out.pairs = pairs_of(trees, out.columns);
  return out;
}

}  // namespace fettle::explain
