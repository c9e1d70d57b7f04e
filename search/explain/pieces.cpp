#include "search/explain/pieces.h"

#include <algorithm>
#include <utility>

namespace fettle::explain {
namespace {

// Whether a leaf holds the place: its lower end, and at the end of a column its upper end, too.
bool holds(const Leaf& leaf, std::size_t column, double place) {
  const double high = leaf.high[column];
  return place >= leaf.low[column] && (place < high || (high >= 1 && place <= 1));
}

}  // namespace

// Each leaf adds its value, weighted by its extent in the other coordinates, at its lower end and
// subtracts it at its upper end.
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
    // The last change is the end of the column, where no piece begins.
    if (i < changes.size()) pieces.push_back({here, changes[i].first, sum});
  }
  return pieces;
}

double value_at(const std::vector<Piece>& pieces, double coordinate) {
  auto piece = std::ranges::upper_bound(pieces, coordinate, {}, &Piece::high);
  if (piece == pieces.end()) --piece;
  return piece->mean;
}

// Each leaf adds its value inside, weighted by its extent in the other coordinates.
std::vector<double> surface_of(const std::vector<Leaf>& leaves, const Axis& first,
                               const Axis& second) {
  std::vector<double> out(first.places.size() * second.places.size());
  for (const Leaf& leaf : leaves) {
    const double area = (leaf.high[first.column] - leaf.low[first.column]) *
                        (leaf.high[second.column] - leaf.low[second.column]);
    if (area <= 0) continue;
    const double weight = leaf.volume / area * leaf.value;
    for (std::size_t i = 0; i < first.places.size(); ++i) {
      if (!holds(leaf, first.column, first.places[i])) continue;
      for (std::size_t j = 0; j < second.places.size(); ++j) {
        if (holds(leaf, second.column, second.places[j])) {
          out[i * second.places.size() + j] += weight;
        }
      }
    }
  }
  return out;
}

}  // namespace fettle::explain
