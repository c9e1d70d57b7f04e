#include "runtime/local/worker/worker_list.h"

#include "api/fields/field_document.h"
#include "api/fields/field_writer.h"
#include "api/trial/trial_fields.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::local {

constexpr std::size_t kMostBytes = 4 << 20;

struct WorkerList {
  std::vector<WorkerView> workers;
};

template <class Visitor, api::Like<WorkerView> T>
void visit_fields(Visitor& v, T& c) {
  v.field("number", c.number, "Its number.", api::count_from(1));
  v.field("trained", c.trained, "Runs that have ended.", api::count_from(0));
  v.field("memoryBytes", c.memory, "Bytes at its last run's end.", api::count_from(0));
  v.field("runs", c.runs, "Runs that it trains.");
}

template <class Visitor, api::Like<WorkerList> T>
void visit_fields(Visitor& v, T& c) {
  v.field("workers", c.workers, "The workers.", api::list(0, 4'096));
}

Status write_workers(const Layout& layout, const std::vector<WorkerView>& workers) {
  FETTLE_TRY(make_directories(layout.workers_directory()));
  return write_file(layout.workers_file(), api::write_struct(WorkerList{workers}).dump() + "\n");
}

std::vector<WorkerView> read_workers(const Layout& layout) {
  if (StudyLock::holder(layout.lock()) == 0) return {};
  const Result<std::string> text = read_file(layout.workers_file(), kMostBytes);
  const Result<Json> document = text.ok() ? parse_json(*text) : text.error();
  if (!document.ok()) return {};
  const auto list =
      api::read_document<WorkerList>(*document, api::UnknownFields::kIgnoredWithBounds);
  return list.ok() ? list->workers : std::vector<WorkerView>{};
}

std::string describe(const std::vector<WorkerView>& workers) {
  if (workers.empty()) return "";
  std::int64_t trained = 0;
  std::int64_t training = 0;
  std::int64_t memory = 0;
  for (const WorkerView& worker : workers) {
    trained += worker.trained;
    training += std::ssize(worker.runs);
    memory += worker.memory;
  }
  std::string text = std::to_string(workers.size()) + " warm: " + std::to_string(trained) +
                     " trials trained, " + std::to_string(training) + " in training";
  if (memory > 0) text += ", " + std::to_string((memory + (1 << 19)) >> 20) + " MiB";
  return text;
}

}  // namespace fettle::local
