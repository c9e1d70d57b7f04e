// GpuCatalogue: the administrator's GPU profiles, read from a file that may change at any time.
//
// On a cluster the file is a key of a mounted ConfigMap, which the kubelet replaces within a minute
// or so of a change. profiles() reads the file again if the last reading is kAgainMs old; nothing
// runs in between. A wrong list never replaces a right list: it is reported once, and the earlier
// list stays in force. Nothing is placed before there was a right list.
// Thread-safe; `notify` is called on the thread that calls profiles().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/gpu/gpu_profile.h"
#include "base/result.h"

namespace fettle::kubernetes {

class GpuCatalogue {
 public:
  using Profiles = std::shared_ptr<const std::vector<api::GpuProfile>>;
  // Receives the result of a reading: the list that is in force from now on, or why it is wrong.
  // Must not call the catalogue.
  using Notify = std::function<void(bool is_wrong, const std::string& message)>;

  static constexpr std::int64_t kAgainMs = 10'000;

  explicit GpuCatalogue(std::string path, Notify notify = {});

  // The list in force. kUnavailable: there was never a right list; the message names the fault.
  Result<Profiles> profiles(std::int64_t now_ms);
  // When the list in force last replaced another one; 0 = never.
  std::int64_t changed_ms() const;

 private:
  void read(std::int64_t now_ms);  // requires mutex_, and calls notify_ with it

  const std::string path_;
  const Notify notify_;

  mutable std::mutex mutex_;
  Profiles profiles_;  // null: none was right yet
  std::string text_;   // the file as it was last read
  std::string error_;
  std::int64_t read_ms_ = 0;
  std::int64_t changed_ms_ = 0;
  bool was_read_ = false;
};

}  // namespace fettle::kubernetes
