"""The tag of the wheel: any Python 3, on the platform of the program inside; without a program, any platform."""

import pathlib

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution

HAS_PROGRAM = any(pathlib.Path(__file__).parent.glob("fettle*/bin/*"))


class Wheel(bdist_wheel):
    def get_tag(self):
        _, _, platform = super().get_tag()
        return "py3", "none", platform


class WithProgram(Distribution):
    def has_ext_modules(self):
        return HAS_PROGRAM


setup(cmdclass={"bdist_wheel": Wheel}, distclass=WithProgram)
