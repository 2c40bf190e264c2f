// Package faketree is a copy of /sys and /proc that tests and the simulator
// can hold, change and show.
//
// A Tree is read from a text file in the format of fixtures/trees, lives in
// memory, and is shown in one of two ways. Write puts it into a directory, as
// regular files and links. Mount shows it through FUSE, where it behaves as
// the kernel's own: each read asks the tree anew, fails with the errno that
// stands there, or blocks in the kernel until it is let go. A mounted tree
// also counts who opened and read what, and notes what nobody may open.
//
// Paths are those of the machine that is copied: "/sys/class/hwmon". A path
// without a slash in front is relative to /sys, as package sysfs has it. Links
// in a path are followed, save by Remove, Rename and Link. All methods may be
// called at any time, by any number of goroutines, also while the tree is
// mounted.
//
// Only tests and the simulator import this package.
package faketree
