#!/bin/sh
# Prints Latin-1, NUL bytes and halves of characters.
for epoch in $(seq "$FETTLE_UNTIL_STEP"); do
  sleep 0.03
  printf 'caf\351 na\357ve \377\376 \000 {"l\377ss": 1}\n{"lo\000ss": 2}\n'
  echo "{\"step\": $epoch, \"loss\": $((100 * FETTLE_PARAM_X + 120 / epoch))}"
done
