# The commands of the README. Each prints its first line at once.

TARGET := $(or $(CARGO_TARGET_DIR),target)
export INPUT

.PHONY: help demo test setup bench install clean

help:
	@echo 'make demo    build unisono and show what it does; INPUT=path uses a file of yours'
	@echo 'make test    everything that must hold, with one closing line'
	@echo 'make setup   check that this machine has what the build needs'
	@echo 'make bench   measure how many events a second the simulator does'
	@echo 'make install PREFIX=path   unisono, libunisono, unisono.h and the manual; also DESTDIR=path'
	@echo 'make clean   remove what was built'

# Its servers are private to it, and end with it, also where there is no user but root.
demo: setup
	@echo 'demo: building; the first time takes a few minutes'
	@cargo build --quiet --release --package cli
	@UNISONO_ALLOW_ROOT=true "$(TARGET)/release/unisono" demo $(if $(INPUT),--input "$$INPUT")

test: setup
	@cargo x lint
	@cargo x test

setup:
	@scripts/setup

bench: setup
	@cargo run --quiet --release --package world-simulated --example engine_speed

PREFIX ?= /usr/local
install: setup
	@scripts/install --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

clean:
	@cargo clean
