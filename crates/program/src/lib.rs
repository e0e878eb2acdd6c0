//! Carries out what a rank of a program does, on any world.
