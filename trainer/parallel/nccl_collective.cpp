#include "trainer/parallel/nccl_collective.h"

#include <charconv>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "trainer/parallel/watchdog.h"

namespace fettle::trainer {
namespace {

using kernels::Communicator;
using Progress = Communicator::Progress;

// A sum takes about as long as a thread needs to fall asleep and wake up.
constexpr int kTurnsAwake = 1000;
constexpr auto kNap = std::chrono::microseconds(50);
constexpr int kTurnsBetweenLooks = 64;  // at the members' connections

// ---- What the workers tell one another ---------------------------------------------------------

struct Introduction {
  std::string card;  // "": this worker has none
  std::string version;
  std::string id;  // of rank 0
};

std::string text_of(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

std::string to_hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

Result<std::vector<Introduction>> introduce(Membership& membership,
                                            kernels::CommunicatorMaker* maker) {
  Json mine = Json::object();
  if (maker != nullptr) {
    mine.set("card", maker->card());
    mine.set("version", maker->version());
    if (membership.rank() == 0) {
      FETTLE_ASSIGN(const std::string id, maker->make_id());
      mine.set("id", to_hex(id));
    }
  }
  FETTLE_ASSIGN(const std::vector<std::string> all, membership.all_gather(mine.dump()));
  std::vector<Introduction> introductions;
  for (const std::string& said : all) {
    const Result<Json> parsed = parse_json(said);
    const Json object = parsed.ok() && parsed->is_object() ? *parsed : Json::object();
    introductions.push_back(
        {text_of(object, "card"), text_of(object, "version"), text_of(object, "id")});
  }
  return introductions;
}

bool all_have_cards(const std::vector<Introduction>& all) {
  for (const Introduction& one : all) {
    if (one.card.empty()) return false;
  }
  return true;
}

// All come to the same result, from the same words.
Status check_introductions(const std::vector<Introduction>& all) {
  std::map<std::string, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto [other, is_new] = rank_of.emplace(all[rank].card, rank);
    if (!is_new) {
      return invalid("ranks " + std::to_string(other->second) + " and " + std::to_string(rank) +
                     " both use the GPU " + all[rank].card +
                     ", expected one for each: give every worker a GPU of its own "
                     "(resources.limits, CUDA_VISIBLE_DEVICES)");
    }
    if (all[rank].version != all[0].version) {
      return invalid("rank " + std::to_string(rank) + " has NCCL " + all[rank].version +
                     ", expected rank 0's " + all[0].version + ": use one image for all workers");
    }
  }
  return success();
}

// ---- The collective ----------------------------------------------------------------------------

class NcclCollective final : public Collective {
 public:
  NcclCollective(Membership& membership, std::unique_ptr<Collective> ring,
                 std::unique_ptr<Communicator> communicator, std::chrono::milliseconds timeout)
      : membership_(membership),
        ring_(std::move(ring)),
        communicator_(std::move(communicator)),
        watchdog_(timeout, [this](const std::string&) { communicator_->abort(); }) {}

  Status meet() {
    return attempt("meeting of the GPUs", [] { return success(); });
  }

  std::int64_t world_size() const override { return membership_.world_size(); }
  std::int64_t rank() const override { return membership_.rank(); }
  bool takes_device_memory() const override { return true; }

  Status sum(std::span<float> values) override {
    ++calls_;
    const std::string name = "sum of " + std::to_string(values.size()) +
                             " values on the GPUs (collective " + std::to_string(calls_) + ")";
    return attempt(name, [&] {
      return communicator_->start_sum(values.data(), static_cast<std::int64_t>(values.size()));
    });
  }
  Status sum(std::span<double> values) override { return ring_->sum(values); }
  Status broadcast(std::span<std::byte> bytes) override { return ring_->broadcast(bytes); }
  Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds) override {
    return ring_->all_gather(values, bounds);
  }

 private:
  Status attempt(const std::string& name, const std::function<Status()>& start) {
    if (!broken_.empty()) return lost();
    watchdog_.watch(name);
    const Status started = start();
    const bool done = started.ok() && comes_to_an_end();
    const bool late = watchdog_.rest();
    if (done) return success();
    const std::string words = started.ok() ? communicator_->failure() : started.error().message;
    communicator_->abort();
    broken_ = membership_.explain_loss(name, late);
    if (!late && !words.empty()) broken_ += " (" + words + ")";
    return lost();
  }

  bool comes_to_an_end() {
    std::vector<int> watched = membership_.connections();
    for (int turn = 0; !watchdog_.has_barked(); ++turn) {
      const Progress progress = communicator_->progress();
      if (progress != Progress::kUnderWay) return progress == Progress::kDone;
      if (turn % kTurnsBetweenLooks == 0 && somebody_is_lost(watched)) return false;
      if (turn > kTurnsAwake) std::this_thread::sleep_for(kNap);
    }
    return false;
  }

  // Those that have gone on to something else are watched no more.
  static bool somebody_is_lost(std::vector<int>& watched) {
    bool lost = false;
    std::erase_if(watched, [&lost](int connection) {
      const Sign sign = sign_of(connection);
      lost = lost || sign == Sign::kTrouble;
      return sign == Sign::kGoneOn;
    });
    return lost;
  }

  Error lost() const { return {ErrorCode::kUnavailable, broken_}; }

  Membership& membership_;
  const std::unique_ptr<Collective> ring_;
  const std::unique_ptr<Communicator> communicator_;
  Watchdog watchdog_;  // ends before what it aborts
  std::int64_t calls_ = 0;
  std::string broken_;  // "" or why no call can succeed any more
};

}  // namespace

Result<std::unique_ptr<Collective>> make_nccl_collective(Membership& membership,
                                                         std::unique_ptr<Collective> ring,
                                                         kernels::CommunicatorMaker* maker,
                                                         std::chrono::milliseconds timeout) {
  FETTLE_ASSIGN(const std::vector<Introduction> all, introduce(membership, maker));
  if (!all_have_cards(all)) return ring;
  FETTLE_TRY(check_introductions(all));
  FETTLE_ASSIGN(auto communicator,
                maker->start(from_hex(all[0].id), membership.world_size(), membership.rank()));
  auto made = std::make_unique<NcclCollective>(membership, std::move(ring), std::move(communicator),
                                               timeout);
  FETTLE_TRY(made->meet());
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace fettle::trainer
