#include "runtime/local/run/claims.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "api/fields/field_reader.h"
#include "api/fields/field_writer.h"
#include "api/trial/trial_fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine/open_files.h"
#include "base/machine/usable.h"

namespace fettle::local {

// Every user may write any file there, so all fields are bounded.
template <class Visitor, api::Like<Claim> T>
void visit_fields(Visitor& v, T& c) {
  v.field("study", c.study, "The name of its Study.");
  v.field("run", c.run, "The name of the run.");
  v.field("user", c.user, "Who runs it.");
  v.field("runner", c.runner, "The process of the runner.", api::whole(0, 1 << 30));
  v.field("granted", c.granted, "Whether it has what it needs.");
  v.field("sinceUs", c.since_us, "When it began to wait.", api::count_from(0));
  v.field("wantsGpus", c.need.gpus, "GPUs.", api::count_from(0));
  v.field("cores", c.need.cores, "Cores.", api::number(0, api::kLargestBound));
  v.field("memory", c.need.memory, "Bytes.", api::count_from(0));
  v.field("gpus", c.gpus, "Ids of GPUs.", api::list(0, 4096));
  v.field("cpus", c.cpus, "Processors that it may use.", api::list(0, 65'536));
}

namespace {

constexpr const char* kSuffix = ".claim";
constexpr const char* kSharedDirectory = "/tmp/fettle-machine";
// Any user may add files, so the amount that is read is bounded: 16 MiB for each user.
constexpr std::size_t kMostBytes = 16 << 10;  // bytes of a claim
constexpr std::size_t kMostClaims = 16'384;   // read at most
constexpr std::size_t kMostClaimsOfUser = 1'024;
constexpr int kLockTries = 50;
constexpr auto kLockInterval = std::chrono::milliseconds(2);

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The time at which a run begins to wait. Unique in this process, so that runs are served in order.
std::int64_t next_us() {
  static std::atomic<std::int64_t> last = 0;
  std::int64_t before = last;
  std::int64_t next = 0;
  do {
    next = std::max(unix_ms() * 1000, before + 1);
  } while (!last.compare_exchange_weak(before, next));
  return next;
}

// A descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_directory(const std::string& directory) {
  return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

std::string name_of(uid_t user) {
  if (const passwd* const entry = ::getpwuid(user)) return entry->pw_name;
  return std::to_string(user);
}

// Returns the fault of the directory, "" if it can be used. As in /tmp, every user may add files,
// and no user may remove files of others.
std::string make_shared_directory(const std::string& directory) {
  // chmod(), because mkdir() applies the umask and sets no sticky bit.
  if (::mkdir(directory.c_str(), 0777) == 0) (void)::chmod(directory.c_str(), 01777);
  const Descriptor opened(open_directory(directory));
  struct stat about {};
  if (opened.get() < 0 || ::fstat(opened.get(), &about) != 0) {
    return directory + ": " + system_message(errno);
  }
  const bool others_write = (about.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_sticky = (about.st_mode & S_ISVTX) != 0;
  if (about.st_uid != ::geteuid() && !is_sticky) {
    return directory + " belongs to user " + name_of(about.st_uid) +
           " and has no sticky bit, so claims of others can be removed there; set it (chmod 1777), "
           "or choose another directory with FETTLE_MACHINE_DIR";
  }
  if (others_write && !is_sticky) (void)::fchmod(opened.get(), about.st_mode | S_ISVTX);
  if (::faccessat(opened.get(), ".", W_OK | X_OK, 0) != 0) {
    return directory + ": " + system_message(errno);
  }
  return "";
}

// Locks the directory exclusively; returns false if another process keeps the lock.
bool lock_directory(int fd) {
  for (int i = 0; i < kLockTries; ++i) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(kLockInterval);
  }
  return false;
}

// Process ids are not enough: containers that share the directory count them from 1 each.
std::string new_name() {
  std::random_device entropy;
  std::string name;
  for (int i = 0; i < 3; ++i) name += std::to_string(entropy()) + (i < 2 ? "-" : "");
  return name + kSuffix;
}

std::vector<std::int64_t> usable_cpus() {
  std::vector<std::int64_t> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string read_all(int fd) {
  std::string text(kMostBytes, '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

// The resources of the whole machine, for all its processes.
Need whole_machine() {
  Need all;
  all.cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF));
  all.memory = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return all;
}

// Fields that are missing, malformed or out of bounds keep their defaults. The user is the file's
// owner, which the writer cannot choose. `most`: the resources of the machine.
Claim read_claim(const std::string& name, uid_t owner, const Need& most, const Json& document) {
  Claim claim;
  api::FieldErrors ignored(api::UnknownFields::kIgnored);
  api::read_struct(document, api::FieldPath(), claim, ignored);
  claim.name = name;
  claim.user = name_of(owner);
  claim.need.cores = std::min(claim.need.cores, most.cores);
  claim.need.memory = std::min(claim.need.memory, most.memory);
  return claim;
}

// Appends the claim in that file to `out` if a process holds it; removes a file without a lock. A
// waiting run counts only if renew() or take() has written the file lately. `seen`: the number of
// files of each user so far.
void append_live_claim(int directory, const std::string& name, const Need& most,
                       std::map<uid_t, std::size_t>& seen, std::vector<Claim>& out) {
  const Descriptor file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about {};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {  // no process holds it: the run has ended
    (void)::unlinkat(directory, name.c_str(), 0);
    return;
  }
  if (++seen[about.st_uid] > kMostClaimsOfUser) return;
  const Result<Json> document = parse_json(read_all(file.get()));
  if (!document.ok() || !document->is_object()) return;
  Claim claim = read_claim(name, about.st_uid, most, *document);
  const std::int64_t seen_ms = std::int64_t{about.st_mtim.tv_sec} * 1000;
  if (!claim.granted && seen_ms + kClaimLifetimeMs < unix_ms()) return;
  out.push_back(std::move(claim));
}

Grant refuse(const std::string& reason) { return {{}, {reason, ""}}; }

void for_each_claim_file(int directory, const std::function<void(const std::string&)>& see) {
  DIR* const dir = ::fdopendir(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (dir == nullptr) return;
  ::rewinddir(dir);  // it shares its position with `directory`, which may have been read before
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    const std::size_t suffix = std::string(kSuffix).size();
    const bool is_claim =
        name.size() > suffix && name.compare(name.size() - suffix, suffix, kSuffix) == 0;
    if (is_claim && ++seen <= kMostClaims) see(name);
  }
  ::closedir(dir);
}

}  // namespace

std::string claims_directory() {
  const char* const chosen = std::getenv("FETTLE_MACHINE_DIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : kSharedDirectory;
}

Room this_machine() {
  Room room;
  VisibleGpus gpus = visible_gpus();
  room.gpus = std::move(gpus.names);
  room.gpus_by_pci = gpus.by_pci;
  room.cores = machine::usable_cores();
  room.cpus = usable_cpus();
  room.memory = machine::usable_memory();
  room.runs = machine::runs_within(machine::most_open_files());
  return room;
}

std::vector<Claim> read_claims(const std::string& directory) {
  std::vector<Claim> claims;
  std::map<uid_t, std::size_t> seen;
  const Descriptor opened(open_directory(directory));
  if (opened.get() < 0 || !lock_directory(opened.get())) return claims;
  for_each_claim_file(opened.get(), [&](const std::string& name) {
    append_live_claim(opened.get(), name, whole_machine(), seen, claims);
  });
  return claims;
}

Claims::Claims(std::string study, Room room, std::string directory)
    : study_(std::move(study)), room_(std::move(room)), directory_(std::move(directory)) {
  problem_ = directory_.empty() ? "no directory is shared" : make_shared_directory(directory_);
}

Claims::~Claims() {
  while (!own_.empty()) release(own_.begin()->first);
}

// Called with the directory locked, if it can be used.
Grant Claims::decide(const Claim& wanted) const {
  std::vector<Claim> claims = claims_of_others();
  for (const auto& [run, own] : own_) {
    if (own.claim.name != wanted.name) claims.push_back(own.claim);
  }
  return grant(room_, claims, wanted);
}

// Empty without the directory: then only this Session's runs count. Called with it locked.
std::vector<Claim> Claims::claims_of_others() const {
  std::vector<Claim> claims;
  if (!problem_.empty()) return claims;
  const auto is_own = [&](const std::string& name) {
    return std::ranges::any_of(own_,
                               [&](const auto& entry) { return entry.second.claim.name == name; });
  };
  const Descriptor opened(open_directory(directory_));
  if (opened.get() < 0) return claims;
  Need most = whole_machine();
  most.cores = std::max(most.cores, room_.cores);
  most.memory = std::max(most.memory, room_.memory);
  std::map<uid_t, std::size_t> seen;
  for_each_claim_file(opened.get(), [&](const std::string& name) {
    if (!is_own(name)) append_live_claim(opened.get(), name, most, seen, claims);
  });
  return claims;
}

bool Claims::others_wait() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Descriptor opened(problem_.empty() ? open_directory(directory_) : -1);
  if (opened.get() < 0 || !lock_directory(opened.get())) return false;
  return std::ranges::any_of(claims_of_others(), [](const Claim& c) { return !c.granted; });
}

void Claims::rename(const std::string& run, const std::string& to) {
  const std::lock_guard<std::mutex> guard(mutex_);
  auto node = own_.extract(run);
  if (node.empty()) return;
  node.key() = to;
  own_.insert(std::move(node));
}

// Writes in place, since the lock belongs to the open file: a replacement would not be locked.
// Called with the directory locked; without a directory (`problem_`) there is nothing to write.
Status Claims::store(Own& own) {
  if (!problem_.empty()) return success();
  const std::string file = path(own.claim.name);
  int fd = own.fd;
  if (fd < 0) {
    fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    // Shared, since the guard of the run locks the file as well; a reader tries an exclusive lock.
    if (fd >= 0 && ::flock(fd, LOCK_SH | LOCK_NB) != 0) ::close(std::exchange(fd, -1));
  }
  const std::string text = api::write_struct(own.claim).dump() + "\n";
  const auto size = static_cast<ssize_t>(text.size());
  const bool written =
      fd >= 0 && ::pwrite(fd, text.data(), text.size(), 0) == size && ::ftruncate(fd, size) == 0;
  const int code = errno;
  if (own.fd < 0 && !written && fd >= 0) ::close(fd);
  if (!written) {
    return Error{ErrorCode::kUnavailable, "cannot write " + file + ": " + system_message(code)};
  }
  own.fd = fd;
  return success();
}

Grant Claims::take(const std::string& run, const Need& need) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Descriptor opened(problem_.empty() ? open_directory(directory_) : -1);
  if (opened.get() >= 0 && !lock_directory(opened.get())) return refuse(locked());
  const auto found = own_.find(run);
  Own own = found == own_.end() ? Own{} : found->second;
  if (found == own_.end()) {
    own.claim.since_us = next_us();
    own.claim.name = new_name();
  }
  own.claim.study = study_;
  own.claim.run = run;
  own.claim.user = name_of(::geteuid());
  own.claim.runner = ::getpid();
  own.claim.granted = false;
  own.claim.need = clamp(need, room_);
  own.claim.cpus = room_.cpus;
  // A waiting run names every GPU that it could use, so that others leave these GPUs to it.
  own.claim.gpus.clear();
  if (need.gpus > 0) {
    for (const GpuName& gpu : room_.gpus) own.claim.gpus.push_back(gpu.id);
  }
  Grant given = decide(own.claim);
  own.claim.granted = given.ok();
  if (own.claim.granted) {
    own.claim.gpus.clear();
    for (const GpuName& gpu : given.gpus) own.claim.gpus.push_back(gpu.id);
  }
  const Status stored = store(own);
  if (!stored.ok()) own.claim.granted = false;
  own_[run] = own;  // a run that is refused keeps its since_us, and so its place
  return stored.ok() ? given : refuse(stored.error().message);
}

Grant Claims::add(const std::string& run, const Need& more) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = own_.find(run);
  if (found == own_.end()) return refuse(run + " has not begun");
  const Descriptor opened(problem_.empty() ? open_directory(directory_) : -1);
  if (opened.get() >= 0 && !lock_directory(opened.get())) return refuse(locked());
  // The claim of a run that grows records cores and memory, but only GPUs can be missing.
  Claim wanted = found->second.claim;
  wanted.name += '+';  // beside the claim that it already has
  wanted.granted = false;
  wanted.since_us = std::numeric_limits<std::int64_t>::max();  // after all waiting runs
  wanted.need = {more.gpus, 0, 0};
  wanted.gpus.clear();  // GPUs that it could use, as in every claim that is not granted
  for (const GpuName& gpu : room_.gpus) wanted.gpus.push_back(gpu.id);
  Grant given = decide(wanted);
  if (!given.ok()) return given;
  Own grown = found->second;
  grown.claim.need.gpus += more.gpus;
  grown.claim.need.cores += more.cores;
  grown.claim.need.memory += more.memory;
  for (const GpuName& gpu : given.gpus) grown.claim.gpus.push_back(gpu.id);
  const bool handed_over = grown.fd < 0;
  const Status stored = store(grown);
  if (!stored.ok()) return refuse(stored.error().message);
  // Only the guard's lock may remain: a lock of this process would outlive the run.
  if (handed_over && grown.fd >= 0) ::close(std::exchange(grown.fd, -1));
  found->second = std::move(grown);
  return given;
}

std::string Claims::file(const std::string& run) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = own_.find(run);
  return found == own_.end() || !problem_.empty() ? "" : path(found->second.claim.name);
}

void Claims::hand_over(const std::string& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = own_.find(run);
  if (found == own_.end() || found->second.fd < 0) return;
  ::close(std::exchange(found->second.fd, -1));
}

void Claims::release(const std::string& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = own_.find(run);
  if (found == own_.end()) return;
  if (problem_.empty()) (void)::unlink(path(found->second.claim.name).c_str());
  if (found->second.fd >= 0) ::close(found->second.fd);
  own_.erase(found);
}

void Claims::renew() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!problem_.empty()) return;
  for (const auto& [run, own] : own_) {
    (void)::utimensat(AT_FDCWD, path(own.claim.name).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
}

}  // namespace fettle::local
