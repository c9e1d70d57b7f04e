#include "explain/pieces.h"

#include <algorithm>
#include <utility>

namespace fettle::explain {

// Each leaf adds its value, weighted by its extent in the other coordinates, where it begins and
// takes it away where it ends.
std::vector<Piece> pieces_along(const std::vector<Leaf>& leaves, std::size_t column) {
  std::vector<std::pair<double, double>> changes;
  for (const Leaf& leaf : leaves) {
    const double low = leaf.low[column];
    const double high = leaf.high[column];
    if (high <= low) continue;
    const double weight = leaf.volume / (high - low) * leaf.value;
    changes.emplace_back(low, weight);
    changes.emplace_back(high, -weight);
  }
  std::ranges::sort(changes);
  std::vector<Piece> pieces;
  double sum = 0;
  for (std::size_t i = 0; i < changes.size();) {
    const double here = changes[i].first;
    for (; i < changes.size() && changes[i].first == here; ++i) sum += changes[i].second;
    if (i < changes.size()) pieces.push_back({here, changes[i].first, sum});
  }
  return pieces;
}

double value_at(const std::vector<Piece>& pieces, double coordinate) {
  auto piece = std::ranges::upper_bound(pieces, coordinate, {}, &Piece::high);
  if (piece == pieces.end()) --piece;
  return piece->mean;
}

}  // namespace fettle::explain
