#include "explain/surface.h"

namespace fettle::explain {
namespace {

// A leaf holds its lower end, and the last one of a column its upper end, too.
bool holds(const Leaf& leaf, std::size_t column, double place) {
  const double high = leaf.high[column];
  return place >= leaf.low[column] && (place < high || (high >= 1 && place <= 1));
}

}  // namespace

// Each leaf adds its value where it is, weighted by its extent in the other coordinates.
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
