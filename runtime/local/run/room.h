// Room: what a machine has, what the runs on it have taken, and what a run that wants to begin can
// be given of the rest. Pure functions; claims.h brings them together with the machine.
//
// The run that waits longest is served first: the others leave it what it lacks. So a run that
// needs four GPUs is not overtaken for ever by those that need one, and two Studies take turns.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/local/run/gpus.h"

namespace fettle::local {

// What a process may use of its machine.
struct Room {
  std::vector<GpuName> gpus;
  bool gpus_by_pci = false;  // as VisibleGpus::by_pci
  double cores = 1;
  std::vector<std::int64_t> cpus;  // the processors that these cores are of; empty: all
  std::int64_t memory = 0;         // bytes; 0: unknown, and no run is held back
  std::int64_t runs = 1'000'000;   // at once, which the open files of the supervisor allow
};

struct Need {
  std::int64_t gpus = 0;
  double cores = 0;
  std::int64_t memory = 0;  // bytes
};

// What one run has, or waits for.
struct Claim {
  std::string name;  // unique on this machine
  std::string study;
  std::string run;
  std::string user;
  std::int64_t runner = 0;  // process id
  bool granted = false;
  std::int64_t since_us = 0;  // microseconds of Unix time: when it began to wait
  Need need;
  std::vector<std::string> gpus;   // ids: granted, what it has; waiting, what it could use
  std::vector<std::int64_t> cpus;  // as in Room
};

struct Grant {
  std::vector<GpuName> gpus;
  std::string waits_for;  // "" = granted; otherwise in words what is missing, and who has it
};

// Of `need` no more than the machine has in all, GPUs excepted: a run alone always finds room.
Need clamp(const Need& need, const Room& room);

// What `wanted` can have besides `claims`, which are those of all others on the machine.
Grant grant(const Room& room, const std::vector<Claim>& claims, const Claim& wanted);

// "study a: 2, study b of anna: 1, file 7.claim", by what each has of it.
enum class Resource { kGpus, kCores, kMemory };
std::string holders(const std::vector<Claim>& claims, Resource what, const std::string& user);

}  // namespace fettle::local
