// Metadata: the part of Kubernetes' ObjectMeta that Fettle uses.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fettle::api {

struct Metadata {
  // Defined in metadata.cpp, to compile this long code once (docs/decisions/0027).
  Metadata();
  Metadata(const Metadata& other);
  Metadata(Metadata&& other) noexcept;
  Metadata& operator=(const Metadata& other);
  Metadata& operator=(Metadata&& other) noexcept;
  ~Metadata();

  std::string name;              // a DNS label, at most 40 characters for a Study
  std::string ns;                // namespace; "" for local runs
  std::string uid;               // set by the store on create; tells a name's former owners apart
  std::string resource_version;  // opaque; changes with every write; "" before the first
  std::int64_t generation = 0;   // counts changes of spec; set by the store
  std::int64_t created_ms = 0;   // Unix milliseconds; set by the store
  std::int64_t deleted_ms = 0;   // deletionTimestamp; 0 = not being deleted
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  bool operator==(const Metadata&) const = default;
};

}  // namespace fettle::api
