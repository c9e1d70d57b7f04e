// The list and watch protocol of the Kubernetes API as a pure state machine without IO, clock or
// entropy; watch_loop.h drives it.
//
//   kIdle ─▶ kListing ─▶ kWatching ◀─▶ kWaiting
//               ▲  └────▶ kWaiting        │
//               └─────────────────────────┘
//
// It lists with resourceVersion "" (the newest state; with "0" a restarted process could go back in
// time), page by page, and watches from the list's version with bookmarks. The reason for the end
// of a watch decides what follows:
//   ended by the server      watch again from the last version seen, at once
//   ended within a second,
//   with nothing seen        the same, after a back-off
//   network, 429, 5xx,
//   a line that is no JSON   the same; after kMaxResumes in a row list again
//   410, "too large version" list again, at once the first time
//   anything else            list again after a back-off
// A later page of a list that fails because of the network, 429 or 5xx is requested again, after
// its Retry-After, and earlier pages are kept: otherwise a long list would never end under
// throttling. Only 410, or kMaxPageTries in a row, begin the list again. A list without an object
// reveals a missed deletion. Rules and numbers follow client-go's reflector, the shape kube-rs.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/philox.h"
#include "kube/client/backoff.h"
#include "kube/client/http.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

inline constexpr BackoffRules kWatchBackoff{std::chrono::milliseconds(800),
                                            std::chrono::milliseconds(30'000),
                                            std::chrono::milliseconds(120'000)};
inline constexpr std::chrono::milliseconds kVeryShortWatch{1'000};
inline constexpr int kMaxResumes = 5;
// Tries in a row of one later page of a list; then the list begins again.
inline constexpr int kMaxPageTries = 10;
inline constexpr int kPageSize = 500;

// The objects to list and watch.
struct WatchTarget {
  Resource resource;
  std::string ns;  // "" = all namespaces
  std::string label_selector;
  BackoffRules backoff = kWatchBackoff;
  int page_size = kPageSize;  // objects a page of a list
};

// Monotonic time.
using SteadyTime = std::chrono::milliseconds;

struct WatcherState {
  enum class Phase { kIdle, kListing, kWatching, kWaiting };
  Phase phase = Phase::kIdle;
  std::string version;         // seen up to here; "" = list next
  std::string continue_token;  // of the list in progress
  Random random{0};

  // State of the current watch.
  SteadyTime began{0};
  bool saw_news = false;
  bool ending = false;  // asked to end; the next action is already decided

  // State of the failures in a row.
  Backoff backoff;
  bool failing = false;                // Failed was the last output, without a Recovered yet
  int resumes = 0;                     // watches in a row that failed from one version
  int page_tries = 0;                  // of the requested page
  bool listed_at_once = false;         // without a back-off; not twice in a row
  std::chrono::milliseconds pause{0};  // before the action after an ended watch
};

// Inputs.
struct Begin {};  // at the start, and after a Wait
struct ListAnswered {
  HttpResult result;
};
struct LineCame {
  std::string_view line;
};
struct WatchEnded {
  HttpResult result;
};
using WatcherInput = std::variant<Begin, ListAnswered, LineCame, WatchEnded>;

// Outputs, in the order of their execution.
struct SendList {
  std::string target;
  bool first_page = true;
};
struct SendWatch {
  std::string target;
};
struct EndWatch {};  // the watch under way; WatchEnded follows
struct Wait {
  std::chrono::milliseconds time;
};
struct Listed {
  std::vector<Json> objects;  // of one page
};
struct ListComplete {
  std::string version;
};
struct Changed {
  Json object;
};
struct Gone {
  Json object;  // its last state
};
struct Advanced {
  std::string version;  // all earlier versions have been seen
};
struct Failed {
  std::string message;
};
struct Recovered {};
struct Skipped {
  std::string message;
};
using WatcherOutput = std::variant<SendList, SendWatch, EndWatch, Wait, Listed, ListComplete,
                                   Changed, Gone, Advanced, Failed, Recovered, Skipped>;

struct WatcherStep {
  WatcherState state;
  std::vector<WatcherOutput> outputs;
};

// `now` never goes back. A state begins as WatcherState{} with its own `random`.
WatcherStep step(const WatchTarget& target, WatcherState state, const WatcherInput& input,
                 SteadyTime now);

}  // namespace fettle::kube
