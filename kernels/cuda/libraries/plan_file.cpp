#include "kernels/cuda/libraries/plan_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/cache_folder.h"
#include "base/file.h"

namespace fettle::kernels::cuda {
namespace {

constexpr std::size_t kMostBytes = 4 << 20;

// Turns "NVIDIA H100 80GB HBM3" into "nvidia-h100-80gb-hbm3".
std::string file_name(std::string_view device) {
  std::string name;
  for (const char c : device) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '-';
  }
  return name;
}

Status check_kind(const Json& file, const GpuKind& kind) {
  const std::pair<const char*, const std::string&> expected[] = {
      {"device", kind.name},
      {"compute_capability", kind.compute_capability},
      {"cuda", kind.cuda},
      {"fettle", kind.fettle}};
  for (const auto& [key, value] : expected) {
    const Json* const found = file.find(key);
    if (found != nullptr && *found == Json(value)) continue;
    return invalid(std::string(key) + ": found " + (found == nullptr ? "nothing" : found->dump()) +
                   ", expected " + Json(value).dump());
  }
  return success();
}

// A lock on a separate file, because the plans' file is replaced. On NFS the server holds the lock.
// A process that dies releases it.
class Lock {
 public:
  static Result<Lock> take(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return io_error(path + ": " + system_message(errno));
    Lock lock(fd);
    for (int waited = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++waited) {
      const bool held = errno == EWOULDBLOCK || errno == EINTR;
      if (!held || waited == kMostWaits) {
        return io_error(path + ": cannot be locked: " + system_message(errno));
      }
      std::this_thread::sleep_for(kWait);
    }
    return lock;
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  // A holder reads and writes a small file, so a minute means a file system that does not answer.
  static constexpr std::chrono::milliseconds kWait{5};
  static constexpr int kMostWaits = 60'000 / 5;

  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

Result<TimedPlan> read_plan(const Json& json) {
  const Json* const plan = json.find("plan");
  const Json* const time = json.find("microseconds");
  if (plan == nullptr || !plan->is_string() || time == nullptr || !time->is_number()) {
    return invalid("found " + json.dump() +
                   ", expected {\"plan\": text, \"microseconds\": number}");
  }
  return TimedPlan{plan->as_string(), time->as_double()};
}

}  // namespace

std::string plan_file_path(const GpuKind& kind) {
  const std::string folder = cache_folder("FETTLE_KERNEL_CACHE", "kernels");
  if (folder.empty()) return "";
  return folder + "/" + file_name(kind.name + " " + kind.compute_capability) + ".json";
}

Json to_json(const GpuKind& kind, const TimedPlans& plans) {
  Json all = Json::object();
  for (const auto& [key, plan] : plans) {
    all.set(key, Json::object({{"plan", plan.plan}, {"microseconds", plan.microseconds}}));
  }
  return Json::object({{"device", kind.name},
                       {"compute_capability", kind.compute_capability},
                       {"cuda", kind.cuda},
                       {"fettle", kind.fettle},
                       {"plans", std::move(all)}});
}

Result<TimedPlans> read_timed_plans(std::string_view text, const GpuKind& kind) {
  FETTLE_ASSIGN(const Json file, parse_json(text));
  FETTLE_TRY(check_kind(file, kind));
  const Json* const all = file.find("plans");
  if (all == nullptr || !all->is_object()) return invalid("plans: expected an object");
  TimedPlans plans;
  for (const auto& [key, json] : all->as_object()) {
    FETTLE_ASSIGN(TimedPlan plan, read_plan(json));
    plans.emplace(key, std::move(plan));
  }
  return plans;
}

Result<TimedPlans> load_timed_plans(const GpuKind& kind) {
  const std::string path = plan_file_path(kind);
  if (path.empty()) return TimedPlans{};
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return TimedPlans{};
  Result<TimedPlans> plans = text.ok() ? read_timed_plans(*text, kind) : text.error();
  if (plans.ok()) return plans;
  Error error = plans.error();
  // Errors of read_file contain the path, errors of the parser do not.
  const bool names_it = error.message.find(path) != std::string::npos;
  if (!names_it) error = std::move(error).in(path);
  error.message += "; plans are timed again, and the file is replaced";
  return error;
}

Result<TimedPlan> keep_timed_plan(const GpuKind& kind, const std::string& key,
                                  const TimedPlan& plan) {
  const std::string path = plan_file_path(kind);
  if (path.empty()) return plan;  // no folder for caches: nothing is shared
  FETTLE_TRY(make_directories(path.substr(0, path.rfind('/'))));
  FETTLE_ASSIGN(const Lock lock, Lock::take(path + ".lock"));
  Result<TimedPlans> found = load_timed_plans(kind);
  TimedPlans all = found.ok() ? std::move(found).value() : TimedPlans{};  // unusable: replaced
  const auto [at, is_new] = all.emplace(key, plan);  // keeps another process's earlier plan
  if (is_new) FETTLE_TRY(write_file(path, to_json(kind, all).dump(2) + "\n"));
  return at->second;
}

}  // namespace fettle::kernels::cuda
