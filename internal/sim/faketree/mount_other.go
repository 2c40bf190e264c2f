//go:build !linux

package faketree

import "errors"

// CanMount reports whether trees can be mounted here: never but on Linux.
func CanMount() bool { return false }

// Mount shows the tree at a directory, on Linux.
func (t *Tree) Mount(string) (unmount func(), err error) {
	return nil, errors.New("trees are mounted on Linux only")
}
