// Grower: one regression tree from a bootstrap of samples. Only forest.cpp uses it. Not
// synchronised.
//
// The draws are sorted once along each column. A node owns the same range in the order of every
// column, and a split divides each range stably, so that its halves stay sorted: a level of the
// tree costs rows times columns, and no node sorts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/philox.h"
#include "search/explain/forest.h"

namespace fettle::explain {

class Grower {
 public:
  // `rows`: the samples to learn from, one index for each draw. All arguments must outlive grow().
  Grower(const std::vector<Column>& columns, const std::vector<Sample>& samples,
         std::vector<std::size_t> rows, Random& random);

  Tree grow();

 private:
  struct Split {
    double gain = 0;
    std::size_t column = 0;
    double threshold = 0;
  };
  // One node's range in the order of every column.
  struct Task {
    std::size_t node = 0;
    std::size_t first = 0;
    std::size_t last = 0;
  };

  void order_categories();
  void fill_rows();
  void sort_columns();
  std::optional<Split> best_split(const Task& task);
  void try_column(const Task& task, std::size_t column, Split& best);
  double threshold_between(std::size_t column, double below, double above);
  void summarise(const Task& task);
  void divide(const Task& task, const Split& split);
  double at(std::size_t draw, std::size_t column) const {
    return places_[column * values_.size() + draw];
  }
  // The draws of a task in ascending order of a column.
  std::span<std::uint32_t> draws_of(const Task& task, std::size_t column) {
    return {orders_.data() + column * values_.size() + task.first, task.last - task.first};
  }

  const std::vector<Column>& columns_;
  const std::vector<Sample>& samples_;
  std::vector<std::size_t> rows_;  // the sample of each draw
  Random& random_;
  std::size_t least_ = 1;                // fewest rows of a leaf
  std::vector<double> places_;           // by column and draw; complete, the tree's own coordinates
  std::vector<double> values_;           // by draw
  std::vector<std::uint32_t> orders_;    // by column: draws, sorted within each open task
  std::vector<std::uint32_t> above_;     // scratch of divide()
  std::vector<bool> is_below_;           // by draw: scratch of divide()
  std::vector<std::size_t> candidates_;  // columns
  std::vector<Task> open_;
  Tree tree_;
};

}  // namespace fettle::explain
