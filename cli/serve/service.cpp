#include "cli/serve/service.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/serve/answers.h"
#include "cli/serve/shells.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMostFeeds = 48;
constexpr std::uint64_t kBetweenEpochs = 1'000'000;  // a feed begins fewer than that of its own

class StreamSink final : public EventSink {
 public:
  explicit StreamSink(std::shared_ptr<HttpStream> stream) : stream_(std::move(stream)) {}
  bool send(std::string_view bytes) override { return stream_->send(bytes); }
  void end() override { stream_->end(); }
  bool is_closed() const override { return stream_->is_closed(); }
  std::size_t pending() const override { return stream_->pending(); }

 private:
  const std::shared_ptr<HttpStream> stream_;
};

HttpAnswer stream_answer(std::shared_ptr<HttpStream> stream) {
  return {.content_type = "text/event-stream; charset=utf-8", .stream = std::move(stream)};
}

HttpAnswer not_there() { return error_answer(not_found("there is no such page")); }

std::uint64_t bytes_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

// "digits-12" -> "digits".
std::string study_of_trial(const std::string& trial) { return trial.substr(0, trial.rfind('-')); }

}  // namespace

Service::Service(Access access, MakeSource make_source, ServiceOptions options)
    : access_(std::move(access)),
      make_source_(std::move(make_source)),
      options_(std::move(options)),
      next_epoch_(options_.epoch),
      list_(options_.only),
      logs_(make_source_),
      jobs_(make_source_) {}

Status Service::start() { return jobs_.start(); }

HttpAnswer Service::answer(const HttpRequest& request) {
  std::optional<HttpAnswer> refused = access_.refuse(request);
  HttpAnswer answer = refused ? *std::move(refused) : route(route_of(request), request);
  if (answer.later == nullptr) add_safety_headers(answer);
  return answer;
}

bool Service::is_served(const Route& route) const {
  if (options_.only.empty() || route.name.empty()) return true;
  const bool of_trial = route.page == Page::kLog || route.page == Page::kWhy;
  const std::string study = of_trial ? study_of_trial(route.name) : route.name;
  return route.page == Page::kAsset ||
         std::ranges::find(options_.only, study) != options_.only.end();
}

HttpAnswer Service::route(const Route& route, const HttpRequest& request) {
  if (!is_served(route)) return not_there();
  const std::string& name = route.name;
  switch (route.page) {
    case Page::kUnknown:
      return not_there();
    case Page::kList:
      return list_page();
    case Page::kStudy:
      return study_page();
    case Page::kCompare:
      return compare_page();
    case Page::kAsset:
      return asset(name);
    case Page::kEvents:
      return events(name, request);
    case Page::kLog:
      return log(name, request);
    case Page::kDocument:
      return later([name, known = std::string(request.header("if-none-match"))](
                       StudySource& source) { return document_answer(source, name, known); });
    case Page::kInsight:
      return later([name](StudySource& source) { return insight_answer(source, name); });
    case Page::kWhy:
      return later([name](StudySource& source) { return why_answer(source, name); });
    case Page::kStudies:
    case Page::kMetrics:
      return later([this, page = route.page](StudySource& source) {
        const std::lock_guard lock(list_mutex_);
        return page == Page::kMetrics ? metrics_answer(source, list_)
                                      : studies_answer(source, list_);
      });
  }
  return not_there();
}

HttpAnswer Service::later(std::function<HttpAnswer(StudySource&)> work) {
  const auto answer = std::make_shared<HttpLater>();
  const bool added = jobs_.add([answer, work = std::move(work)](Result<StudySource*> source) {
    HttpAnswer made = source.ok() ? work(**source) : error_answer(source.error());
    add_safety_headers(made);
    answer->answer(std::move(made));
  });
  if (added) return {.later = answer};
  return error_answer({ErrorCode::kUnavailable, "too many requests wait for an answer"});
}

HttpAnswer Service::events(const std::string& study, const HttpRequest& request) {
  const auto stream = std::make_shared<HttpStream>();
  const auto position = FeedPosition::parse(request.header("last-event-id"));
  const std::lock_guard lock(feeds_mutex_);
  const auto feed = feed_of(study);
  if (!feed.ok()) return error_answer(feed.error());
  if ((*feed)->listen(std::make_shared<StreamSink>(stream), position)) {
    return stream_answer(stream);
  }
  return error_answer({ErrorCode::kUnavailable, "ask again"});  // it ended in this moment
}

Result<FeedThread*> Service::feed_of(const std::string& study) {
  std::erase_if(feeds_, [](const auto& one) { return one.second->is_over(); });
  const auto known = feeds_.find(study);
  if (known != feeds_.end()) return known->second.get();
  if (feeds_.size() >= kMostFeeds) {
    return Error{ErrorCode::kUnavailable, "too many studies are followed; close some pages"};
  }
  FETTLE_ASSIGN(auto source, make_source_());
  const std::uint64_t epoch = next_epoch_;
  next_epoch_ += kBetweenEpochs;
  auto followed = study.empty() ? follow_list(std::move(source), options_.only, epoch)
                                : follow_study(std::move(source), study, epoch);
  FETTLE_ASSIGN(auto feed,
                FeedThread::start(std::move(followed),
                                  study.empty() ? options_.list_poll_ms : options_.study_poll_ms));
  return (feeds_[study] = std::move(feed)).get();
}

HttpAnswer Service::log(const std::string& trial, const HttpRequest& request) {
  std::uint64_t from = bytes_in(request.query_value("from"));
  if (request.query_value("follow").empty()) {
    return later([trial, from](StudySource& source) { return log_answer(source, trial, from); });
  }
  if (const auto id = request.header("last-event-id"); !id.empty()) from = bytes_in(id);
  const auto stream = std::make_shared<HttpStream>();
  const Status followed = logs_.follow(trial, from, std::make_shared<StreamSink>(stream));
  return followed.ok() ? stream_answer(stream) : error_answer(followed.error());
}

void Service::tick(std::int64_t now_ms) {
  logs_.tick(now_ms);
  const std::lock_guard lock(feeds_mutex_);
  std::erase_if(feeds_, [](const auto& one) { return one.second->is_over(); });
}

}  // namespace fettle::cli
