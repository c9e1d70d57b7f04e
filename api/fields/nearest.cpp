#include "api/fields/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace fettle::api {
namespace {

constexpr std::size_t kLongestName = 64;  // longer ones are no typos

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Words of Optuna, Ray Tune, Katib and W&B, in lower case, with Fettle's word for each.
constexpr std::pair<std::string_view, std::string_view> kWordsOfPeers[] = {
    {"float", "Double"},
    {"uniform", "Double"},
    {"loguniform", "Double"},
    {"int", "Integer"},
    {"randint", "Integer"},
    {"choice", "Categorical"},
    {"discrete", "Categorical"},
    {"low", "min"},
    {"lower", "min"},
    {"high", "max"},
    {"upper", "max"},
    {"choices", "values"},
    {"list", "values"},
    {"log", "scale"},
    {"distribution", "scale"},
    {"n_trials", "trials"},
    {"maxtrialcount", "trials"},
    {"num_samples", "trials"},
    {"n_jobs", "parallelism"},
    {"paralleltrialcount", "parallelism"},
    {"max_concurrent", "parallelism"},
    {"maxfailedtrialcount", "failures"},
    {"timeout", "wallTime"},
    {"goal", "direction"},
    {"mode", "direction"},
};

// Words of earlier versions, with what replaces each.
constexpr std::pair<std::string_view, std::string_view> kRemoved[] = {{"dehb", "bohb"}};

std::string_view word_for(std::string_view of_a_peer,
                          std::span<const std::string_view> candidates) {
  std::string word;
  for (const char c : of_a_peer.substr(0, kLongestName)) word += lower(c);
  for (const auto& [theirs, ours] : kWordsOfPeers) {
    if (word == theirs && std::ranges::find(candidates, ours) != candidates.end()) return ours;
  }
  return {};
}

// Optimal string alignment distance, case aside.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;  // the current row of the table and two before it
  for (auto& row : rows) row.assign(b.size() + 1, 0);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kLongestName) return {};
  // A third of the letters may be wrong, and at least one letter.
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t d = distance(name, candidate);
    if (d >= best_distance || d >= candidate.size()) continue;  // nothing in common
    best_distance = d;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  for (const auto& [removed, instead] : kRemoved) {
    if (name != removed || std::ranges::find(candidates, instead) == candidates.end()) continue;
    return "; " + std::string(removed) + " was removed: use " + std::string(instead);
  }
  std::string_view hint = word_for(name, candidates);
  if (hint.empty()) hint = nearest(name, candidates);
  return hint.empty() ? std::string() : "; did you mean " + std::string(hint) + "?";
}

}  // namespace fettle::api
