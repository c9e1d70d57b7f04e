// The loop: changes are enqueued, and due items go to their controllers.
#include "core/control/manager.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "core/control/study_controller.h"
#include "core/control/trial_controller.h"

namespace fettle::control {

namespace {

// How long run() may sleep before it asks finished() again.
constexpr std::int64_t kMaxSleepMs = 1'000;

// A change of a trial also enqueues its Study, whose reconcile turns the change into facts.
void enqueue(BlockingQueue& queue, const Change& change) {
  queue.add({change.kind, change.key});
  if (change.kind == Kind::kTrial) queue.add({Kind::kStudy, {change.key.ns, change.study}});
}

// The retry interval for objects of a namespace that is not listed completely.
constexpr std::int64_t kUnreadyMs = 100;

// "namespace/name" or "name".
Key key_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return {"", text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

// Errors that may pass: another writer was faster, an object is missing or not yet gone, or an
// administrator may still permit the action.
bool is_transient(ErrorCode code) {
  return code == ErrorCode::kConflict || code == ErrorCode::kAlreadyExists ||
         code == ErrorCode::kNotFound || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kForbidden;
}

}  // namespace

Manager::Manager(Store& store, Runs& runs, Clock& clock, Observer& observer,
                 const ManagerOptions& options)
    : store_(store),
      runs_(runs),
      clock_(clock),
      observer_(observer),
      options_(options),
      queue_(std::make_shared<BlockingQueue>(clock)),
      studies_(std::make_unique<StudyController>(store, runs, clock, observer)),
      trials_(std::make_unique<TrialController>(store, runs, clock, observer, *studies_)),
      in_flight_(clock) {
  store_.watch([queue = queue_](const Change& change) { enqueue(*queue, change); });
  runs_.watch([queue = queue_](const std::string& trial) {
    queue->add({Kind::kTrial, key_of(trial)});
  });
}

Manager::~Manager() { queue_->shut_down(); }

Status Manager::run(const std::function<bool()>& finished) {
  std::atomic<bool> ending = false;
  std::mutex mutex;
  Status outcome = success();  // of the worker that failed first
  // Runs one worker until `over` or an error; either ends the others, too.
  const auto work_until = [&](const std::function<bool()>& over, Lane lane) {
    Status worked = work(over, lane);
    const std::lock_guard lock(mutex);
    if (outcome.ok()) outcome = std::move(worked);
    ending = true;
    queue_->wake();
  };
  std::vector<std::thread> others;
  for (int i = 1; i < options_.workers; ++i) {
    const Lane lane = i == 1 ? Lane::kTrials : Lane::kAll;  // kTrials: see manager.h
    Result<std::thread> other =
        start_thread([&, lane] { work_until([&] { return ending.load(); }, lane); });
    if (!other.ok()) break;  // fewer workers do the same work
    others.push_back(*std::move(other));
  }
  work_until([&] { return ending || finished(); }, Lane::kAll);
  for (std::thread& other : others) other.join();
  return outcome;
}

// The loop of one worker.
Status Manager::work(const std::function<bool()>& finished, Lane lane) {
  while (true) {
    const std::uint64_t wakes = queue_->wakes();  // before finished(), so no wake() is missed
    if (finished()) return success();
    FETTLE_ASSIGN(const bool worked, step(lane));
    // At most 0 if a resync is due: then wait() returns at once.
    const std::int64_t most_ms = std::min(kMaxSleepMs, resync_at_ms_ - clock_.now_ms());
    if (!worked) queue_->wait(most_ms, wakes, lane);
  }
}

void Manager::wake() { queue_->wake(); }

Result<bool> Manager::step(Lane lane) {
  if (clock_.now_ms() >= resync_at_ms_) FETTLE_TRY(resync());
  const std::optional<Item> item = queue_->take(lane);
  if (!item) return false;
  if (options_.ready && !options_.ready(item->key.ns)) {
    // Nothing is reconciled before the namespace is listed. Its Studies only show why that fails.
    ReconcileRecord unseen;
    if (item->kind == Kind::kStudy && !why_blocked(item->key).empty()) {
      write_blocked(item->key, unseen);
    }
    queue_->add_at(*item, clock_.now_ms() + kUnreadyMs);
    queue_->done(*item);
    return true;
  }
  const InFlight::Scope under_way(in_flight_);
  ReconcileRecord record;
  record.item = *item;
  const std::int64_t began_ms = clock_.now_ms();
  const Result<ReconcileResult> outcome =
      item->kind == Kind::kStudy ? studies_->reconcile(item->key) : trials_->reconcile(item->key);
  record.took_ms = clock_.now_ms() - began_ms;
  // Before done(), because until then no other worker takes the item.
  Status settled = settle(*item, outcome, record);
  queue_->done(*item);
  observer_.on_reconciled(record);
  if (!settled.ok()) return settled.error();
  return true;
}

std::int64_t Manager::next_ms() const {
  const std::int64_t resync_at_ms = resync_at_ms_;
  return std::min(resync_at_ms, queue_->next_ms().value_or(resync_at_ms));
}

std::size_t Manager::queue_depth() const { return queue_->depth(); }

// Decides when the item is reconciled again, and completes the record of this reconcile. Error: the
// Manager has to give up.
Status Manager::settle(const Item& item, const Result<ReconcileResult>& outcome,
                       ReconcileRecord& record) {
  if (outcome.ok()) {
    settle_done(item, *outcome, record);
    return success();
  }
  record.requeued = true;
  record.error = outcome.error().message;
  queue_->retry(item);
  note_refusal(item, outcome.error(), record);
  if (is_transient(outcome.error().code)) return success();
  const int failures = refusals_.count_failure(item);
  if (options_.max_failures == 0 || failures < options_.max_failures) return success();
  return Error(outcome.error())
      .in(item.key.name + " failed " + std::to_string(failures) + " times in a row");
}

// The item was reconciled: its rows of retries and refusals end. The condition Blocked is written
// with the Study; if a trial had blocked it, the Study is queued for that.
void Manager::settle_done(const Item& item, const ReconcileResult& result,
                          ReconcileRecord& record) {
  record.actions = result.actions;
  queue_->forget(item);
  if (result.wake_at_ms) queue_->add_at(item, *result.wake_at_ms);
  const std::optional<Key> blocked = refusals_.remove(item);
  if (item.kind == Kind::kStudy) {
    // A condition that is stored may have to be removed, another one to be set.
    if (result.said_refused || !why_blocked(item.key).empty()) write_blocked(item.key, record);
    return;
  }
  if (blocked || result.said_refused) write_refused(item.key, "", record);
  if (blocked) queue_->add({Kind::kStudy, *blocked});
}

void Manager::note_refusal(const Item& item, const Error& error, ReconcileRecord& record) {
  const Key study = study_of(item);
  record.refused = refusals_.add(item, study, error, clock_.now_ms());
  if (!why_blocked(study).empty()) write_blocked(study, record);
  const bool is_told = item.kind == Kind::kTrial && refusals_.is_blocked(item);
  if (is_told) write_refused(item.key, error.message, record);
}

// Why the Study makes no progress, in the API server's words.
std::string Manager::why_blocked(const Key& study) const {
  std::string words = refusals_.of_study(study);
  return words.empty() && options_.trouble ? options_.trouble(study.ns) : words;
}

void Manager::write_blocked(const Key& study, ReconcileRecord& record) {
  note_unsaid("Blocked", studies_->set_blocked(study, why_blocked(study)), record);
}

// The same for a trial, in its own condition.
void Manager::write_refused(const Key& trial, const std::string& words, ReconcileRecord& record) {
  note_unsaid("Waiting", trials_->set_refused(trial, words), record);
}

// If a condition could not be written, at least the observer gets the error.
void Manager::note_unsaid(const std::string& condition, const Status& said,
                          ReconcileRecord& record) {
  // A conflict means that the object has changed; its next reconcile says it.
  if (said.ok() || said.error().code == ErrorCode::kConflict) return;
  if (!record.error.empty()) record.error += "; ";
  record.error += "the condition " + condition + ": " + said.error().message;
}

// The Study that the object is or belongs to.
Key Manager::study_of(const Item& item) {
  if (item.kind == Kind::kStudy) return item.key;
  const Result<api::TrialPtr> trial = store_.get_trial(item.key);
  // "": the trial cannot be read. No Study has this name, so its refusals block none.
  return {item.key.ns, trial.ok() ? (*trial)->spec.study : ""};
}

// Does nothing if it is not due, or another worker is doing it.
Status Manager::resync() {
  const std::unique_lock lock(resync_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || clock_.now_ms() < resync_at_ms_) return success();
  // Set before the lists are read, so that no other worker begins a resync meanwhile.
  resync_at_ms_ = clock_.now_ms() + options_.resync_ms;
  return resync_now();
}

// Enqueues all Studies and Trials. Trials that have ended are reconciled once by each Manager,
// because an earlier Manager may have stopped before it cleaned up after them.
Status Manager::resync_now() {
  // Tries again after 5 ms, 10 ms ... 5 s; the error counts once it has come too often.
  const auto failed = [this](const Error& error) -> Status {
    resync_at_ms_ = clock_.now_ms() + (kMinRetryMs << std::min(resync_failures_, 10));
    ++resync_failures_;
    const bool may_retry = options_.max_failures == 0 || resync_failures_ < options_.max_failures;
    if (may_retry) return success();
    return error;
  };
  const Result<std::vector<api::Study>> studies = store_.list_studies();
  if (!studies.ok()) return failed(studies.error());
  for (const api::Study& study : *studies) {
    const Key key{study.metadata.ns, study.metadata.name};
    const Result<std::vector<api::TrialPtr>> trials = store_.list_trials(key);
    queue_->add({Kind::kStudy, key}, Urgency::kLater);
    // The Study's own reconcile reports the error; other Studies are unaffected.
    if (!trials.ok() && trials.error().code == ErrorCode::kUnavailable) continue;
    if (!trials.ok()) return failed(trials.error());
    for (const api::TrialPtr& trial : *trials) {
      if (resyncs_ > 0 && api::is_terminal(trial->status.phase)) continue;
      queue_->add({Kind::kTrial, {trial->metadata.ns, trial->metadata.name}}, Urgency::kLater);
    }
  }
  ++resyncs_;
  resync_failures_ = 0;
  return success();
}

}  // namespace fettle::control
