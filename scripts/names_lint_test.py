#!/usr/bin/env python3
"""scripts/names_lint.py sees one violation of each kind, and none where there is none."""

import os
import pathlib
import tempfile
import unittest

import names_lint

LONG_BODY = "  f();\n" * names_lint.LONGEST


class NamesLint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def findings(self, **files):
        """By name, with _cpp and _h at the end; each is the inside of namespace fettle."""
        paths = []
        for name, text in files.items():
            paths.append(".".join(name.rsplit("_", 1)))
            pathlib.Path(paths[-1]).write_text("namespace fettle {\n" + text + "\n}\n")
        return sorted(names_lint.findings(paths))

    def test_two_types_of_one_name(self):
        two = "a.h:2 and b.cpp:2: both define fettle::Twice"
        self.assertEqual(self.findings(a_h="struct Twice {};", b_cpp="class Twice {};"), [two])
        recurring = "template <class T>\nclass Twice : Base<Twice<T>> {};"
        self.assertEqual(self.findings(a_h="struct Twice {};", b_h=recurring),
                         ["a.h:2 and b.h:3: both define fettle::Twice"])
        self.assertEqual(self.findings(a_h="enum class Twice { kA };", b_cpp="struct Twice { int x; };"), [two])

    def test_types_of_one_name_that_never_meet(self):
        declared, defined = "struct Once;", "struct Once {};"
        self.assertEqual(self.findings(a_h=declared, b_h=defined, c_h="namespace other { struct Once {}; }"), [])
        for hidden in (f"namespace {{ {defined} }}", f"inline void g() {{\n  {defined}\n}}",
                       "template <>\nstruct Once<int> {};"):
            self.assertEqual(self.findings(a_h=defined, b_cpp=hidden), [], hidden)

    def test_names(self):
        self.assertEqual(self.findings(a_test_cpp="struct not_camel {};"),
                         ["a_test.cpp:2: type not_camel, expected CamelCase"])
        self.assertEqual(self.findings(a_test_cpp="void notSnake() {}"),
                         ["a_test.cpp:2: function notSnake, expected snake_case"])
        self.assertEqual(self.findings(a_h="struct A {\n  void Method();\n};"),
                         ["a.h:3: function Method, expected snake_case"])
        for constant in ("constexpr int limit = 1;", "const Key limit{1};", "enum class A { limit };",
                         "struct A { static constexpr int limit = 1; };", "inline constexpr const char* limit = 0;"):
            self.assertEqual(self.findings(a_h=constant), ["a.h:2: constant limit, expected kCamelCase"])

    def test_names_that_are_right(self):
        text = """
          struct Base { Base(); ~Base(); virtual void DescribeTo(int* out) const; bool operator==(const Base&); };
          struct Of : Base { void OnMapStart(int a,
                                             int b) override; const int held = 1; const Base* base; };
          class Fixture { void SetUp() override; const int many_; };
          const Base* newest = nullptr;
          constexpr int kLimit = 1;
          void PrintTo(const Base& base);
          TEST(Suite, AName) { struct sigaction action; auto f = [] { return 1; }; }
          __global__ void __launch_bounds__(256, 4) add(int x) {}
        """
        self.assertEqual(self.findings(a_cpp=text), [])

    def test_names_of_tests(self):
        longest = "A" + "b" * (names_lint.LONGEST_TEST_NAME - 1)
        for macro in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST"):
            self.assertEqual(self.findings(a_test_cpp=f"{macro}(Suite, {longest}) {{}}"), [])
            self.assertEqual(self.findings(a_test_cpp=f"{macro}(Suite, {longest}c) {{}}"),
                             [f"a_test.cpp:2: test {longest}c has 61 characters, expected at most 60"])

    def test_names_of_a_foreign_interface(self):
        pathlib.Path("fake_nvml.cpp").write_text('extern "C" int nvmlInit_v2() { return 0; }\nstruct dim3 {};\n')
        self.assertEqual(list(names_lint.findings(["fake_nvml.cpp"])), [])

    def test_length(self):
        for head, name in (("void f() {", "f()"), ("TEST(Suite, Long) {", "TEST(Suite,Long)"),
                           ("TEST_P(Suite, Long) {", "TEST_P(Suite,Long)"), ("int X::g() const {", "g() const")):
            self.assertEqual(self.findings(a_test_cpp=head + "\n" + LONG_BODY + "}"),
                             [f"a_test.cpp:2: {name} has 72 lines, expected at most 70"])
            self.assertEqual(self.findings(a_test_cpp=head + "\n" + LONG_BODY[14:] + "}"), [])


if __name__ == "__main__":
    unittest.main()
