"""Packaging. Beam workers install the project from this file by `--setup_file`."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "([^"]+)"', (ROOT / "bubblerank" / "__init__.py").read_text("utf-8"), re.M
)[1]

setup(
    name="bubblerank",
    version=VERSION,
    description="Safe online re-ranking from clicks, and the audit that proves it",
    long_description=(ROOT / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    package_dir={"": "."},
    packages=find_packages(
        include=[
            f"{top}{below}"
            for top in ("bubblerank", "pipelines", "schemas", "commands")
            for below in ("", ".*")
        ]
    ),
    package_data={"schemas": ["*.avsc", "py.typed"], "bubblerank": ["py.typed"]},
    install_requires=[
        "apache-beam==2.77.0",
        "fastavro>=1.9,<2",
        "numba>=0.63,<1",
        "numpy>=2,<2.5",
        "pyarrow>=18,<26",
        "rich>=13.8,<16",
    ],
    extras_require={
        "gcp": ["apache-beam[gcp]==2.77.0"],
        "dev": [
            "hypothesis==6.170.15",
            "import-linter==2.16",
            "mypy==2.4.1",
            "pre-commit==4.7.0",
            "pytest==9.2.0",
            "pytest-xdist==3.8.0",
            "ruff==0.17.4",
            "scipy==1.17.1",
        ],
    },
    entry_points={"console_scripts": ["bubblerank = commands.main:main"]},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Topic :: Internet :: WWW/HTTP :: Indexing/Search",
    ],
)
