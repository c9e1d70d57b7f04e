// Room: the resources of a machine, the claims of the runs on it, and the grant to a run that wants
// to begin. Pure functions; claims.h connects them to the machine.
//
// First come, first served: later runs leave the longest-waiting run the resources that it lacks.
// So runs that need one GPU never starve a run that needs four, and two Studies take turns.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/local/run/gpus.h"

namespace fettle::local {

// The resources that a process may use on its machine.
struct Room {
  std::vector<GpuName> gpus;
  bool gpus_by_pci = false;  // as VisibleGpus::by_pci
  double cores = 1;
  std::vector<std::int64_t> cpus;  // the processors behind these cores; empty: all
  std::int64_t memory = 0;         // bytes; 0: unknown, and memory holds back no run
  std::int64_t runs = 1'000'000;   // at once, limited by the open files of the supervisor
};

struct Need {
  std::int64_t gpus = 0;
  double cores = 0;
  std::int64_t memory = 0;  // bytes
};

// The resources that one run has, or waits for.
struct Claim {
  std::string name;  // unique on this machine
  std::string study;
  std::string run;
  std::string user;
  std::int64_t runner = 0;  // process id
  bool granted = false;
  std::int64_t since_us = 0;  // microseconds of Unix time: when it began to wait
  Need need;
  std::vector<std::string> gpus;   // ids: held if granted, else usable
  std::vector<std::int64_t> cpus;  // as in Room
};

// Why a run has to wait. Reasons with the same `stable` part are the same reason: `changing`
// differs with every run that begins or ends on the machine.
struct Shortage {
  std::string stable;    // "it needs 2 GPUs"; "" = nothing is missing
  std::string changing;  // "1 of 3 are free (study b: 1)"; may be ""
  bool empty() const { return stable.empty(); }
  std::string text() const { return changing.empty() ? stable : stable + ", and " + changing; }
  // Names the situation in front, as Error::in() does.
  Shortage in(const std::string& situation) const { return {situation + ": " + stable, changing}; }
};

struct Grant {
  std::vector<GpuName> gpus;
  Shortage shortage;  // empty = granted
  bool ok() const { return shortage.empty(); }
};

// Limits `need` to the machine's cores and memory (not GPUs), so that a run alone always finds
// room.
Need clamp(const Need& need, const Room& room);

// Returns the grant for `wanted` besides `claims`, the claims of all others on the machine.
Grant grant(const Room& room, const std::vector<Claim>& claims, const Claim& wanted);

// "study a: 2, study b of anna: 1, file 7.claim", sorted by their amounts.
enum class Resource { kGpus, kCores, kMemory };
std::string holders(const std::vector<Claim>& claims, Resource what, const std::string& user);

}  // namespace fettle::local
