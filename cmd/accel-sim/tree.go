package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/alecthomas/kingpin/v2"

	"github.com/accel-exporter/accel-exporter/internal/sim/faketree"
)

func (c *command) addTree(app *kingpin.Application, actions map[string]func() error) {
	cmd := app.Command("tree", "Write a tree file to a directory, as regular files and links: /sys/x as DIR/sys/x. "+
		"Links such as DIR/class make DIR itself good for --path.sysfs.")
	file := cmd.Arg("tree", "File in the format of fixtures/trees.").Required().String()
	dir := cmd.Arg("dir", "Directory; made where it is missing.").Required().String()
	actions[cmd.FullCommand()] = func() error { return writeTree(*file, *dir) }
}

func writeTree(file, dir string) error {
	tree, err := faketree.Load(file)
	if err != nil {
		return err
	}
	if err := tree.Write(dir); err != nil {
		return err
	}
	for _, name := range tree.Names("/sys") {
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err == nil {
			continue // an existing file belongs to the user
		}
		if err := os.Symlink(filepath.Join("sys", name), at); err != nil {
			return err
		}
	}
	for _, name := range tree.Paths() {
		if errno := tree.Err(name); errno != 0 {
			fmt.Fprintf(os.Stderr, "accel-sim: left out: %s, which cannot be read: %v\n", name, errno)
		}
	}
	return nil
}
