#include "cli/serve/feeds/study_feed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/report/study_data.h"

namespace fettle::cli {
namespace {

constexpr const char* kStudy = "study";
constexpr const char* kVolumes = "volumes";
constexpr const char* kInsights = "insights";
constexpr const char* kTrouble = "trouble";
constexpr const char* kGone = "gone";
constexpr std::string_view kTrial = "trial ";

bool is_row(std::string_view part) { return part.starts_with(kTrial); }

// In the order of the trials' numbers.
std::string row_name(std::int64_t index) {
  const std::string number = std::to_string(index);
  return std::string(kTrial) + std::string(20 - std::min<std::size_t>(20, number.size()), '0') +
         number;
}

// Shown until there are estimates.
std::string no_insights(const RunView& view) {
  const Json none = Json::object({{"why", "The importance of parameters is being computed."}});
  return Json(Json::Array(view.study.spec.objectives.size(), none)).dump();
}

bool runs_now(const api::Trial& trial) {
  const api::RunRecord* const run = newest_run(trial);
  return run != nullptr && run->ended_ms == 0;
}

// "trials":[...] of these parts.
std::string rows_json(const Feed& feed, std::vector<std::string> rows) {
  std::ranges::sort(rows);
  std::string json = "\"trials\":[";
  for (const std::string& row : rows) json += (json.back() == '[' ? "" : ",") + feed.part(row);
  return json + ']';
}

}  // namespace

// ---- Seeing ------------------------------------------------------------------------------------

// Another Study of the same name, or one that lost trials: nothing that a reader knows counts.
bool StudyFeed::is_another(const RunView& view) const {
  if (!view_) return is_gone();
  if (view_->study.metadata.uid != view.study.metadata.uid) return true;
  std::size_t known = 0;
  for (const api::TrialPtr& trial : view.trials) known += trials_.contains(trial->spec.index);
  return known < trials_.size();
}

void StudyFeed::see(RunView view) {
  const bool another = is_another(view);
  // Readers that know nothing but trouble get a document, too.
  if (another || (!view_ && feed_.contains(kTrouble))) forget();
  if (feed_.contains(kTrouble)) feed_.set(kTrouble, trouble_json(std::nullopt));
  const bool first = !view_;
  // Rows count times from the start.
  const bool moved = !first && view_->study.status.started_ms != view.study.status.started_ms;
  const bool times = first || moved || view_->interrupted != view.interrupted ||
                     view.now_ms - times_at_ms_ >= kTimesEveryMs;
  const bool changed =
      times || view_->workers != view.workers ||
      view_->study.metadata.resource_version != view.study.metadata.resource_version;
  if (moved) trials_.clear();
  const bool rows_changed = update_rows(view, times);
  if (times) times_at_ms_ = view.now_ms;
  view_ = std::move(view);
  if (changed || rows_changed) set_header();
}

// Returns whether a trial has changed.
bool StudyFeed::update_rows(const RunView& view, bool times) {
  bool changed = false;
  for (const api::TrialPtr& trial : view.trials) {
    SeenTrial& seen = trials_[trial->spec.index];
    const bool is_new = seen.version != trial->metadata.resource_version || seen.version.empty();
    if (!is_new && !(times && seen.runs)) continue;
    changed = changed || is_new;
    seen = {trial->metadata.resource_version, runs_now(*trial)};
    set_row(view, *trial);
  }
  return changed;
}

void StudyFeed::set_row(const RunView& view, const api::Trial& trial) {
  const auto expected = estimates_.expectations.find(trial.spec.index);
  feed_.set(row_name(trial.spec.index),
            trial_data(view, trial,
                       expected == estimates_.expectations.end() ? nullptr : &expected->second)
                .dump());
}

void StudyFeed::set_header() {
  RunView shown = *view_;
  recommend(estimates_.recommendation, shown);
  feed_.set(kStudy, study_data(shown).dump());
  feed_.set(kVolumes, volumes_data(*view_).dump());
}

void StudyFeed::see(Estimates estimates) {
  if (!view_ || estimates.uid != view_->study.metadata.uid) return;
  estimates_ = std::move(estimates);
  for (const api::TrialPtr& trial : view_->trials) {
    if (estimates_.expectations.contains(trial->spec.index)) set_row(*view_, *trial);
  }
  feed_.set(kInsights, estimates_.insights.dump());
  set_header();
}

void StudyFeed::see(const Error& error) {
  if (error.code != ErrorCode::kNotFound) {
    feed_.set(kTrouble, trouble_json(error));
    return;
  }
  if (is_gone()) return;
  forget();
  feed_.set(kGone, Json::object({{"message", error.message}}).dump());
}

void StudyFeed::forget() {
  feed_.clear();
  view_.reset();
  trials_.clear();
  estimates_ = {};
}

bool StudyFeed::is_gone() const { return feed_.contains(kGone); }

bool StudyFeed::wants_estimates() const {
  return view_ && (!feed_.contains(kInsights) || estimates_.facts != count_facts(*view_));
}

// ---- Telling -----------------------------------------------------------------------------------

std::string StudyFeed::events_since(std::optional<FeedPosition>& position) const {
  const FeedPosition here = feed_.here();
  if (here.number == 0 || position == here) return "";  // nothing was seen yet, or nothing new
  if (is_gone()) {
    position = here;
    return event_text("gone", feed_.part(kGone), here.text());
  }
  if (position && feed_.knows(*position)) return changes_since(*position);
  const bool was_another =
      position && position->epoch >= first_epoch_ && position->epoch < here.epoch;
  if (was_another) {
    position = here;
    return event_text("reset", "{}", here.text());
  }
  std::string trouble = feed_.contains(kTrouble) ? event_text("trouble", feed_.part(kTrouble)) : "";
  position = here;
  if (!feed_.contains(kStudy)) return trouble;  // it could not be read even once
  position->number = 0;
  return trouble + document(*position);
}

// Takes rows that changed after `position`, as they fit into one event, and moves it behind them.
std::vector<std::string> StudyFeed::next_parts(FeedPosition& position) const {
  std::size_t bytes = 0;
  std::vector<std::string> parts;
  for (std::string& part : feed_.changed_since(position)) {
    bytes += feed_.part(part).size();
    if (!parts.empty() && bytes > kMostRowBytes) return parts;
    position.number = feed_.number_of(part);
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string StudyFeed::document(FeedPosition& position) const {
  std::vector<std::string> rows = next_parts(position);
  std::erase_if(rows, [](const std::string& part) { return !is_row(part); });
  const std::string& insights = feed_.part(kInsights);
  const std::string json = "{\"key\":" + Json(view_->study.metadata.uid).dump() +
                           ",\"study\":" + feed_.part(kStudy) + ',' +
                           rows_json(feed_, std::move(rows)) +
                           ",\"insights\":" + (insights.empty() ? no_insights(*view_) : insights) +
                           ",\"volumes\":" + feed_.part(kVolumes) + '}';
  return event_text("document", json, position.text());
}

std::string StudyFeed::changes_since(FeedPosition& position) const {
  std::vector<std::string> rows;
  std::string json;
  std::string others;
  for (const std::string& part : next_parts(position)) {
    if (is_row(part)) rows.push_back(part);
    if (part == kStudy || part == kVolumes) json += ",\"" + part + "\":" + feed_.part(part);
    if (part == kTrouble) others += event_text("trouble", feed_.part(part));
    if (part == kInsights) {
      others += event_text("insight", "{\"insights\":" + feed_.part(part) + '}');
    }
  }
  if (!rows.empty()) json += ',' + rows_json(feed_, std::move(rows));
  // Only the last event has an id, so that a reader who lost one of them gets all again.
  json.replace(0, json.empty() ? 0 : 1, "{");
  return others + event_text("change", json + '}', position.text());
}

}  // namespace fettle::cli
