// Forest: a random forest for regression (Breiman 2001) over the unit cube, made to be integrated:
// every leaf is a box, so averages over any of the coordinates are sums over leaves
// (importance.h, pieces.h).
//
// A coordinate that a sample lacks (NaN: an inactive parameter) cannot affect it. Each tree draws a
// value for it, so that the forest learns a function on the whole cube that is flat along it; a
// prediction integrates over the coordinates that the point lacks. Thresholds are drawn between
// neighbours, as in Hutter et al. 2014, "Algorithm runtime prediction": the mean is then close to
// linear between samples, and trees disagree far away from samples.
//
// Deterministic in samples and seed. Immutable after fit(); safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fettle::explain {

// Places in the unit cube; NaN = absent.
using Place = std::vector<double>;

// The meaning of one coordinate of the cube.
struct Column {
  std::size_t cells = 0;     // values, each with its own part of [0, 1]; 0 = a continuum
  bool categorical = false;  // cells without an order, all of the same width
};

struct Sample {
  Place at;
  double value = 0;
  std::int64_t group = 0;  // samples of one group are drawn together: values of one trial
};

struct Node {
  std::size_t left = 0;  // the child below the threshold, the other is next to it; 0 = a leaf
  std::size_t column = 0;
  double threshold = 0;
  double mean = 0;
  double variance = 0;
};

// Part of the cube with one value.
struct Leaf {
  Place low;
  Place high;
  double value = 0;
  double volume = 1;  // over the free columns
};

class Tree {
 public:
  // Mean and mean square of the tree at `at`, with absent coordinates integrated out.
  struct Moments {
    double mean = 0;
    double square = 0;
  };
  Moments predict(const Place& at) const;

  // Returns the leaves that intersect `given`, whose absent coordinates are free: a partition of
  // that slice of the cube. Corners of leaves are in the tree's own coordinates (see place).
  std::vector<Leaf> leaves(const Place& given) const;

  // Returns the tree's own coordinate: each tree sorts the values of a categorical column, so that
  // all its regions are intervals.
  double place(std::size_t column, double coordinate) const;

 private:
  friend class Grower;
  const Node& leaf_at(const Place& complete) const;
  std::vector<Node> nodes_;
  std::vector<std::vector<double>> orders_;  // of each column's cells; empty = unsorted
};

class Forest {
 public:
  struct Prediction {
    double mean = 0;
    double deviation = 0;  // between trees, and of samples within a leaf
  };

  // Requires at least one sample and finite values. A sample has one coordinate for each column.
  static Forest fit(const std::vector<Column>& columns, const std::vector<Sample>& samples,
                    std::uint64_t seed);

  Prediction predict(const Place& at) const;
  const std::vector<Tree>& trees() const { return trees_; }
  std::size_t columns() const { return columns_; }

  // Out-of-bag R^2: the share of the variance that trees explain in samples they have not seen. At
  // most 1; 0 or less if the forest explains nothing.
  double quality() const { return quality_; }

 private:
  std::vector<Tree> trees_;
  std::size_t columns_ = 0;
  double quality_ = 0;
};

}  // namespace fettle::explain
