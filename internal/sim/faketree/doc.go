// Package faketree is a copy of /sys and /proc for tests and the simulator.
//
// A Tree is parsed from a text file in the format of fixtures/trees and kept in
// memory. Write writes it to a directory as regular files and links. Mount
// mounts it through FUSE, where it behaves like the kernel's: each read
// evaluates the tree, fails with the configured errno, or blocks in the kernel
// until released. A mounted tree also counts opens and reads, and records opens
// of forbidden files.
//
// Paths are as on the copied machine: "/sys/class/hwmon". A path without a
// leading slash is relative to /sys, as in package sysfs. Links in a path are
// followed, except by Remove, Rename and Link. All methods may be called at any
// time by any number of goroutines, also while the tree is mounted.
//
// Only tests and the simulator import this package.
package faketree
