#include "search/explain/forest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "search/explain/grower.h"

namespace fettle::explain {
namespace {

constexpr std::size_t kTrees = 64;

// Visits all leaves that intersect a place with absent coordinates, each with its part of the cube.
class Walk {
 public:
  Walk(const std::vector<Node>& nodes, Place at)
      : nodes_(nodes), at_(std::move(at)), low_(at_.size(), 0.0), high_(at_.size(), 1.0) {}

  template <class Visit>
  void visit(std::size_t index, double volume, const Visit& leaf) {
    const Node& node = nodes_[index];
    if (node.left == 0) return leaf(node, volume, low_, high_);
    const std::size_t column = node.column;
    if (!std::isnan(at_[column])) {
      return visit(node.left + (at_[column] < node.threshold ? 0 : 1), volume, leaf);
    }
    const double low = low_[column];
    const double high = high_[column];
    // Not empty: a threshold lies between two samples of the node, so both are in this range.
    const double share = (node.threshold - low) / (high - low);
    high_[column] = node.threshold;
    visit(node.left, volume * share, leaf);
    high_[column] = high;
    low_[column] = node.threshold;
    visit(node.left + 1, volume * (1 - share), leaf);
    low_[column] = low;
  }

 private:
  const std::vector<Node>& nodes_;
  const Place at_;
  Place low_;
  Place high_;
};

Place places_of(const Tree& tree, const Place& at) {
  Place out(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) out[i] = tree.place(i, at[i]);
  return out;
}

// Predicts each sample by the trees that have not seen it (out of bag).
class HeldOut {
 public:
  explicit HeldOut(std::size_t samples) : sums_(samples), counts_(samples) {}

  void add(const Tree& tree, const std::vector<Sample>& samples, const std::vector<bool>& seen) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (seen[i]) continue;
      sums_[i] += tree.predict(samples[i].at).mean;
      counts_[i] += 1;
    }
  }

  double explained(const std::vector<Sample>& samples) const {
    double mean = 0;
    for (const Sample& sample : samples) mean += sample.value / static_cast<double>(samples.size());
    double missed = 0;
    double spread = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (counts_[i] == 0) continue;  // every tree has seen it
      const double error = samples[i].value - sums_[i] / counts_[i];
      missed += error * error;
      spread += (samples[i].value - mean) * (samples[i].value - mean);
    }
    return spread > 0 ? 1 - missed / spread : 0;  // 0: all values are equal, or none was held out
  }

 private:
  std::vector<double> sums_;
  std::vector<double> counts_;
};

}  // namespace

double Tree::place(std::size_t column, double coordinate) const {
  const std::vector<double>& order = orders_[column];
  if (order.empty() || std::isnan(coordinate)) return coordinate;
  const auto cells = static_cast<double>(order.size());
  const auto cell = static_cast<std::size_t>(std::max(coordinate, 0.0) * cells);
  return order[std::min(cell, order.size() - 1)];
}

const Node& Tree::leaf_at(const Place& complete) const {
  const Node* node = &nodes_[0];
  while (node->left != 0) {
    const bool below = place(node->column, complete[node->column]) < node->threshold;
    node = &nodes_[node->left + (below ? 0 : 1)];
  }
  return *node;
}

Tree::Moments Tree::predict(const Place& at) const {
  // For a complete place, leaf_at() finds its only leaf without any memory, and converts each
  // coordinate to the tree's own on the way. Walk takes converted coordinates.
  if (std::ranges::none_of(at, [](double value) { return std::isnan(value); })) {
    const Node& leaf = leaf_at(at);
    return {leaf.mean, leaf.mean * leaf.mean + leaf.variance};
  }
  Moments out;
  Walk walk(nodes_, places_of(*this, at));
  walk.visit(0, 1, [&out](const Node& node, double volume, const Place&, const Place&) {
    out.mean += volume * node.mean;
    out.square += volume * (node.mean * node.mean + node.variance);
  });
  return out;
}

std::vector<Leaf> Tree::leaves(const Place& given) const {
  std::vector<Leaf> out;
  Walk walk(nodes_, places_of(*this, given));
  walk.visit(0, 1, [&out](const Node& node, double volume, const Place& low, const Place& high) {
    out.push_back({low, high, node.mean, volume});
  });
  return out;
}

Forest Forest::fit(const std::vector<Column>& columns, const std::vector<Sample>& samples,
                   std::uint64_t seed) {
  CHECK(!samples.empty(), "a forest grows on samples");
  std::map<std::int64_t, std::vector<std::size_t>> rows_of;
  for (std::size_t i = 0; i < samples.size(); ++i) rows_of[samples[i].group].push_back(i);
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [group, rows] : rows_of) groups.push_back(&rows);
  Forest forest;
  forest.columns_ = columns.size();
  HeldOut held_out(samples.size());
  for (std::size_t tree = 0; tree < kTrees; ++tree) {
    Random random(seed, tree);
    std::vector<std::size_t> drawn;
    std::vector<bool> seen(samples.size(), false);
    // A bootstrap of whole groups, since values of one trial are not independent.
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const std::size_t row : *groups[random.below(groups.size())]) {
        drawn.push_back(row);
        seen[row] = true;
      }
    }
    forest.trees_.push_back(Grower(columns, samples, std::move(drawn), random).grow());
    held_out.add(forest.trees_.back(), samples, seen);
  }
  forest.quality_ = held_out.explained(samples);
  return forest;
}

Forest::Prediction Forest::predict(const Place& at) const {
  double mean = 0;
  double square = 0;
  for (const Tree& tree : trees_) {
    const Tree::Moments moments = tree.predict(at);
    mean += moments.mean / static_cast<double>(trees_.size());
    square += moments.square / static_cast<double>(trees_.size());
  }
  return {mean, std::sqrt(std::max(square - mean * mean, 0.0))};
}

}  // namespace fettle::explain
