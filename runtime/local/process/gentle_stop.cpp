#include "runtime/local/process/gentle_stop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/local/process/process_tree.h"

namespace fettle::local {
namespace {

// Added for a supervisor that is late. If it hangs, its guards end the grace period.
constexpr auto kSupervisorDelay = std::chrono::seconds(2);

// A shell that neither dies of SIGTERM nor handles it while its command runs.
bool waits_for_its_command(const Process& process) {
  return process.is_shell && process.on_term != Process::OnTerm::kDies;
}

// Returns the guard's children, and the foreground commands of shells with traps. A process that
// such a shell starts after its SIGTERM belongs to its trap. Processes in `signalled` have had
// SIGTERM, and the caller skips them; processes in `later` waited at the last call for the writers
// of their pipes.
std::vector<const Process*> candidates(pid_t guard, const std::vector<Process>& tree,
                                       const std::set<ProcessId>& signalled,
                                       const std::set<ProcessId>& later) {
  std::vector<const Process*> found;
  for (const Process& process : tree) {
    if (process.parent == guard) found.push_back(&process);
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Process& shell = *found[i];
    if (!waits_for_its_command(shell)) continue;
    // The shell's children at the time of its SIGTERM got one, too, or are in `later`. Any other
    // child belongs to its trap, which may be saving.
    const bool runs_trap =
        shell.on_term == Process::OnTerm::kCatches && signalled.count(shell.id) > 0;
    for (const Process& process : tree) {
      if (process.parent != shell.id.first || process.in_background) continue;
      if (!runs_trap || later.count(process.id) > 0) found.push_back(&process);
    }
  }
  return found;
}

// Whether a process that reacts to SIGTERM writes to the reader's input, which ends when its
// writers have ended.
bool has_a_writer(const Process& reader, const std::vector<Process>& tree) {
  if (reader.input == 0) return false;
  return std::ranges::any_of(tree, [&](const Process& writer) {
    return writer.id != reader.id && writer.on_term != Process::OnTerm::kIgnores &&
           std::ranges::find(writer.outputs, reader.input) != writer.outputs.end();
  });
}

// Settled, because a process that were missed would count as ended and be signalled twice.
std::vector<Process> processes_below(pid_t guard) {
  std::vector<Process> tree;
  for (const pid_t pid : settled_descendants(guard)) {
    if (auto process = inspect(pid)) tree.push_back(*std::move(process));
  }
  return tree;
}

}  // namespace

SignalPlan next_to_signal(pid_t guard, const std::vector<Process>& tree,
                          const std::set<ProcessId>& signalled, const std::set<ProcessId>& later) {
  SignalPlan plan;
  for (const Process* const process : candidates(guard, tree, signalled, later)) {
    if (signalled.count(process->id) > 0) continue;
    (has_a_writer(*process, tree) ? plan.later : plan.now).push_back(process->id);
  }
  if (!plan.now.empty() || plan.later.empty()) return plan;
  // They read from each other, or from a process that gets no signal: otherwise none would ever be
  // next.
  const bool some_are_ending = std::ranges::any_of(
      tree, [&](const Process& process) { return signalled.count(process.id) > 0; });
  if (!some_are_ending) std::swap(plan.now, plan.later);
  return plan;
}

void GentleStop::begin(Time now) {
  has_supervisor_ = true;
  if (!since_) since_ = now;  // else the grace period runs since SIGTERM from elsewhere
}

void GentleStop::note_external_sigterm(Time now) {
  if (repeated_) return;  // processes marked now would never be signalled
  if (!since_) since_ = now;
  for (const Process& process : processes_below(::getpid()))
    signalled_.try_emplace(process.id, false);
}

void GentleStop::send_sigterm(Time now) {
  if (!repeated_ && now >= *since_ + grace_ / 3) {
    repeated_ = true;
    // Processes assumed to have been signalled from elsewhere get their signal now.
    std::erase_if(signalled_, [](const auto& entry) { return !entry.second; });
  }
  const std::vector<Process> tree = processes_below(::getpid());
  std::set<ProcessId> signalled;
  for (const Process& process : tree) {
    if (signalled_.count(process.id) > 0) signalled.insert(process.id);
  }
  std::erase_if(signalled_, [&](const auto& entry) { return signalled.count(entry.first) == 0; });
  // Processes that wait since the last call keep their turn: a child that a shell starts after its
  // signal belongs to its trap, and gets none.
  const SignalPlan plan = next_to_signal(::getpid(), tree, signalled, later_);
  for (const ProcessId& id : plan.now) {
    ::kill(id.first, SIGTERM);
    signalled_[id] = true;
  }
  later_ = {plan.later.begin(), plan.later.end()};
}

bool GentleStop::is_over(Time now) const {
  if (!since_) return false;
  return now >= *since_ + grace_ + (has_supervisor_ ? kSupervisorDelay : std::chrono::seconds(0));
}

}  // namespace fettle::local
