#!/bin/sh
# Asks a question on a terminal that is not there.
echo 'Overwrite the last run? [y/N]'
read -r answer || answer=n
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
echo "$answer"
