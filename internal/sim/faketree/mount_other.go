//go:build !linux

package faketree

import "errors"

// CanMount reports false: mounting requires Linux.
func CanMount() bool { return false }

// Mount fails: mounting requires Linux.
func (t *Tree) Mount(string) (unmount func(), err error) {
	return nil, errors.New("trees are mounted on Linux only")
}
