// Slots: places in what a GPU profile puts on a pod that take a number of the request.
//
//   {count}     whole GPUs; 1 for a share
//   {fraction}  of one card, "0.25"; 1 for whole GPUs
//   {percent}   the same as a whole number, rounded up
//   {mib}       memory of one card in MiB; for whole GPUs all of it
//   {units}     steps of what the profile offers; for whole GPUs the count
//
// A text may have other characters around a slot ("{mib}Mi"); a text that is one slot becomes a
// number where the place takes numbers. Braces around anything but letters are no slot. Pure
// functions; usable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace fettle::api {

inline constexpr std::array<std::string_view, 5> kGpuSlots{"count", "fraction", "percent", "mib",
                                                           "units"};

// What the slots stand for.
struct GpuSlotValues {
  std::int64_t count = 1;
  double fraction = 1;
  std::int64_t percent = 100;
  std::optional<std::int64_t> mib;  // absent: not known
  std::int64_t units = 1;
};

// Names of the slots in `text`, known or not.
std::set<std::string> slots_of(std::string_view text);
// The same of all texts in `value`, keys aside.
std::set<std::string> slots_in(const Json& value);

// `text` with its slots filled in. Requires that it has only known ones, whose values are known.
std::string fill_slots(std::string_view text, const GpuSlotValues& values);
// The same for all texts in `value`. A text that is one slot becomes a number.
Json fill_slots_in(const Json& value, const GpuSlotValues& values);

}  // namespace fettle::api
