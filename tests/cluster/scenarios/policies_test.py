"""The operator reports missing admission policies, which exist once for the whole cluster."""
import subprocess

from cluster import kubectl, wait_for
from scenario import Scenario
from setup import install_definitions


class PoliciesTest(Scenario):
    alone = True  # it takes policies away from everybody
    settings = "admissionPolicies.check=true"

    def policies(self):
        """The metric, once there is one."""
        found = wait_for("a word on the policies", lambda: [
            value for value in [self.operator.metric("fettle_admission_policies")] if value is not None])  # fmt: skip
        return found[0]

    def check(self):
        """Runs what `helm test` runs; returns its exit code and output."""
        done = subprocess.run([*self.operator.arguments, "--check"], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_missing_policy_is_told_at_start(self):
        self.assertEqual(self.policies(), 1)
        code, words = self.check()
        self.assertEqual(code, 0, words)
        self.addCleanup(install_definitions)
        kubectl("delete", "validatingadmissionpolicybinding", "fettle-report")
        self.assertEqual(self.operator.stop(), 0)
        self.operator.start().wait_until_leader()
        self.assertEqual(self.policies(), 0)
        wait_for("the log to name it", lambda: 'policy="fettle-report"' in self.operator.words())
        code, words = self.check()
        self.assertEqual(code, 3, words)
        self.assertIn("no admission policy fettle-report", words)
        self.apply()  # fenced or not, Studies run
        self.assert_succeeded()

    def test_check_says_that_nobody_leads(self):
        self.assertEqual(self.operator.stop(), 0)
        code, words = self.check()
        self.assertEqual(code, 3, words)
        self.assertIn("no operator leads", words)
