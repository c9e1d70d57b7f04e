"""trial.pod: what the built-in trainer's pods have besides is asked of the API server when the Study appears."""
import cluster
from cluster import TOLERATIONS, items, kubectl, wait_for
from scenario import Scenario

PLACE = {"tolerations": TOLERATIONS, "nodeSelector": {"type": "kwok"}}


class PodsTest(Scenario):
    expects_refusals = True

    def apply_trainer(self, name, pod, **trial):
        study = cluster.study(name, self.ns, budget={"trials": 2, "parallelism": 2, "failures": 0})
        spec = study["spec"]
        spec["objectives"] = [{"metric": "learning_rate", "direction": "Minimize"}]
        spec["parameters"] = [{"name": "learning_rate", "type": "Double", "min": 0.1, "max": 1,
                               "sets": "training.learningRate"}]  # fmt: skip
        spec["trial"] = {
            "trainer": {
                "data": {"trainImages": "/data/images", "trainLabels": "/data/labels"},
                "model": {"layers": [{"type": "flatten"}, {"type": "linear", "units": 2}]},
            },
            "pod": PLACE | pod,
        } | trial
        cluster.apply(study)

    def refusal(self, name, pod, **trial):
        self.apply_trainer(name, pod, **trial)
        words = cluster.wait_for_condition(name, self.ns, "Failed")["message"]
        self.assertIn("the API server refuses the", words)
        self.assertEqual(self.trials(name), [])
        return words

    def test_a_pod_is_as_the_study_says(self):
        self.apply_trainer("s", {
            "labels": {"team": "vision"},
            "annotations": {"fake.fettle.dev/trains": "yes", "fake.fettle.dev/duration": "2s"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}}},
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                           "whenUnsatisfiable": "ScheduleAnyway",
                                           "labelSelector": {"matchLabels": {"team": "vision"}}}],
            "schedulerName": "default-scheduler",
            "imagePullPolicy": "Never",
            "securityContext": {"fsGroup": 2000},
            "containerSecurityContext": {"readOnlyRootFilesystem": False},
            "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "256Mi"}},
            "volumes": [{"name": "data", "emptyDir": {}},
                        {"name": "labels", "image": {"reference": "labels:1", "pullPolicy": "Never"}}],
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
            "env": [{"name": "HTTPS_PROXY", "value": "http://proxy"}],
            "envFrom": [{"configMapRef": {"name": "settings", "optional": True}}],
        })  # fmt: skip
        [pod, *_] = wait_for("pods", lambda: items("pods", self.ns))
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        self.assertEqual(pod["metadata"]["labels"]["team"], "vision")
        self.assertEqual(pod["metadata"]["labels"]["fettle.dev/study"], "s")
        self.assertEqual(spec["securityContext"]["fsGroup"], 2000)
        self.assertEqual(spec["securityContext"]["runAsUser"], 65532, "what it does not say stays")
        self.assertEqual(container["imagePullPolicy"], "Never")
        self.assertEqual(container["resources"], {"requests": {"cpu": "2", "memory": "256Mi"}, "limits": {"memory": "256Mi"}})
        names = {entry["name"]: entry.get("value") for entry in container["env"]}
        self.assertEqual((names["HTTPS_PROXY"], names["FETTLE_TRIAL"]), ("http://proxy", "/fettle/trial.json"))
        self.assertIn({"name": "data", "mountPath": "/data", "readOnly": True}, container["volumeMounts"])
        self.assert_succeeded(trials=2)

    def test_what_the_cluster_refuses_is_said_at_once(self):
        mount = {"volumeMounts": [{"name": "nothing", "mountPath": "/data"}]}
        self.assertIn('Not found: "nothing"', self.refusal("mount", mount))
        limits = {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}
        self.assertIn("must be less than or equal to memory limit", self.refusal("limits", limits))
        self.restrict_pods()
        host = {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
        self.assertIn('violates PodSecurity "restricted', self.refusal("host", host))

    def test_an_account_that_is_missing_is_waited_for(self):
        self.apply_trainer("s", {"serviceAccountName": "late", "annotations": {"fake.fettle.dev/trains": "yes"}})
        cluster.wait_for_message("s", self.ns, "Blocked", 'serviceaccount "late" not found')
        kubectl("create", "serviceaccount", "late", "-n", self.ns)
        self.assert_succeeded(trials=2)
