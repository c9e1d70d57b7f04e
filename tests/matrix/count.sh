#!/bin/sh
# Prints what the fault matrices said in the newest run of the unit tests: "API calls: 1234 rows, 0
# violations". Usage: count.sh BUILD
set -eu
log=$1/Testing/Temporary/LastTest.log
lines=$(grep -hE '^(API calls|calls beside Studies): [0-9]+ rows, [0-9]+ violations' "$log")
echo "$lines"
echo "$lines" | grep -q '^API calls: '
! echo "$lines" | grep -qv ' 0 violations'
