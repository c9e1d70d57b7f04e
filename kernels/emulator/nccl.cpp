#include "kernels/emulator/nccl.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "kernels/emulator/emulator.h"
#include "kernels/emulator/fabric.h"
#include "kernels/emulator/streams.h"

namespace fettle::kernels::emulator {
namespace {

std::atomic<int>& polls_of_a_call() {
  static std::atomic<int> polls = [] {
    const char* const number = std::getenv("FETTLE_EMULATOR_NCCL_POLLS");
    return number == nullptr ? 0 : std::atoi(number);
  }();
  return polls;
}

using Ask = std::function<std::shared_ptr<Fabric::Task>()>;

// A collective that waits for its place on the stream.
struct Call {
  cudaStream_t stream;
  Ask ask;
};

}  // namespace

void set_nccl_polls(int polls) { polls_of_a_call() = polls; }

}  // namespace fettle::kernels::emulator

// NOLINTBEGIN(readability-identifier-naming): NCCL's names.
using fettle::kernels::emulator::Ask;
using fettle::kernels::emulator::Call;
using fettle::kernels::emulator::Fabric;

using fettle::kernels::emulator::polls_of_a_call;

struct ncclComm {
  ncclComm(const fettle::kernels::emulator::Rendezvous& place, int members, int rank)
      : fabric(std::make_shared<Fabric>(place, members, rank)) {}

  std::shared_ptr<Fabric> fabric;           // shared with work on streams
  std::mutex mutex;                         // guards the members below
  std::shared_ptr<Fabric::Task> under_way;  // of the communicator: join() or leave()
  std::vector<Call> calls;                  // not on their streams yet
  int polls = 0;                            // left until they are
};

namespace {

thread_local int group_depth = 0;
thread_local std::vector<std::pair<ncclComm_t, Call>> grouped;

void put_on_stream(ncclComm& comm, const Call& call) {
  const auto task = std::make_shared<std::shared_ptr<Fabric::Task>>();
  fettle::kernels::emulator::order_slow(call.stream, [fabric = comm.fabric, ask = call.ask, task] {
    if (*task == nullptr) {
      if (fabric->is_given_up()) return true;
      *task = ask();
    }
    return (*task)->done.load();
  });
}

void put_on_streams(ncclComm& comm) {
  for (const Call& call : std::exchange(comm.calls, {})) put_on_stream(comm, call);
}

ncclResult_t submit(ncclComm_t comm, std::vector<Call> calls) {
  const std::scoped_lock lock(comm->mutex);
  if (!comm->calls.empty() || comm->under_way != nullptr) return ncclInvalidUsage;
  comm->calls = std::move(calls);
  comm->polls = polls_of_a_call();
  if (comm->polls > 0) return ncclInProgress;
  put_on_streams(*comm);
  return ncclSuccess;
}

ncclResult_t collective(ncclComm_t comm, cudaStream_t stream, Ask ask) {
  Call call{stream, std::move(ask)};
  if (group_depth == 0) return submit(comm, {std::move(call)});
  grouped.emplace_back(comm, std::move(call));
  return ncclSuccess;
}

std::span<const float> floats(const void* from, std::size_t count) {
  return {static_cast<const float*>(from), count};
}

// The fabric is destroyed when no work on a stream needs it any more.
void end(ncclComm_t comm) {
  comm->fabric->give_up();
  delete comm;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInvalidArgument:
      return "invalid argument";
    default:
      return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  const auto place = fettle::kernels::emulator::open_rendezvous();
  std::memcpy(id->internal, &place, sizeof place);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int members, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= members) return ncclInvalidArgument;
  fettle::kernels::emulator::Rendezvous place;
  std::memcpy(&place, id.internal, sizeof place);
  *comm = new ncclComm(place, members, rank);
  (*comm)->under_way = (*comm)->fabric->join();
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::scoped_lock lock(comm->mutex);
  if (!comm->calls.empty()) return ncclInvalidUsage;
  comm->under_way = comm->fabric->leave();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  end(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  end(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::scoped_lock lock(comm->mutex);
  *state = ncclInProgress;
  if (comm->fabric->is_broken()) {
    *state = ncclRemoteError;
  } else if (comm->under_way != nullptr) {
    if (!comm->under_way->done) return ncclSuccess;
    comm->under_way = nullptr;
    *state = ncclSuccess;
  } else if (comm->calls.empty()) {
    *state = ncclSuccess;
  } else if (--comm->polls <= 0) {
    put_on_streams(*comm);
    *state = ncclSuccess;
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--group_depth > 0) return ncclSuccess;
  std::vector<Call> calls;
  ncclComm_t comm = nullptr;
  for (auto& [of, call] : std::exchange(grouped, {})) {
    if (comm != nullptr && of != comm) return ncclInvalidUsage;  // not emulated
    comm = of;
    calls.push_back(std::move(call));
  }
  return comm == nullptr ? ncclSuccess : submit(comm, std::move(calls));
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, [fabric = comm->fabric.get(), from, to, count] {
    return fabric->sum(floats(from, count), static_cast<float*>(to));
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, stream, [fabric = comm->fabric.get(), from, to, count, root] {
    return fabric->broadcast(floats(from, count), static_cast<float*>(to), root);
  });
}
// NOLINTEND(readability-identifier-naming)
