# What a part of the tests does on a machine that cannot run it. Sourced by the scripts of such parts.
#
# FETTLE_REQUIRE lists the needs, separated by commas, that a machine must meet: there, a part that
# cannot run fails with exit code 1. Anywhere else it says so and ends with exit code 77, which
# automake gave the meaning "skipped". An unknown need is an error in every part.
# shellcheck shell=bash

known_needs='cluster browser gpu-toolchain peers'
exit_skipped=77
# What scripts/setup.sh, scripts/cuda.py and tests/cluster/cluster end with where the machine, not
# the code under test, is the reason.
exit_cannot=3
FETTLE_REQUIRE=${FETTLE_REQUIRE:-}

check_required() {
  local -a needs
  local need
  IFS=, read -ra needs <<< "$FETTLE_REQUIRE"
  for need in "${needs[@]}"; do
    if [[ " $known_needs " != *" $need "* ]]; then
      echo "FETTLE_REQUIRE: '$need' is none of: $known_needs" >&2
      exit 1
    fi
  done
}

# not_run NEED REASON: ends the part.
not_run() {
  local -r need=$1 reason=$2
  if [[ ",$FETTLE_REQUIRE," == *",$need,"* ]]; then
    echo "$need: required by FETTLE_REQUIRE, but cannot run: $reason" >&2
    exit 1
  fi
  echo "$need: NOT RUN: $reason" >&2
  exit "$exit_skipped"
}

# try NEED REASON COMMAND...: what must succeed before the part can run. Ends the part if it fails.
try() {
  local -r need=$1 reason=$2
  local code=0
  shift 2
  "$@" || code=$?
  [ "$code" -ne "$exit_cannot" ] || not_run "$need" "$reason"
  [ "$code" -eq 0 ] || exit "$code"
}

check_required
