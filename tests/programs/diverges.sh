#!/bin/sh
# Diverges where x is odd: NaN, later Infinity, as Python writes them.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  loss=$((100 * FETTLE_PARAM_X + 120 / epoch))
  [ $((FETTLE_PARAM_X % 2)) -eq 0 ] || loss=$([ "$epoch" -lt 3 ] && echo NaN || echo Infinity)
  echo "{\"step\": $epoch, \"loss\": $loss}"
done
