#include "trainer/parallel/nccl_collective.h"

#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "trainer/parallel/collective_guard.h"

namespace fettle::trainer {
namespace {

// ---- Hellos ------------------------------------------------------------------------------------

struct Hello {
  std::string card;  // "": this worker has no GPU
  std::string version;
  std::string id;  // rank 0's, for NCCL to meet by
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

// Gathers all hellos, by rank. All workers call it.
Result<std::vector<Hello>> exchange_hellos(Membership& membership,
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
  std::vector<Hello> hellos;
  for (const std::string& said : all) {
    const Result<Json> parsed = parse_json(said);
    const Json object = parsed.ok() && parsed->is_object() ? *parsed : Json::object();
    hellos.push_back({text_of(object, "card"), text_of(object, "version"), text_of(object, "id")});
  }
  return hellos;
}

bool all_have_cards(const std::vector<Hello>& all) {
  for (const Hello& one : all) {
    if (one.card.empty()) return false;
  }
  return true;
}

// All workers reach the same result from the same hellos.
Status check_hellos(const std::vector<Hello>& all) {
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

class NcclCollective final : public Collective, public DeviceCollective {
 public:
  NcclCollective(Membership& membership, std::unique_ptr<Collective> ring,
                 std::unique_ptr<kernels::Communicator> communicator, const NcclSettings& settings)
      : settings_(settings),
        membership_(membership),
        ring_(std::move(ring)),
        communicator_(std::move(communicator)),
        guard_(*communicator_, membership.connections(), settings.timeout,
               membership.termination()) {}

  Status meet() {
    Status met = attempt("meeting of the GPUs", [this] { return communicator_->meet(); });
    guard_.ended();  // Communicator::done() does not count a meeting
    return met;
  }

  std::int64_t world_size() const override { return membership_.world_size(); }
  std::int64_t rank() const override { return membership_.rank(); }
  DeviceCollective* on_device() override { return this; }

  // ---- In host memory, by the ring

  Status sum(std::span<float> values) override { return ring_->sum(values); }
  Status sum(std::span<double> values) override { return ring_->sum(values); }
  Status broadcast(std::span<std::byte> bytes) override { return ring_->broadcast(bytes); }
  Status all_gather(std::span<float> values, std::span<const std::int64_t> bounds) override {
    return ring_->all_gather(values, bounds);
  }

  // ---- On the GPUs

  std::int64_t least_message() const override { return settings_.least_message; }

  Status enqueue_all_reduce(std::span<float> values, kernels::Event& after) override {
    return attempt(numbered("sum of " + std::to_string(values.size()) + " values on the GPUs"),
                   [&] { return communicator_->enqueue_all_reduce(values, after); });
  }
  Status enqueue_all_gather(std::span<float> values, std::span<const std::int64_t> bounds,
                            kernels::Event& after) override {
    return attempt(
        numbered("gathering of " + std::to_string(values.size()) + " values on the GPUs"),
        [&] { return communicator_->enqueue_all_gather(values, bounds, after); });
  }
  void record(kernels::Event& event) override { communicator_->record(event); }
  const std::int32_t* given_up() const override { return communicator_->given_up(); }

  Status health() override {
    if (broken_) return *broken_;
    const auto verdict = guard_.verdict();
    return verdict ? explain(*verdict) : success();
  }

 private:
  std::string numbered(const std::string& name) {
    return name + " (collective " + std::to_string(++calls_) + ")";
  }

  Status attempt(const std::string& name, const std::function<Status()>& enqueue) {
    FETTLE_TRY(health());
    guard_.began(name);
    const Status enqueued = enqueue();
    if (enqueued.ok()) return success();
    communicator_->abort();
    // If the guard has aborted the work, its reason is better than that of the failed call.
    return explain(guard_.verdict().value_or(
        CollectiveGuard::Verdict{name, /*late=*/false, enqueued.error().message}));
  }

  Status explain(const CollectiveGuard::Verdict& verdict) {
    broken_ =
        membership_.explain_loss({verdict.name, verdict.late, /*unreachable=*/{}, /*mismatch=*/""});
    if (!verdict.words.empty()) broken_->message += " (" + verdict.words + ")";
    return *broken_;
  }

  const NcclSettings settings_;
  Membership& membership_;
  const std::unique_ptr<Collective> ring_;
  const std::unique_ptr<kernels::Communicator> communicator_;
  CollectiveGuard guard_;  // ends before the objects it watches
  std::int64_t calls_ = 0;
  std::optional<Error> broken_;  // why no call can succeed any more
};

}  // namespace

Result<std::unique_ptr<Collective>> make_nccl_collective(Membership& membership,
                                                         std::unique_ptr<Collective> ring,
                                                         kernels::CommunicatorMaker* maker,
                                                         const NcclSettings& settings) {
  FETTLE_ASSIGN(const std::vector<Hello> all, exchange_hellos(membership, maker));
  if (!all_have_cards(all)) return ring;  // the same everywhere: all have the same hellos
  FETTLE_TRY(check_hellos(all));
  FETTLE_ASSIGN(auto communicator,
                maker->start(from_hex(all[0].id), membership.world_size(), membership.rank()));
  auto made = std::make_unique<NcclCollective>(membership, std::move(ring), std::move(communicator),
                                               settings);
  FETTLE_TRY(made->meet());
  return std::unique_ptr<Collective>(std::move(made));
}

}  // namespace fettle::trainer
