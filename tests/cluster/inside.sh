#!/usr/bin/env bash
# What `cluster` does within the machine; called by it alone, with the tools on PATH.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "$0")/settings.sh"
for part in processes identity control_plane fake_nodes node; do
  # shellcheck disable=SC1090 # the files of this folder
  source "$cluster_source/$part.sh"
done

command=$1
shift
case $command in
  control-plane) control_plane_up ;;
  fake-nodes) fake_nodes_up "$1" ;;
  node) node_up ;;
  stop) stop_process "$1" ;;
  start) start_component "$1" ;;
  restart)
    stop_process "$1"
    start_component "$1"
    ;;
  status) print_status "$1" ;;
esac
