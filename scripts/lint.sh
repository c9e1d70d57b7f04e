#!/usr/bin/env bash
# Style, as CI checks it, apart from clang-tidy (scripts/tidy.py): clang-format, and rules that no tool knows. Takes
# seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

fail() {
  printf 'lint: %s\n' "$1" >&2
  failed=1
}

mapfile -t sources < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
mapfile -t inline_parts < <(git ls-files '*.inl')

echo "lint: clang-format over ${#sources[@]} files"
clang-format --dry-run -Werror "${sources[@]}" 2> /tmp/fettle-format.$$ || {
  grep -E 'error:' /tmp/fettle-format.$$ | cut -d: -f1 | sort | uniq -c >&2
  fail 'not formatted (make format mends it)'
}
rm -f /tmp/fettle-format.$$

# Decisions are pure: clocks and entropy only in the programs and drivers that hand them in.
impure=$(git grep -nE 'std::chrono::[a-z_]+::now|std::random_device|\bs?rand\(|\btime\(' -- \
  api base search core kernels kube ':!*_test.cpp' ':!base/machine/*' ':!core/control/clock.*' ':!base/program.cpp' ':!kernels/bench/*' ':!kernels/emulator/*' \
  ':!kube/transport/*' ':!kube/client/client.cpp' ':!kube/watch/informer.inl' ':!kube/watch/watch_loop.cpp' \
  ':!kube/election/leader_elector.cpp' ':!kube/events/event_recorder.cpp' ':!*/testing/*' || true)
[ -z "$impure" ] || fail "a clock or entropy in pure code:
$impure"

# Arrows point down only (docs/architecture.md): what each folder may include.
allowed() {
  case $1 in
    base) echo base ;;
    kernels) echo 'base|kernels' ;;
    kernels/bench) echo 'base|kernels' ;;
    api) echo 'base|api' ;;
    crds) echo 'base|api|crds' ;;
    search) echo 'base|api|search' ;;
    core) echo 'base|api|search|core' ;;
    kube) echo 'base|api|kube' ;;
    runtime) echo 'base|api|search|core|kube|runtime' ;;
    trainer) echo 'base|api|kernels|trainer' ;;
    trainer/reporter) echo 'base|api|trainer|kube' ;;
    *) echo '.*' ;;
  esac
}
for folder in base kernels kernels/bench api crds search core kube runtime trainer trainer/reporter; do
  within=(':!*_test.cpp' ':!*/testing/*')
  [ "$folder" != kernels ] || within+=(':!kernels/bench/*')
  [ "$folder" != trainer ] || within+=(':!trainer/reporter/reporter.*' ':!trainer/reporter/kubernetes_report_sink.cpp')
  upward=$(git grep -nE '^#include "' -- "$folder/*.h" "$folder/*.inl" "$folder/*.cpp" "$folder/*.cu" \
    "$folder/*.cuh" "${within[@]}" |
    grep -vE "#include \"($(allowed "$folder"))/" || true)
  [ -z "$upward" ] || fail "an include that points up:
$upward"
done

# Rooms that only some folders may include.
only_from() {  # ROOM PATH...: whoever includes the room, apart from itself and tests
  local room=$1 found excluded=()
  shift
  for path in "$room" "$@"; do excluded+=(":!$path"); done
  found=$(git grep -nE "^#include \"$room/" -- '*.h' '*.cpp' '*.inl' ':!tests' ':!*_test.cpp' ':!*/testing/*' \
    "${excluded[@]}" || true)
  [ -z "$found" ] || fail "an include of $room from elsewhere than $*:
$found"
}
only_from base/machine kernels/bench runtime trainer cli
only_from base/http operator cli
only_from core/control runtime operator cli
only_from search/explain cli

# Rooms of the local runner (runtime/local/README.md).
local_upward() {  # ROOM WHAT: a room and what it must not include
  git grep -nE "^#include \"runtime/local/($2)" -- "runtime/local/$1/*" ':!*_test.cpp' || true
}
upward="$(local_upward store 'run/|process/|session')$(local_upward process 'run/|store/|session')$(local_upward run session)"
[ -z "$upward" ] || fail "an include that points up:
$upward"

# The same between the rooms of kernels/cuda, runtime/kubernetes, search and trainer. The files at the top of each tie
# the rooms together; the rooms of search see only the three that say what a sampler is.
room_allowed() {
  local contract='search/(search|incremental_sampler|cost_ledger)\.h'
  case $1 in
    api/fields) echo 'api/fields/' ;;
    api/meta) echo 'api/meta/' ;;
    api/trainer) echo 'api/(fields|trainer)/' ;;
    api/study) echo 'api/(fields|meta|trainer|study)/' ;;
    api/gpu) echo 'api/(fields|meta|trainer|study|gpu)/' ;;
    api/trial) echo 'api/(fields|meta|trainer|study|gpu|trial)/' ;;
    core/facts) echo 'core/([a-z_]+\.h|facts/)' ;;
    core/trial) echo 'core/([a-z_]+\.h|(facts|trial)/)' ;;
    core/study) echo 'core/([a-z_]+\.h|(facts|study)/)' ;;
    core/replay) echo 'core/([a-z_]+\.h|(facts|study|replay)/)' ;;
    kernels/cuda/runtime) echo 'kernels/([a-z_]+\.h|cuda/runtime/)' ;;
    kernels/cuda/device_code) echo 'kernels/([a-z_]+\.h|cuda/(runtime|device_code)/)' ;;
    kernels/cuda/libraries) echo 'kernels/([a-z_]+\.h|cuda/(runtime|libraries)/)' ;;
    runtime/kubernetes/gpu) echo 'runtime/kubernetes/gpu/' ;;
    runtime/kubernetes/pod) echo 'runtime/([a-z_]+\.h|kubernetes/(gpu|pod)/)' ;;
    runtime/kubernetes/job) echo 'runtime/([a-z_]+\.h|kubernetes/(gpu|pod|job)/)' ;;
    runtime/kubernetes/log) echo 'runtime/([a-z_]+\.h|kubernetes/log/)' ;;
    runtime/kubernetes/store) echo 'runtime/kubernetes/(job|store)/' ;;
    runtime/kubernetes/run) echo 'runtime/([a-z_]+\.h|kubernetes/(gpu|pod|job|log|run)/)' ;;
    search/maths) echo 'search/maths/' ;;
    search/space) echo 'search/(maths|space)/' ;;
    search/samplers) echo "search/(maths|space|samplers)/|$contract" ;;
    search/gp/process) echo 'search/(maths|space|samplers|gp/process)/' ;;
    search/gp) echo "search/(maths|space|samplers|gp)/|$contract" ;;
    search/rungs) echo "search/(maths|space|samplers|gp|rungs)/|$contract" ;;
    trainer/data) echo 'trainer/data/' ;;
    trainer/trace) echo 'trainer/trace/' ;;
    trainer/reporter) echo 'trainer/reporter/' ;;
    trainer/model) echo 'trainer/(data|model|trace)/' ;;
    trainer/checkpoint) echo 'trainer/(checkpoint|data|model)/' ;;
    trainer/parallel) echo 'trainer/(parallel/|data/batching\.h)' ;;
    trainer/step)
      echo 'trainer/((checkpoint|data|model|step|trace)/|parallel/collective\.h|reporter/training_report\.h)'
      ;;
  esac
}
for room in api/{fields,meta,trainer,study,gpu,trial} core/{facts,trial,study,replay} kernels/cuda/{runtime,device_code,libraries} runtime/kubernetes/{gpu,pod,job,log,store,run} \
  search/{maths,space,samplers,gp/process,gp,rungs} \
  trainer/{data,trace,reporter,model,checkpoint,parallel,step}; do
  upward=$(git grep -nE "^#include \"${room%%/*}/" -- "$room/*.h" "$room/*.cuh" "$room/*.cpp" ':!*_test.cpp' |
    grep -vE "#include \"($(room_allowed "$room"))" || true)
  [ -z "$upward" ] || fail "an include that points up within ${room%%/*}:
$upward"
done

scripts/names_lint.py "${sources[@]}" "${inline_parts[@]}" || failed=1
scripts/rooms_lint.py api base cli core crds kernels kube operator runtime search trainer || failed=1
scripts/folders_lint.py || failed=1
scripts/classes_lint.py || failed=1
scripts/sentences_lint.py || failed=1

# clang-format leaves comments alone (ReflowComments), however long they are.
wide=$(LC_ALL=C.UTF-8 grep -nE '^.{101,}$' "${sources[@]}" "${inline_parts[@]}" | grep -E '^[^:]+:[0-9]+:(.* )?// ' || true)
[ -z "$wide" ] || fail "comments over 100 columns:
$wide"

# Words that the field has better ones for (docs/glossary.md). A folder is added once it is clean.
refuse() {  # WORDS BETTER PATH...
  local words=$1 better=$2 found
  shift 2
  found=$(git grep -nE "$words" -- "$@" ':!docs/glossary.md' ':!docs/decisions/0049-*' ':!scripts/lint.sh' ':!*/testdata/*' ':!*.json' || true)
  [ -z "$found" ] || fail "write $better (docs/glossary.md):
$found"
}
plain=(api base core/control crds docs examples kernels search cli operator
  runtime tests trainer README.md)
refuse '\b[Ss]o many\b' 'N, or this many' "${plain[@]}"
refuse '\b[Dd]ear(er|est)?\b' expensive ':!scripts/house_numbers.py'
refuse '\b[Aa]dd(s|ed|ing)? up\b' 'all-reduce, or sum' "${plain[@]}"
refuse '\b[Gg]o(es|ing)? on\b|GoesOn|\b[Ll]ook(s|ed|ing)? at\b' 'continue, resume; check, watch' trainer
refuse '"[^"]*\b(so many|go(es)? on|look at)\b' 'N; continue, resume' 'api/*/*_fields.h' 'crds/rules/*.yaml'
refuse '\bborne\b|\b([Ww]hat|that) (came|became) of\b' 'tolerated; results, state' "${plain[@]}"

# Links, paths and commands in documents lead to something.
scripts/links_lint.py || failed=1

long=$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 600 {print $2 ": " $1 " lines"}')
[ -z "$long" ] || fail "files over 600 lines:
$long"

[ "$failed" -eq 0 ] && echo 'lint: clean'
exit "$failed"
