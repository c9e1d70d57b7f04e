#!/usr/bin/env bash
# Tests not_run.sh: the exit code and message of a part that cannot run.
set -euo pipefail
cd "$(dirname "$0")"
failed=0

# expect CODE WORDS REQUIRED COMMAND: of a part that runs COMMAND where FETTLE_REQUIRE is REQUIRED.
expect() {
  local -r code=$1 words=$2 required=$3 command=$4
  local said found=0
  said=$(FETTLE_REQUIRE=$required bash -euc "source ./not_run.sh; $command; echo ran" 2>&1) || found=$?
  [ "$found" -eq "$code" ] && [[ $said == *"$words"* ]] && return
  echo "FETTLE_REQUIRE='$required' $command: exit code $found instead of $code, or not \"$words\": $said" >&2
  failed=1
}

expect 77 'browser: NOT RUN: no chromium' '' "not_run browser 'no chromium'"
expect 77 'browser: NOT RUN: no chromium' cluster,gpu-toolchain "not_run browser 'no chromium'"
expect 1 'cannot run: no chromium' browser "not_run browser 'no chromium'"
expect 1 'cannot run: no chromium' cluster,browser "not_run browser 'no chromium'"
expect 0 ran cluster,browser,gpu-toolchain true
expect 1 "'browsers' is none of" cluster,browsers true
expect 1 "'*' is none of" '*' true

expect 0 ran cluster 'try cluster reason true'
expect 77 'cluster: NOT RUN: reason' '' "try cluster reason bash -c 'exit 3'"
expect 1 'cannot run: reason' cluster "try cluster reason bash -c 'exit 3'"
expect 2 '' '' "try cluster reason bash -c 'exit 2'"

bash -euc 'unset FETTLE_REQUIRE; source ./not_run.sh' || failed=1
[ "$failed" -eq 0 ] && echo 'not_run.sh: a part that cannot run says so'
exit "$failed"
