#!/bin/sh
# Is killed from outside in its first run, and only there.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
  case $FETTLE_TRIAL in */r0/*) kill -KILL $$ ;; esac
done
