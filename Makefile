# The commands of the README. Each prints its first line at once.

TARGET := $(or $(CARGO_TARGET_DIR),target)
export INPUT

.PHONY: help demo test suites setup bench bench-mpi bench-python accuracy install wheel packages packages-test clean

help:
	@echo 'make demo    build unisono and run a demonstration; INPUT=path names its input file'
	@echo 'make test    run all checks and tests, and print one summary line'
	@echo 'make suites  run the tests of PnetCDF, HDF5, ROMIO and MPICH over unisono; ARGS="--only WORD" for some'
	@echo 'make setup   check what the tests need, and install it where that is possible; the other commands need less'
	@echo 'make bench   measure the events per second of the simulator'
	@echo 'make bench-mpi   compare MPI-IO by Unisono with that of MPICH and Open MPI; ARGS=--quick for a short run'
	@echo 'make bench-python   compare the speed of the Python package with that of the Rust library'
	@echo 'make accuracy   compare predictions with what programs take, in half an hour; ARGS=--publish to replace docs/accuracy.md'
	@echo 'make install PREFIX=path   install unisono, libunisono, unisono.h and the manual; also DESTDIR=path'
	@echo 'make wheel   build the wheel of the Python package, with the command and the libraries, in target/dist'
	@echo 'make packages   build wheel, Debian packages, archive of the sources and recipes in target/packages; ARGS="--architecture aarch64"'
	@echo 'make packages-test   install and use them in empty roots of Debian, as root; ARGS=wheel for one kind'
	@echo 'make clean   remove the build results'

# Its servers are private to it, and end with it, also where there is no user but root.
demo:
	@scripts/setup build
	@echo 'demo: building; the first time takes 10 to 15 minutes on two cores'
	@cargo build --release --package cli --package c-api
	@UNISONO_ALLOW_ROOT=true "$(TARGET)/release/unisono" demo $(if $(INPUT),--input "$$INPUT")
	@scripts/demo-mpi

# The environments of Python are installed while the compiler works for the first checks.
test:
	@scripts/setup system
	@scripts/setup python & setup=$$!; cargo x lint || { kill $$setup; exit 1; }; wait $$setup
	@cargo x test

# Their sources come from Debian; programs and logs are in target/suites.
suites: setup
	@scripts/install --prefix "$(abspath $(TARGET))/suites/installed"
	@scripts/suites --prefix "$(abspath $(TARGET))/suites/installed" $(ARGS)

setup:
	@scripts/setup

bench:
	@scripts/setup build
	@cargo bench --package world-simulated --bench engine_speed

bench-mpi: setup
	@cargo build --release --package cli --package c-api --package mpi
	@UNISONO_TEST_BUILT=1 "$(TARGET)/release/bench-mpi" $(ARGS)

accuracy: setup
	@cargo build --release --package cli --package c-api --package mpi
	@UNISONO_TEST_BUILT=1 "$(TARGET)/release/accuracy" $(ARGS)

bench-python: wheel
	@cargo build --release --package python --example calls
	@scripts/bench-python "$(TARGET)" $(ARGS)

PREFIX ?= /usr/local
install:
	@scripts/setup build
	@scripts/install --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

wheel:
	@scripts/setup wheel
	@scripts/wheel

packages:
	@scripts/packages $(ARGS)

packages-test:
	@scripts/packages-test $(ARGS)

clean:
	@cargo clean
