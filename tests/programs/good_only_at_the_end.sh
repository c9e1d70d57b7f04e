#!/bin/sh
# Breaks the constraint on its accuracy until epoch 8.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  loss=$((100 * FETTLE_PARAM_X + 120 / epoch))
  echo "{\"step\": $epoch, \"loss\": $loss, \"accuracy\": $((10 * epoch))}"
done
