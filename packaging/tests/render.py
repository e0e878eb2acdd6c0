"""Renders the recipe for conda, and checks that each MPI library gets a package. Asks no channel.

render.py FOLDER, with recipe.yaml and variants.yaml
"""

import sys
from pathlib import Path

import rattler_build

folder = Path(sys.argv[1])
recipe = rattler_build.Stage0Recipe.from_file(folder / "recipe.yaml")
variants = rattler_build.VariantConfig.from_file(folder / "variants.yaml")
rendered = recipe.render(variants)
libraries = {str(package.variant["mpi"]) for package in rendered}
if libraries != {"mpich", "openmpi"}:
    print(f"error: the recipe for conda is wrong\ncause: it has packages for {libraries}", file=sys.stderr)
    print("help:  compare packaging/conda/variants.yaml", file=sys.stderr)
    sys.exit(1)
for package in rendered:
    recipe, variant = package.recipe, package.variant
    print(f"conda: rendered {recipe.package.name} {recipe.package.version}: {variant['mpi']}, Python {variant['python']}")
