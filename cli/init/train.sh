# A program to tune: the height of a bumpy landscape at a, b. Put your own command here.
# Parameters come in environment variables; a line of JSON holds the metric.
awk -v a="$FETTLE_PARAM_A" -v b="$FETTLE_PARAM_B" 'BEGIN {
  printf "{\"height\": %.6f}\n", (a - 1) ^ 2 + (b + 0.5) ^ 2 + 0.3 * sin(5 * a) * sin(5 * b)
}'
