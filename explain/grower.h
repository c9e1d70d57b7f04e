// Grower: one regression tree from a bootstrap of samples. Part of forest.cpp's work; not for
// others. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/philox.h"
#include "explain/forest.h"

namespace fettle::explain {

class Grower {
 public:
  // `rows`: the samples to learn from, one index a draw. All must outlive the call of grow().
  Grower(const std::vector<Column>& columns, const std::vector<Sample>& samples,
         std::vector<std::size_t> rows, Random& random);

  Tree grow();

 private:
  struct Split {
    double gain = 0;
    std::size_t column = 0;
    double threshold = 0;
  };
  // Rows first_ .. last_ - 1 that end in one node.
  struct Task {
    std::size_t node = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  void order_categories();
  void fill_rows();
  std::optional<Split> best_split(const Task& task);
  void try_column(const Task& task, std::size_t column, Split& best);
  double threshold_between(std::size_t column, double below, double above);
  void summarise(const Task& task);
  void divide(const Task& task, const Split& split);
  double at(std::size_t row, std::size_t column) const {
    return places_[row * columns_.size() + column];
  }

  const std::vector<Column>& columns_;
  const std::vector<Sample>& samples_;
  std::vector<std::size_t> rows_;  // sorted into nodes while growing
  Random& random_;
  std::size_t least_ = 1;                // rows in a leaf
  std::vector<double> places_;           // of each draw: row-major, complete, as the tree sees them
  std::vector<double> values_;           // of each draw
  std::vector<std::size_t> order_;       // of draws
  std::vector<std::size_t> candidates_;  // columns
  std::vector<std::pair<double, double>> sorted_;
  std::vector<Task> open_;
  Tree tree_;
};

}  // namespace fettle::explain
