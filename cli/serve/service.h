// Service: answers the requests of the pages and of programs, from one source of Studies: a folder
// of this machine or a namespace of a cluster. answer() is the handler of the HTTP server and runs
// on its thread; tick() and all else on the main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/http/http_server.h"
#include "cli/serve/access.h"
#include "cli/serve/feeds/feed_thread.h"
#include "cli/serve/feeds/study_list.h"
#include "cli/serve/jobs.h"
#include "cli/serve/log_followers.h"
#include "cli/serve/routes.h"

namespace fettle::cli {

struct ServiceOptions {
  std::vector<std::string> only;     // names of Studies; empty = all
  std::int64_t study_poll_ms = 250;  // between two looks at a Study that is followed
  std::int64_t list_poll_ms = 250;
  std::uint64_t epoch = 0;  // random: of the first feed
};

class Service {
 public:
  Service(Access access, MakeSource make_source, ServiceOptions options);

  Status start();
  HttpAnswer answer(const HttpRequest& request);
  // Call every quarter of a second or so.
  void tick(std::int64_t now_ms);

 private:
  HttpAnswer route(const Route& route, const HttpRequest& request);
  HttpAnswer events(const std::string& study, const HttpRequest& request);
  HttpAnswer log(const std::string& trial, const HttpRequest& request);
  Result<FeedThread*> feed_of(const std::string& study);
  // Answers by a job.
  HttpAnswer later(std::function<HttpAnswer(StudySource&)> work);
  bool is_served(const Route& route) const;

  const Access access_;
  const MakeSource make_source_;
  const ServiceOptions options_;
  std::mutex feeds_mutex_;
  std::uint64_t next_epoch_;                                  // under feeds_mutex_
  std::map<std::string, std::unique_ptr<FeedThread>> feeds_;  // by Study, "" = the list; likewise
  std::mutex list_mutex_;
  StudyList list_;  // of /api/studies and /metrics; under list_mutex_
  LogFollowers logs_;
  Jobs jobs_;
};

}  // namespace fettle::cli
