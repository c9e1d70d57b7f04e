// Studies of `fettle suggest --study`: no program runs their trials. Their client does, and tells
// the results. Pure; may be called from any thread.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/json.h"

namespace fettle::cli {

// The template of such a Study, as each valid Study has a trainer or a template. It has no command,
// and there is no such image.
inline Json template_of_asked() {
  const Json container = Json::object({{"name", "client"}, {"image", "fettle.dev/asked"}});
  const Json spec = Json::object({{"containers", Json(Json::Array{container})}});
  return Json::object({{"spec", spec}});
}

inline bool is_asked(const api::StudySpec& spec) {
  return spec.trial.pod_template == template_of_asked();
}

// Why `fettle run` does not run it.
inline std::string why_not_run(const std::string& study) {
  return "the trials of study " + study +
         " are evaluated by the program that asks fettle suggest for them, so there is nothing to "
         "run: continue it with fettle suggest --study " +
         study + ", or give the file another metadata.name";
}

}  // namespace fettle::cli
