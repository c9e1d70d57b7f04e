#!/bin/sh
# Crashes in the first epoch, with half a line printed.
printf '{"step": 1, "los'
kill -SEGV $$
