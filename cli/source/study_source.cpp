#include "cli/source/study_source.h"

#include <algorithm>
#include <iostream>

#include "cli/terminal/text.h"

namespace fettle::cli {

Result<std::vector<StudyMark>> StudySource::marks() {
  FETTLE_ASSIGN(const std::vector<std::string> all, names());
  std::vector<StudyMark> marks;
  for (const std::string& name : all) marks.push_back({name, stamp(name)});
  return marks;
}

Status StudySource::print_newest_log(const SeenStudy& /*seen*/, const std::string& trial,
                                     const LogPrinter& print) {
  return print_log(trial, std::nullopt, /*follow=*/false, print);
}
namespace {

// "digits-12" -> "digits"; "" for text that cannot be a trial's name.
std::string study_of(const std::string& trial) {
  const std::size_t dash = trial.rfind('-');
  if (dash == std::string::npos || dash + 1 == trial.size()) return "";
  const bool number = std::all_of(trial.begin() + static_cast<std::ptrdiff_t>(dash) + 1,
                                  trial.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number ? trial.substr(0, dash) : "";
}

}  // namespace

Result<std::string> default_study(StudySource& source) {
  FETTLE_ASSIGN(const std::vector<std::string> names, source.names());
  if (names.empty()) {
    return not_found("there is no study " + source.place() + "; fettle run FILE begins one" +
                     source.elsewhere());
  }
  if (names.size() == 1) return names.front();
  FETTLE_ASSIGN(std::string newest, source.newest());
  std::cerr << "fettle: study " << printable(newest) << ", the newest of " << names.size() << ' '
            << source.place() << '\n';
  return newest;
}

Result<SeenStudy> read_study_of(StudySource& source, const std::string& trial) {
  const std::string study = study_of(trial);
  if (study.empty()) {
    return not_found("'" + printable(trial) +
                     "' is no trial; trials are called <study>-<number>, and "
                     "`fettle trials <study>` lists them");
  }
  FETTLE_ASSIGN(SeenStudy seen, source.read(study, Detail::kObjects));
  if (find_trial(seen.view.trials, trial) == nullptr) return no_such_trial(seen, trial);
  return seen;
}

Error no_such_trial(const SeenStudy& seen, const std::string& trial) {
  return not_found("study " + seen.view.study.metadata.name + " has " +
                   plural(std::ssize(seen.view.trials), "trial") + " and none is called " +
                   printable(trial));
}

Error no_such_study(const std::string& name, const std::string& place,
                    const std::vector<std::string>& studies, const std::string& hint) {
  constexpr std::size_t kMostNamed = 10;
  std::string message = "no study '" + printable(name) + "' " + place;
  if (studies.empty()) return not_found(message + ", nor any other; " + hint);
  message += "; there are: ";
  for (std::size_t i = 0; i < studies.size() && i < kMostNamed; ++i) {
    message += (i > 0 ? ", " : "") + studies[i];
  }
  return not_found(message + (studies.size() > kMostNamed ? ", ..." : ""));
}

}  // namespace fettle::cli
