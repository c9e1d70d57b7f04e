#!/bin/sh
# Evaluates every second epoch and at the very end: at the rung 3 its newest value is of epoch 2.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  [ $((epoch % 2)) -eq 0 ] || [ "$epoch" -eq 9 ] || continue
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
