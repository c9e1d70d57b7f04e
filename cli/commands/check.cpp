#include "cli/commands/check.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "core/problem.h"
#include "runtime/local/run/run_command.h"
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
std::optional<Error> check_beyond_document(const api::Study& study, bool on_cluster) {
  if (auto sampler = search::make_sampler(core::problem_of(study)); !sampler.ok()) {
    return Error{sampler.error()}.in("spec.algorithm");
  }
  if (on_cluster) return std::nullopt;  // the API server checks the rest
  if (Status runnable = local::check_study(study); !runnable.ok()) return runnable.error();
  return std::nullopt;
}

}  // namespace

api::LoadedFile check_study_file(const std::string& path, bool on_cluster) {
  api::LoadedFile loaded =
      path == "-" ? api::load_study_text(read_input(), "-") : api::load_study_file(path);
  api::LoadedFile good;
  for (std::size_t i = 0; i < loaded.studies.size(); ++i) {
    api::Study& study = loaded.studies[i];
    if (const auto error = check_beyond_document(study, on_cluster)) {
      loaded.diagnostics.push_back({path, 0, 0, study.metadata.name, error->message});
    } else {
      good.studies.push_back(std::move(study));
      good.documents.push_back(std::move(loaded.documents[i]));
    }
  }
  good.diagnostics = std::move(loaded.diagnostics);
  return good;
}

}  // namespace fettle::cli
