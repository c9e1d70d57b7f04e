"""Brings what operators need into the cluster: the definitions and the chart's accounts and roles,
but no operator of its own; the scenarios start those."""
import subprocess

from cluster import ROOT, SYSTEM, kubectl


def install():
    kubectl("create", "namespace", SYSTEM, check=False)
    subprocess.run(
        ["helm", "upgrade", "--install", "fettle", str(ROOT / "helm/fettle"), "--namespace", SYSTEM,
         "--set", "operator.replicas=0,rbac.scope=Cluster"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    kubectl("wait", "--for=condition=Established", "crd/studies.fettle.dev", "crd/trials.fettle.dev")


def uninstall():
    subprocess.run(["helm", "uninstall", "fettle", "--namespace", SYSTEM], stdout=subprocess.DEVNULL)
