#!/bin/sh
# Trains to its own end, whatever FETTLE_UNTIL_STEP says.
for epoch in 1 2 3 4 5 6 7 8 9; do
  sleep 0.03
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
