#include "search/space/space_map.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fettle::search {
namespace {

bool is_numeric(const api::Parameter& parameter) {
  return parameter.type == api::ParameterType::kDouble ||
         parameter.type == api::ParameterType::kInteger;
}

// Moves a number within the bounds to the nearest step; returns other values unchanged.
Json on_step(const api::Parameter& parameter, const Json& value) {
  if (!is_numeric(parameter) || !value.is_number()) return value;
  double number = value.as_double();
  // Beyond a bound: unchanged, so that Dimension::coordinate() rejects it.
  if (!(number >= parameter.min && number <= parameter.max)) return value;
  const bool whole = parameter.type == api::ParameterType::kInteger;
  const double step = parameter.step.value_or(whole ? 1 : 0);
  if (step > 0) {
    // A range that is a multiple of the step except for rounding includes its end (dimension.cpp).
    const double last = std::floor((parameter.max - parameter.min) / step + 1e-9);
    const double steps = std::min(std::round((number - parameter.min) / step), last);
    number = parameter.min + steps * step;
  }
  return whole ? Json(static_cast<std::int64_t>(std::llround(number))) : Json(number);
}

}  // namespace

Result<SpaceMap> SpaceMap::make(const std::vector<api::Parameter>& parameters,
                                std::map<std::string, std::string> names) {
  FETTLE_ASSIGN(Space space, Space::make(parameters));
  return SpaceMap(std::move(space), parameters, std::move(names));
}

std::optional<Json> SpaceMap::image(const Json& point, Random& random) const {
  Point out(space_.dimensions(), kInactive);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double drawn = random.uniform();  // always drawn, so that each parameter has its own draw
    if (!space_.active(i, out)) continue;
    const std::string& here = parameters_[i].name;
    const auto renamed = names_.find(here);
    const Json* value = point.find(renamed == names_.end() ? here : renamed->second);
    if (value == nullptr) {
      out[i] = space_.dimension(i).from_unit(drawn);
      continue;
    }
    const auto coordinate = space_.dimension(i).coordinate(on_step(parameters_[i], *value));
    if (!coordinate) return std::nullopt;
    out[i] = *coordinate;
  }
  return space_.write(out);
}

}  // namespace fettle::search
