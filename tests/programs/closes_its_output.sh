#!/bin/sh
# Closes its output after epoch 4, as a daemon does, and trains on.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  [ "$epoch" -gt 4 ] || echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
  [ "$epoch" -ne 4 ] || exec >&- 2>&-
done
