package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Prometheus starts the program on an address, HOST:PORT, with a configuration
// and its files in dir, and waits until it is ready.
func Prometheus(ctx context.Context, program, dir, address string, configuration []byte, flags ...string) (*Process, error) {
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, configuration, 0o644); err != nil {
		return nil, err
	}
	p, err := Start(filepath.Join(dir, "prometheus.log"), nil, program, append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "prometheus"), "--web.listen-address=" + address, "--web.external-url=http://" + address,
	}, flags...)...)
	if err != nil {
		return nil, err
	}
	if err := p.Ready(ctx, "http://"+address+"/-/ready"); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Ready waits until url answers 200.
func (p *Process) Ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond) // there is no event to wait for
	defer again.Stop()
	for {
		err := answers(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-p.ended:
			return fmt.Errorf("%s ended (%w): see %s", p.cmd.Path, p.err, p.log.Name())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: see %s", p.cmd.Path, err, p.log.Name())
		}
	}
}

func answers(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
