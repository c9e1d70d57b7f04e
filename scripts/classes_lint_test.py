#!/usr/bin/env python3
"""scripts/classes_lint.py counts what a class declares, and nothing else."""

import unittest

import classes_lint


def counted(body):
    return [(name, number) for _, name, number in classes_lint.classes_in(f"class A final : public B {{\n{body}\n}};\n")]


class ClassesLint(unittest.TestCase):
    def test_functions_defined_elsewhere_count(self):
        self.assertEqual(counted("""
 public:
  A(int x);
  ~A() override;
  static Result<std::map<int, C>> make(const std::function<void(int)>& f, int n = g(1));
 private:
  bool operator()(int) const;
  virtual void run() = 0;
"""), [("A", 5)])

    def test_what_is_defined_in_place_does_not_count(self):
        self.assertEqual(counted("""
  A() = default;
  A(const A&) = delete;
  int size() const { if (n_) { f(); } return 1; }
"""), [("A", 0)])

    def test_members_types_and_friends_do_not_count(self):
        self.assertEqual(counted("""
  using F = void (*)(int);
  enum class E { a, b };
  friend bool operator==(const A&, const A&);
  std::function<void(int)> listener_;
  int n_ = f(2);
  // void g(int);
"""), [("A", 0)])

    def test_a_class_within_a_class_counts_for_itself(self):
        self.assertEqual(counted("  struct Inner { int q(); };\n  int f();"), [("A", 1), ("Inner", 1)])


if __name__ == "__main__":
    unittest.main()
