"""Installs the CRDs, the admission policies and the chart's accounts and roles, but no operator:
scenarios start operators themselves."""
import contextlib
import json
import os
import subprocess

from cluster import PATIENCE, ROOT, SYSTEM, apply, kubectl

RELEASE = "fettle"  # of an operator that works in the whole cluster
SCENARIO = "fettle-scenario"  # of one that works in its own namespace alone


def helm(*arguments, values=None):
    subprocess.run(["helm", *arguments, "--values", "-"] if values else ["helm", *arguments],
                   input=values if isinstance(values, str) else json.dumps(values) if values else None,
                   check=True, stdout=subprocess.DEVNULL, text=True)  # fmt: skip


# Kueue's Workloads, for its stand-in (kueue.py); a cluster with Kueue itself has the real definition.
WORKLOADS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "workloads.kueue.x-k8s.io",
                 "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
    "spec": {
        "group": "kueue.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "Workload", "listKind": "WorkloadList", "plural": "workloads", "singular": "workload"},
        "versions": [{"name": "v1beta2", "served": True, "storage": True, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}  # fmt: skip

# What is for all releases of the cluster; install_definitions() has brought it.
NOTHING_SHARED = "crds.install=false,rbac.aggregate=false,admissionPolicies.install=false,flowControl.reports.enabled=false"


def wait_until_established():
    kubectl("wait", "--for=condition=Established", f"--timeout={PATIENCE}s",
            "crd/studies.fettle.dev", "crd/trials.fettle.dev")  # fmt: skip


def install_definitions():
    kubectl("apply", "-f", str(ROOT / "crds"))
    if "FETTLE_KUEUE" not in os.environ:  # tests/cluster/kueue brings the real one
        apply(WORKLOADS)
        kubectl("wait", "--for=condition=Established", f"--timeout={PATIENCE}s", "crd/workloads.kueue.x-k8s.io")
    wait_until_established()
    apply_shared(shared_part("admission-policies"))


def shared_part(name):
    """The documents of a template of the chart."""
    return subprocess.run(["helm", "template", RELEASE, str(ROOT / "helm/fettle"), "--namespace", SYSTEM,
                           "--show-only", f"templates/{name}.yaml"],
                          check=True, capture_output=True, text=True).stdout  # fmt: skip


def apply_shared(documents):
    subprocess.run(["kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-"],
                   input=documents, check=True, stdout=subprocess.DEVNULL, text=True)  # fmt: skip


@contextlib.contextmanager
def people_roles():
    """The chart's ClusterRoles for people, for a scenario that runs alone: releases of others own them, too."""
    roles = shared_part("people-rbac")
    apply_shared(roles)
    try:
        yield
    finally:
        subprocess.run(["kubectl", "delete", "--ignore-not-found", "-f", "-"], input=roles, check=True,
                       stdout=subprocess.DEVNULL, text=True)  # fmt: skip


def install():
    install_definitions()
    kubectl("create", "namespace", SYSTEM, check=False)
    helm("upgrade", "--install", RELEASE, str(ROOT / "helm/fettle"), "--namespace", SYSTEM,
         "--set", f"operator.replicas=0,rbac.scope=Cluster,{NOTHING_SHARED}")  # fmt: skip


def uninstall():
    helm("uninstall", RELEASE, "--namespace", SYSTEM)


def install_in(namespace, settings="", others=(), values=None):
    """A further release for that namespace, and for others, which goes with it: it has nothing that lives in none."""
    namespaces = ",".join([namespace, *others])
    helm("upgrade", "--install", SCENARIO, str(ROOT / "helm/fettle"), "--namespace", namespace,
         "--set", f"operator.replicas=0,{NOTHING_SHARED}", "--set", f"studyNamespaces={{{namespaces}}}",
         "--set", "studiesBesideOperator=true,admissionPolicies.ofOperator=false,flowControl.operator.enabled=false",
         "--set", settings or "admissionPolicies.check=false", values=values)  # fmt: skip
