"""Brings what operators need into the cluster: the definitions and the chart's accounts and roles,
but no operator of its own; the scenarios start those."""
import subprocess

from cluster import ROOT, SYSTEM, kubectl

RELEASE = "fettle"  # of an operator that works in the whole cluster
SCENARIO = "fettle-scenario"  # of one that works in its own namespace alone


def helm(*arguments):
    subprocess.run(["helm", *arguments], check=True, stdout=subprocess.DEVNULL)


def install_definitions():
    kubectl("apply", "-f", str(ROOT / "crds"))
    kubectl("wait", "--for=condition=Established", "crd/studies.fettle.dev", "crd/trials.fettle.dev")


def install():
    install_definitions()
    kubectl("create", "namespace", SYSTEM, check=False)
    helm("upgrade", "--install", RELEASE, str(ROOT / "helm/fettle"), "--namespace", SYSTEM,
         "--set", "operator.replicas=0,rbac.scope=Cluster,crds.install=false")  # fmt: skip


def uninstall():
    helm("uninstall", RELEASE, "--namespace", SYSTEM)


def install_in(namespace):
    """A further release for that namespace, which needs the definitions and goes with it."""
    helm("install", SCENARIO, str(ROOT / "helm/fettle"), "--namespace", namespace,
         "--set", "operator.replicas=0,crds.install=false,admissionPolicies.install=false")  # fmt: skip
