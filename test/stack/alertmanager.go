package stack

import (
	"context"
	"os"
	"path/filepath"
)

// assets is where Debian's Alertmanager has its templates.
const assets = "/usr/share/prometheus/alertmanager"

// Alertmanager starts the program with a configuration and its files in dir.
// The address is HOST:PORT, with port 0 for any.
func Alertmanager(ctx context.Context, program, dir, address string, configuration []byte) (p *Process, url string, err error) {
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, configuration, 0o644); err != nil {
		return nil, "", err
	}
	args := []string{
		program, "--config.file=" + config, "--storage.path=" + filepath.Join(dir, "alertmanager"),
		"--web.listen-address=" + address, "--cluster.listen-address=",
	}
	if share, ok := unpacked(program); ok {
		args = append([]string{"unshare", "--map-root-user", "--mount", "sh", "-c", `mount --bind "$0" /usr/share && exec "$@"`, share}, args...)
	}
	p, err = Start(filepath.Join(dir, "alertmanager.log"), nil, args[0], args[1:]...)
	if err != nil {
		return nil, "", err
	}
	address, err = p.Address(ctx)
	if err != nil {
		p.Stop()
		return nil, "", err
	}
	return p, "http://" + address, nil
}

// unpacked reports whether the program stands in a package of Debian's that
// was unpacked and not installed. It finds its templates at a fixed path, so it
// runs in a mount namespace with the package's /usr/share.
func unpacked(program string) (share string, ok bool) {
	if _, err := os.Stat(assets); err == nil {
		return "", false
	}
	usr := filepath.Dir(filepath.Dir(program))
	_, err := os.Stat(filepath.Join(usr, "share", "prometheus", "alertmanager"))
	return filepath.Join(usr, "share"), err == nil
}
