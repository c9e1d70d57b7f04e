// SpaceMap: points of an earlier Study as points of another one.
//
// Parameters correspond by name, or as `names` says. A value carries over as it is; a number is
// moved to the nearest step. A point that this space does not have (outside its bounds, a choice
// that is no more) has no image: moved to the nearest bound its result would be told of a place
// where it was not seen. A parameter that the earlier point lacks is drawn, since nothing is known
// of it: one fixed value for all points would look as if it had been the only one worth trying.
// Immutable; safe to share between threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/study.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/result.h"
#include "search/space/space.h"

namespace fettle::search {

class SpaceMap {
 public:
  // `names`: what parameters of this space are called there. Errors: those of Space::make.
  static Result<SpaceMap> make(const std::vector<api::Parameter>& parameters,
                               std::map<std::string, std::string> names);

  // Active parameters only, as Space writes them.
  std::optional<Json> image(const Json& point, Random& random) const;

 private:
  SpaceMap(Space space, const std::vector<api::Parameter>& parameters,
           std::map<std::string, std::string> names)
      : space_(std::move(space)), parameters_(parameters), names_(std::move(names)) {}

  Space space_;
  std::vector<api::Parameter> parameters_;
  std::map<std::string, std::string> names_;
};

}  // namespace fettle::search
