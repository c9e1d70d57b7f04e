// Slots: placeholders in the pod fields of a GPU profile, filled with numbers of the request.
//
//   {count}     whole GPUs; 1 for a share
//   {fraction}  of one card, "0.25"; 1 for whole GPUs
// {percent}   the fraction as a whole percentage, rounded up
//   {mib}       memory of one card in MiB; for whole GPUs all of it
// {units}     the amount in steps of the offer; for whole GPUs the count
//
// A text may have other characters around a slot ("{mib}Mi"); a text that is one slot becomes a
// number where the field takes numbers. Braces around anything but letters are no slot. Pure
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

// Values of the slots for one request.
struct GpuSlotValues {
  std::int64_t count = 1;
  double fraction = 1;
  std::int64_t percent = 100;
  std::optional<std::int64_t> mib;  // absent: not known
  std::int64_t units = 1;
};

// Returns the names of the slots in `text`, known or not.
std::set<std::string> slots_of(std::string_view text);
// The same for all texts in `value`, keys excepted.
std::set<std::string> slots_in(const Json& value);

// Fills in the slots of `text`. Requires that all of them are known and have a value.
std::string fill_slots(std::string_view text, const GpuSlotValues& values);
// The same for all texts in `value`. A text that is one slot becomes a number.
Json fill_slots_in(const Json& value, const GpuSlotValues& values);

}  // namespace fettle::api
