#!/bin/sh
# Trains, says nothing and leaves with exit code 0.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
done
