#!/bin/sh
# A progress bar that wipes itself out before the JSON line.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  printf '\r 50%%|####      |\r100%%|##########|\r                 \r'
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
