#!/bin/sh
# Logs in JSON: numbers that are no metrics, and a loss that leaves it to the reader to count steps.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  for batch in 1 2 3; do
    echo "{\"ts\": 1700000000.$batch, \"level\": \"info\", \"msg\": \"done\", \"batch\": $batch}"
  done
  echo "{\"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
