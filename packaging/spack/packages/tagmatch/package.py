"""The command, the libfabric provider, the simulated card and the C library, out of the repository that this stands in.

    spack repo add packaging/spack
    spack install tagmatch
"""

import os

from spack.package import *

try:
    # Since Spack 1.0 build systems are a repository of their own.
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    pass


class Tagmatch(Package):
    """Tag matching for message-passing runtimes: exact MPI order in software and on NICs that match (TM-SRQ)."""

    git = "file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    variant("hca", default=True, description="The simulated ConnectX of `tagmatch hca`")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("gmake", type="build")
    # Opened at run time: the provider is of use to those that are linked with libfabric.
    depends_on("libfabric@1.17:", type="run")
    depends_on("rdma-core@25:", type="run", when="+hca")

    def install(self, spec, prefix):
        packages = ["tagmatch", "tagmatch-fi", "tagmatch-c"]
        if spec.satisfies("+hca"):
            packages.append("tagmatch-hca")
        arguments = ["build", "--release", "--locked"]
        for package in packages:
            arguments += ["-p", package]
        which("cargo")(*arguments)

        built = join_path("target", "release")
        mkdirp(prefix.bin, prefix.lib.tagmatch)
        install(join_path(built, "tagmatch"), prefix.bin)
        # Whatever ends in -fi.so is loaded by libfabric.
        install(join_path(built, "libtagmatch_fi.so"), join_path(prefix.lib.tagmatch, "libtagmatch-fi.so"))
        if spec.satisfies("+hca"):
            install(join_path(built, "libtagmatch_hca.so"), prefix.lib.tagmatch)

        archive = os.path.abspath(join_path(built, "libtagmatch_c.a"))
        which("make")("-C", "capi", "install", "ARCHIVE=" + archive, "PREFIX=" + prefix)

        tagmatch = Executable(join_path(prefix.bin, "tagmatch"))
        tagmatch("man", join_path(prefix.share.man, "man1"))
        completions = {
            "bash": ("bash-completion", "completions", "tagmatch"),
            "zsh": ("zsh", "site-functions", "_tagmatch"),
            "fish": ("fish", "vendor_completions.d", "tagmatch.fish"),
        }
        for shell, place in completions.items():
            path = join_path(prefix.share, *place)
            mkdirp(os.path.dirname(path))
            with open(path, "w") as file:
                tagmatch("completions", shell, output=file)

    def setup_run_environment(self, env):
        env.prepend_path("FI_PROVIDER_PATH", self.prefix.lib.tagmatch)
