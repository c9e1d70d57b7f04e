// SpaceMap: maps points of an earlier Study to points of this one.
//
// Parameters correspond by name, or as `names` says. A value is kept; a number is moved to the
// nearest step. A point outside this space (beyond a bound, or with a choice that was removed) has
// no image: moved to the nearest bound, its result would be attributed to a point where it was not
// observed. A parameter that the earlier point lacks is drawn, since nothing is known about it: one
// fixed value for all points would look like the only one worth trying. Immutable; safe to share
// between threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/result.h"
#include "search/space/space.h"

namespace fettle::search {

class SpaceMap {
 public:
  // `names`: maps names of this space to names in the earlier Study. Errors: Space::make's.
  static Result<SpaceMap> make(const std::vector<api::Parameter>& parameters,
                               std::map<std::string, std::string> names);

  // Active parameters only, as Space writes them; nullopt if the point has no image.
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
