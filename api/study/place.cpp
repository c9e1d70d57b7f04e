#include "api/study/place.h"

namespace fettle::api {

bool checkpoints_survive(const StudySpec& spec, Place place) {
  const std::optional<Checkpoints>& wanted = spec.trial.checkpoints;
  return place == Place::kLocal || (wanted && (!wanted->claim.empty() || wanted->size));
}

}  // namespace fettle::api
