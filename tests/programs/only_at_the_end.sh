#!/bin/sh
# Says nothing until it has trained to the end.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
done
echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
