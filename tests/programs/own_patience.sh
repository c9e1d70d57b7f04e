#!/bin/sh
# Has early stopping of its own: where the loss is poor it leaves after epoch 2, with exit code 0 and
# without a value at the rung 3.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
  [ "$FETTLE_PARAM_X" -lt 50 ] || [ "$epoch" -lt 2 ] || exit 0
done
