#!/bin/sh
# Prints one number, and never says at which epoch.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
done
echo "{\"loss\": $((100 * FETTLE_PARAM_X))}"
