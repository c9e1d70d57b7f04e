#include "search/space/space.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/check.h"

namespace fettle::search {
namespace {

// Saturating arithmetic: operands are at most kUnbounded, and so is the result.
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return a >= Space::kUnbounded - b ? Space::kUnbounded : a + b;  // 2 * kUnbounded would wrap to 0
}
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  if (a == 0 || b == 0) return 0;
  return a > Space::kUnbounded / b ? Space::kUnbounded : std::min(a * b, Space::kUnbounded);
}

}  // namespace

bool is_active(double coordinate) { return !std::isnan(coordinate); }

Result<Space> Space::make(const std::vector<api::Parameter>& parameters) {
  Space out;
  std::set<std::string> seen;
  for (const api::Parameter& parameter : parameters) {
    const std::string where = "parameter " + Json(parameter.name).dump();
    if (parameter.name.empty()) return invalid("a parameter has no name");
    if (!seen.insert(parameter.name).second) return invalid(where + " is declared twice");
    Result<Dimension> dimension = Dimension::make(parameter);
    if (!dimension.ok()) return Error(dimension.error()).in(where);
    std::optional<Parent> parent;
    if (parameter.when) {
      Result<Parent> found = out.parent_of(parameter, out.names_.size());
      if (!found.ok()) return Error(found.error()).in(where);
      parent = std::move(found).value();
    }
    out.names_.push_back(parameter.name);
    out.dimensions_.push_back(std::move(dimension).value());
    out.parents_.push_back(std::move(parent));
  }
  out.finish();
  return out;
}

Result<Space::Parent> Space::parent_of(const api::Parameter& parameter, std::size_t index) const {
  const api::Condition& when = *parameter.when;
  const auto name = std::find(names_.begin(), names_.end(), when.parameter);
  const std::string on = "its condition is on " + Json(when.parameter).dump();
  if (name == names_.end()) {
    return invalid(on + ", which is not a parameter declared before it");
  }
  Parent out{static_cast<std::size_t>(name - names_.begin()), {}};
  CHECK(out.index < index, "a parameter hangs on one declared before it");
  const Dimension& dimension = dimensions_[out.index];
  if (dimension.continuous()) {
    return invalid(on + ", which has no list of values; give that one a step");
  }
  if (when.in.empty()) return invalid(on + " but lists no value of it");
  for (const Json& value : when.in) {
    const std::optional<double> cell = dimension.coordinate(value);
    if (!cell) return invalid(on + " having the value " + value.dump() + ", which it never has");
    out.cells.push_back(*cell);
  }
  std::sort(out.cells.begin(), out.cells.end());
  out.cells.erase(std::unique(out.cells.begin(), out.cells.end()), out.cells.end());
  return out;
}

void Space::finish() {
  children_.assign(dimensions_.size(), {});
  for (std::size_t index = 0; index < dimensions_.size(); ++index) {
    if (parents_[index]) children_[parents_[index]->index].push_back(index);
  }
  count();
  group();
}

// From the last parameter to the first, so that children are counted before their parents.
void Space::count() {
  branches_.assign(dimensions_.size(), {});
  sizes_.assign(dimensions_.size(), 1);
  size_ = 1;
  for (std::size_t index = dimensions_.size(); index-- > 0;) {
    // For each value that conditions name: the points of its children.
    std::map<double, std::uint64_t> below;
    for (const std::size_t child : children_[index]) {
      for (const double cell : parents_[child]->cells) {
        const auto at = below.emplace(cell, 1).first;
        at->second = times(at->second, sizes_[child]);
      }
    }
    const Dimension& dimension = dimensions_[index];
    // Every other value is one point.
    std::uint64_t size = dimension.continuous() ? kUnbounded : dimension.cells() - below.size();
    for (const auto& [cell, points] : below) {
      branches_[index].push_back({cell, points});
      size = plus(size, points);
    }
    sizes_[index] = std::min(size, kUnbounded);
    if (!parents_[index]) size_ = times(size_, sizes_[index]);
  }
}

void Space::group() {
  // The first parameter cannot have a condition, so the first group has none.
  groups_.clear();
  for (std::size_t index = 0; index < dimensions_.size(); ++index) {
    const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& members) {
      return parents_[members.front()] == parents_[index];
    });
    if (same == groups_.end()) {
      groups_.push_back({index});
    } else {
      same->push_back(index);
    }
  }
}

Space Space::with_points(std::uint64_t points) const {
  Space out = *this;
  for (Dimension& dimension : out.dimensions_) dimension = dimension.with_points(points);
  out.finish();
  return out;
}

bool Space::active(std::size_t index, const Point& point) const {
  const std::optional<Parent>& parent = parents_[index];
  if (!parent) return true;
  const double cell = point[parent->index];
  return is_active(cell) && std::binary_search(parent->cells.begin(), parent->cells.end(), cell);
}

// Distributes `rest`, the number of a point below `cell`, among the parameters that this value
// makes active.
void Space::open(std::size_t parameter, double cell, std::uint64_t rest,
                 std::vector<std::uint64_t>& digits) const {
  const std::vector<std::size_t>& children = children_[parameter];
  for (std::size_t i = children.size(); i-- > 0;) {
    const std::vector<double>& cells = parents_[children[i]]->cells;
    if (!std::binary_search(cells.begin(), cells.end(), cell)) continue;
    digits[children[i]] = rest % sizes_[children[i]];
    rest /= sizes_[children[i]];
  }
}

Point Space::at(std::uint64_t index) const {
  CHECK(index < size_, "the number of a point is below the size of its space");
  // By parameter: the number of a point among the points of the parameter and its descendants.
  std::vector<std::uint64_t> digits(dimensions_.size(), 0);
  for (std::size_t i = dimensions_.size(); i-- > 0;) {
    if (parents_[i]) continue;
    digits[i] = index % sizes_[i];
    index /= sizes_[i];
  }
  Point point(dimensions_.size(), kInactive);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (!active(i, point)) continue;
    CHECK(!dimensions_[i].continuous(), "points of a continuum have no numbers");
    // Cells in order: runs of plain cells, one point each, between the cells that conditions name.
    double next = 0;
    std::uint64_t left = digits[i];
    for (const Branch& branch : branches_[i]) {
      const auto plain = static_cast<std::uint64_t>(branch.cell - next);
      if (left < plain) break;
      left -= plain;
      next = branch.cell;
      if (left < branch.size) {
        open(i, next, left, digits);  // `left` numbers the points of its children
        left = 0;
        break;
      }
      left -= branch.size;
      next += 1;
    }
    point[i] = next + static_cast<double>(left);
  }
  return point;
}

Point Space::from_unit(const std::vector<double>& unit) const {
  Point point(dimensions_.size(), kInactive);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (active(i, point)) point[i] = dimensions_[i].from_unit(unit[i]);
  }
  return point;
}

Point Space::middle() const {
  Point point = from_unit(std::vector<double>(dimensions_.size(), 0.5));
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (is_active(point[i])) point[i] = dimensions_[i].middle();
  }
  return point;
}

Point Space::draw(Random& random) const {
  std::vector<double> unit(dimensions_.size());
  for (double& u : unit) u = random.uniform();
  return from_unit(unit);
}

Json Space::write(const Point& point) const {
  Json out = Json::object();
  Json::Object& members = out.as_object();
  // Histories keep very many of these objects, so each reserves only the members it needs.
  members.reserve(static_cast<std::size_t>(std::count_if(point.begin(), point.end(), is_active)));
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (is_active(point[i])) members.emplace_back(names_[i], dimensions_[i].value(point[i]));
  }
  return out;
}

std::optional<Point> Space::read(const Json& parameters) const {
  if (!parameters.is_object()) return std::nullopt;
  const Json::Object& members = parameters.as_object();
  Point point(dimensions_.size(), kInactive);
  std::size_t read = 0;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (!active(i, point)) continue;
    // Members in the order of declaration, as write() leaves them, need no search.
    const bool in_order = read < members.size() && members[read].first == names_[i];
    const Json* value = in_order ? &members[read].second : parameters.find(names_[i]);
    if (value == nullptr) return std::nullopt;
    const std::optional<double> coordinate = dimensions_[i].coordinate(*value);
    if (!coordinate) return std::nullopt;
    point[i] = *coordinate;
    ++read;
  }
  // A member that is left over is unknown, or belongs to a parameter that is not active.
  return read == members.size() ? std::optional(std::move(point)) : std::nullopt;
}

std::uint64_t Space::key(const Point& point) const {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (!is_active(point[i])) continue;
    key = mix_keys(mix_keys(key, i), std::bit_cast<std::uint64_t>(point[i] + 0.0));  // -0 becomes 0
  }
  return key;
}

}  // namespace fettle::search
