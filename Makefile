# The front door. `make run` and `make test` need nothing installed by hand on Debian 12.

.DEFAULT_GOAL := help
SHELL := /bin/bash
BUILD := build
STUDY := examples/fashion-mnist.yaml
# make build CUDA=1: the backend for NVIDIA GPUs, too, from A100 to what comes after B200.
CUDA :=
CUDA_OPTIONS := $(if $(CUDA),-DFETTLE_CUDA=ON '-DCMAKE_CUDA_ARCHITECTURES=80-real;90a-real;100')
# `make test` runs a sample under the sanitizers (cmake/SanitizedSample.cmake), `make test-all` all.
SANITIZED := sample
# Many tests wait for processes.
TESTS_AT_ONCE := $(shell echo $$((2 * $$(nproc))))
# Compiler output is cached outside the checkout.
export CCACHE_DIR ?= $(HOME)/.cache/fettle/ccache
export CCACHE_COMPILERCHECK ?= content
# Another checkout finds what this one compiled.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
# Tests share a precompiled header (cmake/Fettle.cmake).
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

.PHONY: help
help: ## List what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Install what is missing, build, and tune a network on Fashion-MNIST
	$(BUILD)/bin/fettle run $(STUDY)

.PHONY: setup
setup: ## Install missing Debian packages (needs root)
	@scripts/setup.sh

.PHONY: build
build: setup ## Build build/bin/fettle and build/bin/fettle-trainer; CUDA=1: for NVIDIA GPUs, too
	@$(if $(CUDA),scripts/cuda.py > /dev/null)
	@cmake -S . -B $(BUILD) -G Ninja $(CUDA_OPTIONS) --log-level=WARNING
	@cmake --build $(BUILD) --target fettle fettle-trainer

.PHONY: dist
dist: setup ## A Debian package and a relocatable archive in build/dist; RELEASES=URL: a krew manifest, too
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target fettle_dist
	@scripts/dist.sh $(BUILD) $(RELEASES)

.PHONY: wheel
wheel: build ## Python wheels in build/wheels: fettle-tune with the program, and fettle-trainer
	@scripts/wheel.sh $(BUILD)

.PHONY: dist-test
dist-test: dist wheel # its packages and wheels in a clean Debian 12, as an ordinary user
	@tests/dist/test.sh $(BUILD)
	@tests/dist/wheel.sh $(BUILD)
	@tests/dist/chart.sh

.PHONY: test
test: setup ## Everything that CI runs, several parts at a time; ends with a table of them
	@scripts/run_tests.py $(BUILD)

.PHONY: test-all
test-all: test ## make test, and what takes long: all tests in Release and under all sanitizers, all faults, and Kueue itself
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory tidy
	@$(MAKE) --no-print-directory sanitize SANITIZED=all
	@$(MAKE) --no-print-directory sanitize-thread
	@FETTLE_MATRIX_ALL=1 $(BUILD)/tests/tests_api_calls_test
	@$(MAKE) --no-print-directory broken
	@$(MAKE) --no-print-directory fault-rows
	@$(MAKE) --no-print-directory kueue-test
	@$(MAKE) --no-print-directory dist-test
	@$(MAKE) --no-print-directory own-program-torch
	@$(MAKE) --no-print-directory warm-torch
	@$(MAKE) --no-print-directory export-trackers
	@$(MAKE) --no-print-directory import-ray
	@$(MAKE) --no-print-directory interop
	@$(MAKE) --no-print-directory python-types
	@$(MAKE) --no-print-directory python-notebook
	@$(MAKE) --no-print-directory python-integrations

.PHONY: broken
broken: setup # broken versions of the code, each of which the fault matrix must catch
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@tests/matrix/broken.py $(BUILD)

.PHONY: unit
unit: setup ## The unit tests; FOLDER=core: of one folder
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target $(if $(FOLDER),fettle_tests_$(FOLDER),all)
	@ctest --test-dir $(BUILD) $(if $(FOLDER),-L '^$(FOLDER)$$') --output-on-failure -j$(TESTS_AT_ONCE)

.PHONY: unit-unsanitized
unit-unsanitized: setup # those that `make test` does not run under sanitizers
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target fettle_unsanitized
	@ctest --test-dir $(BUILD) -LE fettle_sanitized_sample --output-on-failure -j$(TESTS_AT_ONCE)

.PHONY: cuda-check
cuda-check: setup ## Compile the CUDA code for the H100 and check what comes out; needs no GPU
	@scripts/cuda_check.sh $(BUILD)-cuda

.PHONY: sanitize
sanitize: setup # tests under the address and undefined-behaviour sanitizers
	@cmake -S . -B $(BUILD)-asan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
	  -DFETTLE_SANITIZE=address,undefined -DFETTLE_SANITIZE_ACCESSES=$(if $(filter all,$(SANITIZED)),ON,OFF) \
	  --log-level=WARNING
	@cmake --build $(BUILD)-asan --target $(if $(filter all,$(SANITIZED)),all,fettle_sanitized_sample)
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ctest --test-dir $(BUILD)-asan \
	  $(if $(filter sample,$(SANITIZED)),-L fettle_sanitized_sample) --output-on-failure -j$(TESTS_AT_ONCE)

.PHONY: sanitize-thread
sanitize-thread: setup
	@cmake -S . -B $(BUILD)-tsan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 \
	  -DFETTLE_SANITIZE=thread --log-level=WARNING
	@cmake --build $(BUILD)-tsan
	@ctest --test-dir $(BUILD)-tsan --output-on-failure -j$(TESTS_AT_ONCE)

.PHONY: journey
journey: build ## The example, smaller, from the YAML to the best trial
	@tests/journey.sh $(BUILD)/bin/fettle $(STUDY)

.PHONY: rude-programs
rude-programs: build # programs as people write them, under every way of stopping early
	@tests/rude_programs/run.py $(BUILD)/bin/fettle

.PHONY: rude-workers
rude-workers: build # workers that break the protocol or harm their process, and kills
	@tests/warm/rude.py $(BUILD)/bin/fettle
	@tests/warm/kills.py $(BUILD)/bin/fettle

.PHONY: python-test
python-test: build ## The tests of the Python package, which needs nothing but Python and the program
	@python/tests/test.sh $(BUILD)

.PHONY: python-integrations
python-integrations: build # its integrations with the real libraries, in the newest and oldest supported versions
	@tests/integrations/test.sh $(BUILD)/bin/fettle newest
	@tests/integrations/test.sh $(BUILD)/bin/fettle oldest

.PHONY: python-types
python-types: # its annotations, with mypy and pyright from PyPI
	@scripts/python_types.sh

.PHONY: python-notebook
python-notebook: build # tune() in Jupyter, from PyPI
	@python/tests/notebook.sh $(BUILD)

.PHONY: own-program
own-program: build # programs of users that pause, resume and start from others' checkpoints
	@tests/own_program/run.py $(BUILD)/bin/fettle

.PHONY: warm-torch
warm-torch: build # PyTorch, from PyPI, in both kinds of Python worker
	@tests/warm/torch_run.py $(BUILD)/bin/fettle --python "$$(scripts/torch_python.sh)"

.PHONY: export-peers
export-peers: build # a Study in Optuna and TensorBoard, and Optuna's in a Study
	@tests/export/run.sh $(BUILD)/bin/fettle

.PHONY: export-trackers
export-trackers: build # a Study in MLflow, also while it runs, on optuna-dashboard and in W&B
	@tests/export/run.sh $(BUILD)/bin/fettle --trackers

.PHONY: import-ray
import-ray: build # an experiment of Ray Tune, from PyPI, in a Study
	@tests/export/run.sh $(BUILD)/bin/fettle --ray

.PHONY: interop
interop: build # exported networks in PyTorch and onnxruntime, from PyPI, against the trainer's own logits
	@tests/interop/run.sh $(BUILD)/bin/fettle-trainer

.PHONY: own-program-torch
own-program-torch: build # the same in PyTorch, from PyPI
	@tests/own_program/torch.sh $(BUILD)/bin/fettle

.PHONY: report-page
report-page: build # the report page in headless Chromium
	@tests/report_page.sh $(BUILD)/bin/fettle
	@tests/page/run.sh $(BUILD)/bin/fettle

.PHONY: page-types
page-types: # the types of its scripts, with TypeScript from npm
	@tests/page/types.sh

.PHONY: pictures
pictures: build ## Draw the pictures of the documents again, from a Study that is run for them
	@scripts/setup.sh chromium
	@scripts/pictures.py $(BUILD)/bin/fettle
	@tools=$$(scripts/page_tools.sh) && $$tools/bin/python scripts/live_picture.py $(BUILD)/bin/fettle

.PHONY: chart
chart: setup # the Helm chart, as far as it can be told without a cluster
	@helm/tests/test.sh

.PHONY: cluster-programs
cluster-programs: setup
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target fettle fettle-trainer bin/fettle-operator fettle_judge matrix_ends_test

.PHONY: cluster-test
cluster-test: cluster-programs # on a whole cluster of this machine, which is gone afterwards
	@tests/cluster/test.sh $(BUILD)

.PHONY: fault-rows
fault-rows: cluster-programs # of the fault matrix, on a control plane that is gone afterwards
	@FETTLE_FAULT_ROWS=100 tests/cluster/scenarios/test.sh $(BUILD) rows_of_the_fault

.PHONY: kueue-test
kueue-test: cluster-programs # Studies in queues of Kueue itself, on a cluster that is gone afterwards
	@tests/cluster/kueue/test.sh $(BUILD)

.PHONY: cluster
cluster: cluster-programs ## Bring up a whole Kubernetes cluster on this machine, with Fettle's images
	@tests/cluster/cluster up --node
	@for target in operator trainer; do tests/cluster/image.sh fettle-$$target:0.1.0 helm/images/Dockerfile . \
	  --target $$target --build-arg FROM_BUILD=$(BUILD)/bin || exit 1; done

.PHONY: cluster-down
cluster-down: ## Remove that cluster without a trace
	@tests/cluster/cluster down

.PHONY: lint
lint: style tidy ## clang-format, clang-tidy, and the project's own rules

.PHONY: style
style: setup # what takes seconds
	@scripts/lint.sh

.PHONY: tidy
tidy: setup # SAMPLE=--sample: an eighth of the files, as in make test
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@scripts/tidy.py $(BUILD) $(SAMPLE)

.PHONY: format
format: ## Format every source file
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

.PHONY: crds
crds: setup ## Regenerate crds/*.yaml from the field lists in api/ and crds/rules
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target fettle_crds
	@$(BUILD)/bin/fettle-crds crds

.PHONY: gpu
gpu: ## On a machine with a GPU: tests, then benchmarks against PyTorch; needs .gpu/ and no network; PARTS=smoke,tests,checkers,ladder,steps,trial,curves ROUNDS=default RESULTS=FOLDER; REHEARSE=1 on a CPU
	@scripts/gpu.sh $(RESULTS)

.PHONY: gpu-bundle
gpu-bundle: ## Gather in .gpu/ what `make gpu` needs where there is no network
	@scripts/gpu_bundle.sh

.PHONY: gpu-prebuild
gpu-prebuild: ## Compile in .gpu/bin what scripts/gpu_day.sh runs on a machine without a compiler
	@scripts/gpu_prebuild.sh

.PHONY: bench
bench: build ## Measure: the example, the trainer against PyTorch, overhead a trial
	@scripts/bench.sh $(BUILD)

.PHONY: bench-page
bench-page: build ## Measure: the report page of 5,000 trials in Chromium; OPTIONS="--trials 1000"
	@scripts/setup.sh chromium
	@tools=$$(scripts/page_tools.sh) && $$tools/bin/python scripts/bench_page.py $(BUILD)/bin/fettle $(OPTIONS)

.PHONY: bench-serve
bench-serve: build ## Measure: the live page of a Study of quick trials; OPTIONS="--rate 50"
	@scripts/setup.sh chromium
	@tools=$$(scripts/page_tools.sh) && $$tools/bin/python scripts/bench_serve.py $(BUILD)/bin/fettle $(OPTIONS)

.PHONY: bench-warm
bench-warm: build ## Measure: a trial in a warm worker against a process and Ray Tune; OPTIONS="--torch-trials 20"
	@cmake --build $(BUILD) --target fettle_cuda_stand_in
	@scripts/bench_warm.sh $(BUILD) $(OPTIONS)

.PHONY: bench-python
bench-python: build ## Measure: the Python package; PYTHON=one that has Optuna, to compare with it
	@$(or $(PYTHON),python3) scripts/bench_python.py $(BUILD)/bin/fettle

.PHONY: bench-search
bench-search: build ## Measure: the search against its peers; OPTIONS=--quick for a few minutes
	@scripts/bench_search.sh $(BUILD) $(OPTIONS)

.PHONY: bench-models
bench-models: build ## Compare samplers on 31 small models, while one is written; OPTIONS="--against OLD --pending 8"
	@scripts/bench_search.sh $(BUILD) --compare-models $(OPTIONS)

.PHONY: bench-families
bench-families: setup ## Compare samplers on random problems, while one is written; OPTIONS="--algorithms gp,tpe"
	@cmake -S . -B $(BUILD) -G Ninja --log-level=WARNING
	@cmake --build $(BUILD) --target fettle_search_families
	@$(BUILD)/bin/fettle-search-families $(OPTIONS)

.PHONY: bench-cluster
bench-cluster: cluster-programs ## Measure: a Study on a control plane with fake nodes against a plain Job
	@tests/cluster/cluster up
	@tests/cluster/in_cluster python3 -B -W ignore tests/cluster/bench.py

.PHONY: bench-scale
bench-scale: cluster-programs ## Measure: 6,000 trials in one Study, 1,000 at once, 20,000 in memory
	@cmake --build $(BUILD) --target fettle_reconcile_bench
	@$(BUILD)/bin/fettle-reconcile-bench
	@tests/cluster/cluster up --fake-nodes 6
	@tests/cluster/in_cluster python3 -B -W ignore tests/cluster/bench_scale.py $(OPTIONS)

.PHONY: clean
clean: ## Remove the build folders (not the caches)
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-cuda $(BUILD)-gpu*
