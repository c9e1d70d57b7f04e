#!/bin/sh
# A training under Fettle in 30 lines of shell. It may be killed at any moment, goes on where it was,
# and can start from the checkpoint of another trial (docs/your-program.md).
set -eu
mkdir -p "$FETTLE_CHECKPOINTS"
stop=
trap 'stop=1' TERM

# "STEP WEIGHT" of the newest checkpoint in folder $1 up to step $2. One that was cut off has no "end".
newest() {
  cat "$1"/step-* 2> /dev/null | awk -v most="$2" \
    '$3 == "end" && $1 <= most && $1 >= step { step = $1; weight = $2 } END { if (step) print step, weight }'
}
state=$(newest "$FETTLE_CHECKPOINTS" 999999)
if [ -z "$state" ] && [ -n "$FETTLE_PARENT" ]; then
  state=$(newest "$FETTLE_PARENT" "$FETTLE_PARENT_STEP")
  [ -n "$state" ] || { echo "there is no checkpoint in $FETTLE_PARENT" >&2; exit 1; }
fi
step=${state% *} weight=${state#* }
step=${step:-0} weight=${weight:-0}
while [ -z "$stop" ] && [ "$step" -lt "$FETTLE_UNTIL_STEP" ]; do
  sleep 0.1 || true # where the work would be
  step=$((step + 1))
  weight=$(awk -v w="$weight" -v lr="$FETTLE_PARAM_LR" 'BEGIN { printf "%.9f", w + lr * (1 - w) }')
  awk -v w="$weight" -v step="$step" 'BEGIN { printf "{\"step\": %d, \"loss\": %.9f}\n", step, (1 - w) ^ 2 }'
  # A new name, then a rename: whoever reads sees a whole checkpoint or none. A full disk ends nothing.
  { echo "$step $weight end" > "$FETTLE_CHECKPOINTS/new" && mv "$FETTLE_CHECKPOINTS/new" "$FETTLE_CHECKPOINTS/step-$step"; } ||
    echo "cannot save step $step" >&2
done
[ -z "$stop" ] || exit 143
