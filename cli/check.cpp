#include "cli/check.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "core/plan.h"
#include "runtime/local/run_command.h"
#include "search/search.h"

namespace fettle::cli {
namespace {

// Standard input, but no more of it than is needed to see that it is too long.
std::string read_input() {
  std::string text(api::kMaxStudyFileBytes + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

// What the document alone cannot show.
std::optional<Error> check_beyond_document(const api::Study& study) {
  if (auto sampler = search::make_sampler(core::problem_of(study)); !sampler.ok()) {
    return Error{sampler.error()}.in("spec.algorithm");
  }
  if (Status runnable = local::check_study(study); !runnable.ok()) return runnable.error();
  return std::nullopt;
}

}  // namespace

api::LoadedFile check_study_file(const std::string& path) {
  api::LoadedFile loaded =
      path == "-" ? api::load_study_text(read_input(), "-") : api::load_study_file(path);
  std::vector<api::Study> good;
  for (api::Study& study : loaded.studies) {
    if (const auto error = check_beyond_document(study)) {
      loaded.diagnostics.push_back({path, 0, 0, study.metadata.name, error->message});
    } else {
      good.push_back(std::move(study));
    }
  }
  loaded.studies = std::move(good);
  return loaded;
}

}  // namespace fettle::cli
