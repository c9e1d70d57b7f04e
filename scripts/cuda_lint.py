#!/usr/bin/env python3
"""Reads the machine code of our kernels, as it will run on the GPU, and checks it against a table.

    scripts/cuda_lint.py [--table kernels/cuda/machine_code.txt] [--list] BUILD_DIRECTORY|OBJECT...

Every kernel: no local memory (spills, stack frames, arrays that are indexed at run time), and no more
registers than the table allows. Those that the table names must also hold the instructions that they
claim, so that 16-byte loads and tensor cores stay what their comments say. --list prints what was found.

Read from the objects by cuobjdump and nvdisasm (scripts/cuda.py), not from the compiler's messages: these
are silent where a compiler cache answers.
"""

import argparse
import dataclasses
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "kernels/cuda/machine_code.txt"
LOCAL_MEMORY = ("LDL", "STL")
FUNCTION = re.compile(r"^\s*Function (?::\s*)?([\w$.]+):?\s*$")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]+)")


@dataclasses.dataclass
class Kernel:
    name: str  # folder/kernel<template arguments>
    registers: int = 0
    stack: int = 0
    local: int = 0
    instructions: dict = dataclasses.field(default_factory=dict)  # how often each occurs

    def holds(self, claimed):
        """`claimed` and whatever modifiers follow: LDG.E.128 holds for LDG.E.128.CONSTANT, HGMMA for all of them."""
        return any(found == claimed or found.startswith(claimed + ".") for found in self.instructions)


def fail(message):
    sys.exit(f"cuda_lint: {message}")


def tool(name):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    wheels = cache / "fettle/cuda-13.0.2/nvidia/cu13/bin" / name
    found = str(wheels) if wheels.exists() else shutil.which(name)
    return found or fail(f"there is no {name}; scripts/cuda.py installs it")


def output_of(*command):
    # cuobjdump finds nvdisasm in PATH alone.
    path = os.pathsep.join([str(pathlib.Path(command[0]).parent), os.environ.get("PATH", "")])
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, PATH=path))
    if run.returncode != 0:
        fail(f"{' '.join(command)} failed:\n{run.stderr.strip()}")
    return run.stdout


def short_name(demangled):
    """void ns::(anonymous namespace)::row_sum<ns::Pair<float>, 4>(float const*) -> row_sum<Pair<float>,4>"""
    plain = demangled.removeprefix("void ").replace("(anonymous namespace)::", "")
    plain = re.sub(r"\([\w:]+\)(?=\d)", "", plain)  # the type of a number: (ns::GeluForm)1
    plain = re.sub(r"\w+::", "", plain).replace(" ", "")
    return plain.split("(")[0]


def folder_of(path):
    """Of the source, from where CMake puts its object: below the target's folder, or `__/` out of it."""
    return path.parent.name.replace("fettle_cuda.dir", "cuda")


def kernels_of(path):
    """The kernels of one object, by mangled name."""
    usage = output_of(tool("cuobjdump"), "-res-usage", str(path))
    kernels, current = {}, None
    for line in usage.splitlines():
        if match := FUNCTION.match(line):
            current = match[1]
        elif (match := USAGE.search(line)) and current:
            registers, stack, _, local = map(int, match.groups())
            kernels[current] = Kernel("", registers, stack, local)
            current = None
    names = output_of("c++filt", "-i", *kernels).splitlines() if kernels else []
    for kernel, name in zip(kernels.values(), names):
        kernel.name = f"{folder_of(path)}/{short_name(name)}"
    count_instructions(path, kernels)
    return list(kernels.values())


def count_instructions(path, kernels):
    current = None
    for line in output_of(tool("cuobjdump"), "-sass", str(path)).splitlines():
        if match := FUNCTION.match(line):
            current = kernels.get(match[1])
        elif current and (match := INSTRUCTION.match(line)):
            current.instructions[match[1]] = current.instructions.get(match[1], 0) + 1


@dataclasses.dataclass
class Rule:
    pattern: str
    registers: int  # at most
    holds: list
    applied: bool = False

    def matches(self, kernel):
        """With or without template arguments; `*` stands for anything."""
        return any(fnmatch.fnmatchcase(name, self.pattern) for name in (kernel.name, kernel.name.split("<")[0]))


def read_table(path):
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) < 2 or not words[1].isdigit():
            fail(f"{path}:{number}: expected a kernel, its registers, and instructions, found '{line}'")
        rules.append(Rule(words[0], int(words[1]), words[2:]))
    return rules


def rule_for(kernel, rules):
    """The last that matches."""
    matching = [rule for rule in rules if rule.matches(kernel)]
    for rule in matching:
        rule.applied = True
    return matching[-1] if matching else fail(f"the table has no line for {kernel.name}")


def faults_of(kernel, rule):
    if kernel.stack or kernel.local or any(kernel.holds(word) for word in LOCAL_MEMORY):
        count = sum(n for name, n in kernel.instructions.items() if name.split(".")[0] in LOCAL_MEMORY)
        yield (f"spills or indexes an array at run time: {kernel.stack} bytes of stack, {kernel.local} of local "
               f"memory, {count} loads and stores there")
    if kernel.registers > rule.registers:
        yield f"takes {kernel.registers} registers, expected at most {rule.registers}"
    for claim in rule.holds:
        if not kernel.holds(claim):
            yield f"holds no {claim}, which the table claims"


def objects_of_build(folder):
    """Of the target fettle_cuda, as CMake listed them."""
    listed = folder / "cuda_objects.txt"
    if not listed.exists():
        fail(f"{folder} has no cuda_objects.txt; configure it with -DFETTLE_CUDA=ON")
    objects = [pathlib.Path(line) for line in listed.read_text().splitlines() if line.endswith(".cu.o")]
    missing = [path for path in objects if not path.exists()]
    return fail(f"{missing[0]} is missing; build the target fettle_cuda") if missing else objects


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("objects", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()

    rules = read_table(arguments.table)
    objects = []
    for path in arguments.objects:
        objects += objects_of_build(path) if path.is_dir() else [path]
    whole = any(path.is_dir() for path in arguments.objects)
    kernels = [kernel for path in objects for kernel in kernels_of(path)]
    faults = [f"{kernel.name}: {fault}" for kernel in kernels for fault in faults_of(kernel, rule_for(kernel, rules))]
    if whole:
        faults += [f"{rule.pattern}: the table names it, and there is no such kernel"
                   for rule in rules if not rule.applied]
    if arguments.list:
        for kernel in sorted(kernels, key=lambda k: k.name):
            # HFMA2.MMA is arithmetic on pairs, not a tensor core.
            wide = sorted(i for i in kernel.instructions if ".128" in i or re.match("[HQDI]G?MMA", i))
            print(f"{kernel.name:60} {kernel.registers:4} {' '.join(wide)}")
    for fault in faults:
        print(f"cuda_lint: {fault}", file=sys.stderr)
    print(f"cuda_lint: {len(kernels)} kernels, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
