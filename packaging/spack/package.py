# Recipe of Unisono for Spack. `make packages` writes it, with the archive of the sources and its checksum,
# to a repository of Spack:
#
#   spack repo add target/packages/spack/spack_repo/unisono_release
#   spack install unisono

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Unisono(Package):
    """Parallel file system whose servers direct collective transfers: command, servers, C library, MPI-IO."""

    homepage = "@ARCHIVE@"
    url = "@ARCHIVE@"

    license("Apache-2.0 OR MIT", checked_by="The Unisono authors")

    version("@VERSION@", sha256="@SHA256@")

    variant("mpi", default=True, description="Serve programs of the MPI library that the package is built with")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("binutils", type="build")
    # Found by its compiler; programs bring their own library.
    depends_on("mpi", when="+mpi", type=("build", "run"))

    # It calls the system of Linux, and has been tested on these processors only.
    requires("platform=linux")
    requires("target=x86_64:,aarch64:")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        # As the packages of Spack that cargo builds: crates come from their registry, with the checksums
        # of Cargo.lock, and nothing is written outside the stage.
        env.set("CARGO_HOME", join_path(self.stage.path, "cargo"))
        env.set("MPICC", self.spec["mpi"].mpicc if self.spec.satisfies("+mpi") else "none")

    def install(self, spec, prefix):
        script = Executable(join_path(self.stage.source_path, "scripts", "install"))
        script("--prefix", prefix, "--package", "Spack package")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_installed(self):
        Executable(self.prefix.bin.unisono)("--version")
