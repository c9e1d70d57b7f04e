#include "trainer/rank0_work.h"

#include <cstddef>
#include <future>
#include <span>

namespace fettle::trainer {
namespace {

// Far below any limit on a collective, which is in whole seconds.
constexpr auto kBetweenWords = std::chrono::milliseconds(300);

enum class Word : unsigned char { kBusy, kDone };

// Returns rank 0's word.
Result<Word> broadcast_word(Collective& collective, Word word) {
  std::byte byte = static_cast<std::byte>(word);
  FETTLE_TRY(collective.broadcast(std::span(&byte, 1)));
  return static_cast<Word>(byte);
}

Status tell_others(Collective& collective, const std::future<void>& done) {
  while (done.wait_for(kBetweenWords) != std::future_status::ready) {
    FETTLE_TRY(broadcast_word(collective, Word::kBusy));
  }
  FETTLE_TRY(broadcast_word(collective, Word::kDone));
  return success();
}

Status wait_for_rank0(Collective& collective, const Rank0Work& work) {
  const auto loud = std::chrono::steady_clock::now() + work.quiet;
  for (bool said = false;;) {
    FETTLE_ASSIGN(const Word word, broadcast_word(collective, Word::kBusy));
    if (word == Word::kDone) return success();
    if (said || std::chrono::steady_clock::now() < loud) continue;
    work.log("waits for rank 0, which " + work.what);
    said = true;
  }
}

}  // namespace

Status do_at_rank0(Collective& collective, const Rank0Work& work) {
  if (collective.rank() != 0) return wait_for_rank0(collective, work);
  if (collective.world_size() == 1) {
    work.work();
    return success();
  }
  // The future's destructor waits for the work, also after an error.
  const std::future<void> done = std::async(std::launch::async, work.work);
  return tell_others(collective, done);
}

}  // namespace fettle::trainer
