#!/bin/sh
# Leaves a process behind that belongs to no group of its own and holds the output open.
setsid sleep 300 &
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
