#!/bin/sh
# Trains behind a shell that dies of SIGTERM at once, while the training saves.
echo 'module load python'
"$(dirname "$0")/saves_on_sigterm.py"
code=$?
exit $code
