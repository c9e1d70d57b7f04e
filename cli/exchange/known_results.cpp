#include "cli/exchange/known_results.h"

#include <algorithm>
#include <utility>

#include "api/study/known_result.h"
#include "api/study/study_rules.h"
#include "core/study/warm_start.h"

namespace fettle::cli {
namespace {

struct Line {
  Json document;
  std::vector<double> values;  // of the objectives; fewer: of no use for this Study
};

Result<Line> read_line(std::string_view text, const std::vector<api::Objective>& objectives) {
  FETTLE_ASSIGN(Json document, parse_json(text));
  FETTLE_ASSIGN(const api::KnownResult known, api::read_known_result(document));
  Line line{std::move(document), {}};
  for (const api::Objective& objective : objectives) {
    const auto found = known.values.find(objective.metric);
    if (found != known.values.end() && !known.stopped) line.values.push_back(found->second);
  }
  return line;
}

std::vector<Json> choose(std::vector<Line> lines, const std::vector<api::Objective>& objectives,
                         std::size_t most) {
  if (lines.size() > most) {
    std::erase_if(lines, [&](const Line& line) { return line.values.size() < objectives.size(); });
  }
  std::vector<std::vector<double>> values;
  for (const Line& line : lines) values.push_back(line.values);
  std::vector<Json> out;
  // All of them, without a look at their values, if they are few.
  for (const std::size_t i : core::best_and_last(objectives, values, most)) {
    out.push_back(std::move(lines[i].document));
  }
  return out;
}

std::size_t bytes_of(const std::vector<Json>& known) {
  std::size_t bytes = 0;
  for (const Json& one : known) bytes += one.dump().size();
  return bytes;
}

}  // namespace

Result<KnownFile> read_known_file(std::string_view text, const std::string& name,
                                  const std::vector<api::Objective>& objectives) {
  std::vector<Line> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto line = read_line(one, objectives);
    if (!line.ok()) {
      return invalid(
          name + ':' + std::to_string(number) + ": " + line.error().message +
          R"(; expected a line such as {"parameters": {"lr": 0.01}, "values": {"loss": 0.4}})");
    }
    lines.push_back(*std::move(line));
  }
  if (lines.empty()) return invalid(name + " holds no result; leave warmStart.results out");
  KnownFile out;
  out.results = lines.size();
  std::size_t most = api::kMostKnownResults;
  do {
    out.known = choose(lines, objectives, most);
    most /= 2;
  } while (bytes_of(out.known) > kMaxKnownBytes && most > 1);
  return out;
}

}  // namespace fettle::cli
